"""Shapes of triplets: the angle against α, violations, corners to draw to scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from udml_core.arrays import Array
from udml_core.explanations import Triplets

Order = Literal["loss", "weight", "angle"]


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

        It is the angle at the negative of the symmetrized triangle. A triplet is a violation exactly when the angle
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
