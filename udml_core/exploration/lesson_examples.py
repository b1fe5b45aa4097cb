"""The small examples of the lessons.

They are computed with the same functions as the methods.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udml_core.base.arrays import Array
from udml_core.base.paths import ASSETS
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.numerics.graph import AuthorityGraph

SMALLEST = 45


@dataclass(frozen=True)
class Ascent:
    """Points for a lesson on authority ascent.

    Attributes:
        graph: The points' neighbor graph.
        positions: (n, 2) positions in the drawing.
    """

    graph: AuthorityGraph
    positions: Array


def smallest_ascent() -> Ascent:
    """Return three groups of 15 points in the plane, two of them close together."""
    random = np.random.default_rng(7)
    centers = np.repeat([[0.0, 0.0], [1.2, 0.3], [5.5, -0.4]], SMALLEST // 3, axis=0)
    points = (centers + random.normal(0, 0.45, (SMALLEST, 2))).astype(np.float32)
    return Ascent(AuthorityGraph.build(points, 10), points)


def digits_vectors() -> Array:
    """Return unit-length pixels of the digits, (1797, 64) float32.

    The order is that of the data set.
    """
    digits = catalog.load("digits")
    pixels = np.stack([np.asarray(digits.images[index].convert("L")) for index in range(len(digits))])
    rows = pixels.reshape(len(digits), -1).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def digits_ascent(n_neighbors: int = 20) -> tuple[Dataset, Ascent]:
    """Return the digits and their pixel graph.

    experiments/make_digits_layout.py computed the t-SNE positions.
    """
    return catalog.load("digits"), Ascent(AuthorityGraph.build(digits_vectors(), n_neighbors),
                                          np.load(ASSETS / "lessons" / "digits.npy", allow_pickle=False))
