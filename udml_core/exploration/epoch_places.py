"""The map after training as the ground on which earlier embeddings move."""

from __future__ import annotations

import numpy as np

from udml_core.base.arrays import Array
from udml_core.numerics.neighbors import nearest

NEIGHBORS = 10
"""Neighbors that a point is placed by, as many as a map stores."""


def place_among_neighbors(embedding: Array, layout: Array, k: int = NEIGHBORS) -> tuple[Array, Array]:
    """Place each point at the mean of its neighbors' positions.

    So the layout after training shows an earlier embedding: points whose neighbors belong to many clusters lie between
    the clusters.

    Args:
        embedding: Points (n, l), at least two.
        layout: Positions (n, 2) of the same points in another embedding.
        k: Number of neighbors; fewer if there are fewer points.

    Returns:
        Positions (n, 2) float32, and the rows (n, k) int32 of the neighbors in the embedding.
    """
    neighbors = nearest(embedding, min(k, len(embedding) - 1))[1].astype(np.int32)
    return np.asarray(layout, dtype=np.float32)[neighbors].mean(axis=1), neighbors
