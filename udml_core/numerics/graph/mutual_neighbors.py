"""Pairs of mutual nearest neighbors."""

from __future__ import annotations

import numpy as np

from udml_core.base.arrays import Array, Integers
from udml_core.numerics.neighbors import graph_neighbors


def mutual_pairs(points: Array, n_neighbors: int = 5) -> Array:
    """Return all pairs of points that are among each other's nearest neighbors.

    Above 200,000 points the neighbors are approximate; see `graph_neighbors`.

    Args:
        points: (n, d), with n above `n_neighbors`.
        n_neighbors: k, the number of nearest neighbors of each point.

    Returns:
        Pairs i < j in ascending order, (p, 2) int64.
    """
    return mutual_pairs_of(graph_neighbors(points, n_neighbors)[1])


def mutual_pairs_of(neighbors: Integers) -> Array:
    """Return the pairs i < j of which each is in the other's list of neighbors (n, k), (p, 2) int64 ascending."""
    count, length = neighbors.shape
    rows = np.repeat(np.arange(count), length)
    columns = neighbors.ravel()
    # Encode each directed edge as one integer: an edge is mutual if its reverse is an edge too.
    edges = np.sort(rows * count + columns)
    reversed_edges = columns * count + rows
    mutual = reversed_edges[np.isin(reversed_edges, edges, assume_unique=True) & (columns < rows)]
    mutual.sort()
    return np.stack([mutual // count, mutual % count], axis=1)
