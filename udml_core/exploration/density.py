"""How densely an embedding is populated, and how much an image stands apart, from distances to nearest neighbors."""

from __future__ import annotations

import numpy as np

from udml_core.base.arrays import Array

BLOCK = 4096
SMALLEST = 1e-10
"""Added to mean distances, as scikit-learn does, so that duplicates have a finite density."""
LEAST_SHARE = 2.0**-6
"""Mean distances below this share of the median count as this share, so that duplicates do not stretch the scale."""


def neighbor_distances(embeddings: Array, neighbors: Array) -> Array:
    """Measure the distance from each point to its neighbors.

    Args:
        embeddings: (n, d).
        neighbors: Rows (n, k) of the nearest neighbors, nearest first.

    Returns:
        Euclidean distances (n, k) float32.
    """
    points = np.asarray(embeddings, dtype=np.float32)
    distances = np.empty(neighbors.shape, dtype=np.float32)
    for start in range(0, len(points), BLOCK):
        rows = slice(start, start + BLOCK)
        distances[rows] = np.linalg.norm(points[neighbors[rows]] - points[rows, None], axis=2)
    return distances


def density(distances: Array) -> Array:
    """Compare each point's mean distance to its neighbors with the median point's, in doublings.

    Args:
        distances: (n, k) distances to the nearest neighbors.

    Returns:
        log₂(median / mean distance) (n,): 0 for the median point, 1 where neighbors are half as far away, −1 where they
        are twice as far away.
    """
    means = np.asarray(distances, dtype=np.float64).mean(axis=1)
    middle = float(np.median(means))
    if middle <= 0:
        return np.zeros(len(means))
    return np.log2(middle / np.maximum(means, LEAST_SHARE * middle))


def outlier_score(distances: Array, neighbors: Array) -> Array:
    """Compute the local outlier factor: how much sparser a point's surroundings are than its neighbors' surroundings.

    Args:
        distances: (n, k) distances to the nearest neighbors, nearest first.
        neighbors: (n, k) rows of these neighbors.

    Returns:
        (n,); about 1 inside a group, clearly above 1 for an outlier.

    References:
        M. Breunig, H.-P. Kriegel, R. Ng, J. Sander, "LOF: Identifying Density-Based Local Outliers", SIGMOD 2000.
    """
    distances = np.asarray(distances, dtype=np.float64)
    reach = np.maximum(distances, distances[:, -1][neighbors])  # reachability distances, definition 5
    reachability_density = 1 / (reach.mean(axis=1) + SMALLEST)
    return reachability_density[neighbors].mean(axis=1) / reachability_density
