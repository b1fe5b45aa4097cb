"""Whether two sets of features come from one encoder: its copies, rotations and heads are too similar to judge it.

Two measures must agree. Linear CKA compares all similarities of the images (Kornblith et al., ICML 2019), without the
bias of few images (Song et al., JMLR 2012). It is high, too, where two encoders see the same few clusters, in which
their neighbors differ. The share of common neighbors is high, too, where most images have near duplicates.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from udml_core.base.arrays import Array, evenly_spaced
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
COMPARED, SAME = 200, 1e-3
"""Features whose cosines between 200 images are all this close to an embedding's are that embedding."""


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


def is_same(features: Array, embedding: Array) -> bool:
    """Return whether rows (n, d) and (n, e) are equal up to lengths and a rotation, by the cosines of some rows."""
    sample = evenly_spaced(len(features), COMPARED)
    if len(sample) < 2:  # a single image has no cosine to another
        return False
    grams = [rows @ rows.T for rows in (unit_rows(np.asarray(of[sample])) for of in (features, embedding))]
    return bool(np.abs(grams[0] - grams[1]).max() < SAME)


def kin_words(judge: str, features: Array, judged: Iterable[Array], is_unknown: bool = False) -> str:
    """Return why a judge may not judge embeddings, as its features tell; empty if it may.

    Args:
        judge: Its name.
        features: Its features (n, d).
        judged: The embeddings (n, e) of the same images, and the features of their encoders.
        is_unknown: Whether it may be an encoder of them under another name, so that it must not see the images almost
            as they do.
    """
    for embedding in judged:
        if is_same(features, embedding):
            return (f"The judge {judge} has the features that it would judge. Name an encoder or a table that took no "
                    "part in them.")
        of = kinship(features, embedding) if is_unknown else Kinship(0.0, 0.0)
        if of.is_kin:
            return (f"The judge {judge} sees these images almost as the judged features do: {of.shared:.0%} of the "
                    f"nearest neighbors are the same, and the similarity of both (CKA) is {of.similarity:.2f}. "
                    "Different encoders reach 0.74 in our measurements, so it is probably the same encoder under "
                    "another name. Name an encoder or a table that took no part in them.")
    return ""


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
