"""What a triplet looks like: its angle against α, whom it violates, how to draw it to scale."""

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
    """Squared distances of triplets in an embedding, (t,) each: anchor to positive, negative to their midpoint, anchor
    to negative. They determine the triangle."""

    near: Array
    far: Array
    side: Array

    @property
    def angle(self) -> Array:
        """arctan(‖a−p‖ / 2‖n−m‖) in degrees (t,): at the negative of the symmetrized triangle; above α exactly where
        the triplet violates."""
        return np.degrees(np.arctan2(np.sqrt(self.near), 2 * np.sqrt(self.far)))

    def argument(self, alpha: float) -> Array:
        """z = near − 4tan²α·far (RPML eq. 8), (t,); α in degrees."""
        return self.near - 4 * math.tan(math.radians(alpha)) ** 2 * self.far


def shape_of(triplets: Triplets) -> Shape:
    """As the loss saw them."""
    return Shape(*(np.asarray(part, dtype=np.float64) for part in (triplets.near, triplets.far, triplets.side)))


def shape_in(embedding: Array, anchor: Array, positive: Array, negative: Array) -> Shape:
    """The same triplets, rows of an embedding (n, l), there."""
    a, p, n = (np.asarray(embedding[part], dtype=np.float64) for part in (anchor, positive, negative))
    return Shape(*(((one - other) ** 2).sum(axis=1) for one, other in ((a, p), (n, (a + p) / 2), (a, n))))


def spread(shape: Shape) -> tuple[Array, Array]:
    """How the angles are spread: edges (46,) from 0 to 90 degrees, and how many lie between each and the next, (45,).
    """
    counts, edges = np.histogram(shape.angle, bins=45, range=(0, 90))
    return edges, counts


def order(triplets: Triplets, by: Order) -> Array:
    """Places of the triplets, the largest first."""
    values = shape_of(triplets).angle if by == "angle" else np.asarray(getattr(triplets, by))
    return np.argsort(-values, kind="stable")


def first_of_each_anchor(triplets: Triplets, places: Array) -> Array:
    """Of places (p,) the first of each anchor, in their order."""
    return places[np.sort(np.unique(triplets.anchor[places], return_index=True)[1])]


def truth(triplets: Triplets, labels: Array) -> tuple[Array, Array]:
    """Whether the positive is of the anchor's class, and whether the negative is of another, by the labels (n,) of the
    training images, (t,) bool each. A triplet is true where both hold."""
    own = labels[triplets.anchor]
    return own == labels[triplets.positive], own != labels[triplets.negative]


def corners(shape: Shape, place: int) -> Array:
    """Anchor, positive, negative and the symmetrized negative of one triplet in the plane, to scale, (4, 2).

    The midpoint of anchor and positive is the origin, and they lie on the first axis.
    """
    near, far, side = (float(values[place]) for values in (shape.near, shape.far, shape.side))
    half = math.sqrt(near) / 2
    along = (side - far - near / 4) / (2 * half) if half > 0 else 0.0
    along = max(-math.sqrt(far), min(math.sqrt(far), along))
    up = math.sqrt(max(0.0, far - along**2))
    return np.array([[-half, 0.0], [half, 0.0], [along, up], [0.0, math.sqrt(far)]])
