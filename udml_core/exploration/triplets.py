"""Shapes of triplets: the angle against α, violations, corners to draw to scale, and the distance to PCA."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from udml_core.base.arrays import Array
from udml_core.base.files import read_array
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import EncoderSpec
from udml_core.data.features import features_path
from udml_core.numerics.explanations import Triplets

Order = Literal["loss", "weight", "angle"]
MOST_ROWS = 5000
"""Number of images from which principal components are computed."""
SAME_VARIANCE, SAME_SUBSPACE, INACTIVE = 0.95, 0.8, 0.05
"""A projection is close to PCA from these shares on; below the last share of violations the bound is inactive."""


@dataclass(frozen=True)
class Shape:
    """Squared distances that determine each triplet's triangle.

    Attributes:
        near: (t,) anchor to positive.
        far: (t,) negative to the midpoint of anchor and positive.
        side: (t,) anchor to negative.
    """

    near: Array
    far: Array
    side: Array

    @property
    def angle(self) -> Array:
        """(t,) angle arctan(‖a−p‖ / 2‖n−m‖) in degrees.

        It is half the angle at the negative of the symmetrized triangle. A triplet is a violation exactly when it
        exceeds α.
        """
        return np.degrees(np.arctan2(np.sqrt(self.near), 2 * np.sqrt(self.far)))

    def argument(self, alpha: float) -> Array:
        """Compute z = near − 4tan²α·far (RPML eq. 8), (t,), for α in degrees."""
        return self.near - 4 * math.tan(math.radians(alpha)) ** 2 * self.far


def recorded_shape(triplets: Triplets) -> Shape:
    """Return the shapes as the loss computed them in training."""
    return Shape(*(np.asarray(part, dtype=np.float64) for part in (triplets.near, triplets.far, triplets.side)))


def shape_in(embedding: Array, anchor: Array, positive: Array, negative: Array) -> Shape:
    """Compute the shapes of triplets in another embedding.

    Args:
        embedding: (n, l) embedding.
        anchor: (t,) rows of the anchors.
        positive: (t,) rows of the positives.
        negative: (t,) rows of the negatives.
    """
    a, p, n = (np.asarray(embedding[part], dtype=np.float64) for part in (anchor, positive, negative))
    return Shape(*(((start - end) ** 2).sum(axis=1) for start, end in ((a, p), (n, (a + p) / 2), (a, n))))


def angle_histogram(shape: Shape) -> tuple[Array, Array]:
    """Return a histogram of the angles.

    It has bin edges (46,) from 0 to 90 degrees, and counts (45,).
    """
    counts, edges = np.histogram(shape.angle, bins=45, range=(0, 90))
    return edges, counts


def sorted_positions(triplets: Triplets, by: Order) -> Array:
    """Return the triplets' positions in descending order of a value.

    Ties keep their order.
    """
    values = recorded_shape(triplets).angle if by == "angle" else np.asarray(getattr(triplets, by))
    return np.argsort(-values, kind="stable")


def first_of_each_anchor(triplets: Triplets, positions: Array) -> Array:
    """Return the first triplet of each anchor among positions (p,), in their order."""
    return positions[np.sort(np.unique(triplets.anchor[positions], return_index=True)[1])]


def truth(triplets: Triplets, labels: Array) -> tuple[Array, Array]:
    """Compare triplets with the labels (n,) of the training images.

    A triplet is true if both results are.

    Returns:
        (t,) bool, whether the positive has the anchor's class, and (t,) bool, whether the negative has another class.
    """
    own = labels[triplets.anchor]
    return own == labels[triplets.positive], own != labels[triplets.negative]


def corners(shape: Shape, position: int) -> Array:
    """Return the corners of one triplet in the plane, to scale.

    The midpoint of anchor and positive is the origin; both lie on the first axis.

    Args:
        shape: Shapes of the triplets.
        position: Position of the triplet.

    Returns:
        (4, 2) anchor, positive, negative and symmetrized negative.
    """
    near, far, side = (float(values[position]) for values in (shape.near, shape.far, shape.side))
    half = math.sqrt(near) / 2
    along = (side - far - near / 4) / (2 * half) if half > 0 else 0.0
    along = max(-math.sqrt(far), min(math.sqrt(far), along))
    up = math.sqrt(max(0.0, far - along**2))
    return np.array([[-half, 0.0], [half, 0.0], [along, up], [0.0, math.sqrt(far)]])


@dataclass(frozen=True)
class Regime:
    """Whether the bound on the angle acts in a run, and how close its subspace is to the principal components.

    Attributes:
        before: Share of the triplets that violate the bound before training.
        after: Share of the same triplets that violate the bound after training.
        variance: Variance in the learned subspace, as a share of the variance in the principal subspace.
        overlap: Mean squared cosine of the principal angles of both subspaces; 1 for the same subspace.
    """

    before: float
    after: float
    variance: float
    overlap: float

    @property
    def is_pca(self) -> bool:
        """Whether the bound is inactive and the result close to PCA."""
        return self.after < INACTIVE and self.variance > SAME_VARIANCE and self.overlap > SAME_SUBSPACE


def regime(rows: Array, triplets: Array, first: Array, learned: Array, alpha: float) -> Regime:
    """Compare a learned projection with the bound on the angle and with PCA.

    Args:
        rows: (n, d) unit features of the training images.
        triplets: (3, t) rows of the anchors, positives and negatives.
        first: (d, l) projection before training.
        learned: (d, l) projection after training.
        alpha: The upper bound of the angle in degrees.
    """
    before, after = (violating_share(rows, triplets, projection, alpha) for projection in (first, learned))
    directions, variances = principal_subspace(rows, learned.shape[1])
    basis = np.linalg.qr(np.asarray(learned, dtype=np.float64))[0]
    return Regime(before, after, variance_in(rows, basis) / float(variances.sum()), overlap(basis, directions))


def violating_share(rows: Array, triplets: Array, projection: Array, alpha: float) -> float:
    """Return the share of triplets (3, t) that violate the bound α after a projection (d, l) of rows (n, d)."""
    return float((shape_in(rows @ projection, *triplets).argument(alpha) > 0).mean())


def principal_subspace(rows: Array, count: int) -> tuple[Array, Array]:
    """Return the first principal directions (d, l) of rows (n, d) and the variances along them (l,).

    Distances do not depend on the mean, so it is subtracted. At most `MOST_ROWS` evenly spaced rows are used.
    """
    values, vectors = np.linalg.eigh(_covariance(rows))
    return vectors[:, ::-1][:, :count], values[::-1][:count]


def variance_in(rows: Array, basis: Array) -> float:
    """Return the variance of rows (n, d) in the subspace with an orthonormal basis (d, l)."""
    return float(np.trace(basis.T @ _covariance(rows) @ basis))


def overlap(first: Array, second: Array) -> float:
    """Return the mean squared cosine of the principal angles between two subspaces.

    Both arguments are orthonormal bases (d, l).
    """
    return float(((first.T @ second) ** 2).sum() / first.shape[1])


def stored_rows(dataset: Dataset, encoder: EncoderSpec, indices: Array) -> Array | None:
    """Return the unit features (n, d) of images; None if the cache no longer has them."""
    path = features_path(dataset, encoder)
    if not path.exists():
        return None
    rows = np.asarray(read_array(path, mapped=True)[indices], dtype=np.float64)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def _covariance(rows: Array) -> Array:
    chosen = np.asarray(rows[:: -(-len(rows) // MOST_ROWS)], dtype=np.float64)
    centered = chosen - chosen.mean(axis=0)
    return centered.T @ centered / len(chosen)
