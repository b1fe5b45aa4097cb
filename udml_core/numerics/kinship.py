"""Whether two sets of features come from one encoder: its copies, rotations and heads are too similar to judge it.

Two measures must agree. Linear CKA compares all similarities of the images (Kornblith et al., ICML 2019), without the
bias of few images (Song et al., JMLR 2012). It is high, too, where two encoders see the same few clusters, in which
their neighbors differ. The share of common neighbors is high, too, where most images have near duplicates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udml_core.base.arrays import Array, evenly_spaced
from udml_core.base.errors import UserError
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.refinement.linear import unit_rows

SAMPLE, NEIGHBORS, SHARE = 1000, 10, 20
"""Images that are compared, and nearest neighbors of each, at most one in so many of the images."""
MOST_SIMILAR, MOST_SHARED = 0.8, 0.4
"""Kin have a larger CKA and a larger share of common neighbors. Measured on five data sets of images:
different encoders reach a CKA of 0.74. Random projections to 128 dimensions, whitening, 64 principal components and
trained heads of one encoder keep 0.86 and 0.64 of the neighbors; the same network at 64 in place of 96 pixels keeps
0.86 and 0.43."""
LEAST = 40
"""Smallest number of images on which it can be told."""


@dataclass(frozen=True)
class Kinship:
    """How similar two sets of features are.

    Attributes:
        similarity: Linear CKA, at most 1.
        shared: Share of common nearest neighbors, 0 to 1.
    """

    similarity: float
    shared: float

    @property
    def is_kin(self) -> bool:
        """Whether they come from one encoder."""
        return self.similarity > MOST_SIMILAR and self.shared > MOST_SHARED


def kinship(features: Array, others: Array) -> Kinship:
    """Return how similar two encoders' features (n, d) and (n, e) of the same images are."""
    if len(features) < LEAST:
        return Kinship(0.0, 0.0)
    sample = evenly_spaced(len(features), SAMPLE)
    rows = [unit_rows(np.asarray(of[sample], np.float32)) for of in (features, others)]
    k = max(1, min(NEIGHBORS, len(sample) // SHARE))
    first, second = (nearest(of, k)[1] for of in rows)
    shared = float((first[:, :, None] == second[:, None, :]).any(axis=2).mean())
    return Kinship(linear_cka(*rows), shared)


def check_kinship(judge: str, features: Array, judged: Array) -> None:
    """Check that a judge does not see the images almost as the features do that it would judge.

    Args:
        judge: Its name.
        features: Its features (n, d).
        judged: The features (n, e) that it would judge.

    Raises:
        UserError: It does.
    """
    of = kinship(features, judged)
    if of.is_kin:
        raise UserError(f"The judge {judge} sees these images almost as the judged features do: {of.shared:.0%} of the "
                        f"nearest neighbors are the same, and the similarity of both (CKA) is {of.similarity:.2f}. "
                        "Different encoders reach 0.74 in our measurements, so it is probably the same encoder under "
                        "another name. Name an encoder or a table that took no part in them.")


def linear_cka(features: Array, others: Array) -> float:
    """Return the linear CKA of features (n, d) and (n, e), without the bias of few images; 0 without any variance."""
    grams = [np.asarray(of, np.float64) @ np.asarray(of, np.float64).T for of in (features, others)]
    for gram in grams:
        np.fill_diagonal(gram, 0.0)
    first, second = grams
    variances = _hsic(first, first) * _hsic(second, second)
    return _hsic(first, second) / float(np.sqrt(variances)) if variances > 0 else 0.0


def _hsic(first: Array, second: Array) -> float:
    """Return the unbiased HSIC of two Gram matrices (n, n) with zeros on the diagonal, up to a factor of n alone."""
    n = len(first)
    products = float((first * second).sum())
    means = float(first.sum()) * float(second.sum()) / ((n - 1) * (n - 2))
    return products + means - 2.0 / (n - 2) * float(first.sum(axis=0) @ second.sum(axis=0))
