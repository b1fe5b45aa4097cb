"""Pairs of points that are among each other's nearest."""

from __future__ import annotations

import numpy as np

from udml_core.arrays import Array
from udml_core.neighbors import nearest


def mutual_pairs(points: Array, n_neighbors: int = 5) -> Array:
    """All pairs i < j that are mutually among their `n_neighbors` nearest, (p, 2) int64, in ascending order.

    Args:
        points: (n, d), n above `n_neighbors`.
    """
    _, neighbors = nearest(points, n_neighbors)
    count = len(points)
    rows = np.repeat(np.arange(count), n_neighbors)
    columns = neighbors.ravel()
    forward = np.sort(rows * count + columns)
    backward = columns * count + rows
    mutual = backward[np.isin(backward, forward, assume_unique=True) & (columns < rows)]
    mutual.sort()
    return np.stack([mutual // count, mutual % count], axis=1)
