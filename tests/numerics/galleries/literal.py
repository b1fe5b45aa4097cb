"""Vectors in groups, and a literal search."""

from __future__ import annotations

import numpy as np

from udml_core.base.arrays import Array


def grouped(count: int, dimension: int = 24, groups: int = 60, seed: int = 0) -> Array:
    """Return vectors (count, dimension) float32 around random centers."""
    random = np.random.default_rng(seed)
    centers = 2 * np.random.default_rng(99).normal(size=(groups, dimension))
    return (centers[random.integers(groups, size=count)] + random.normal(size=(count, dimension))).astype(np.float32)


def squared_distances(queries: Array, vectors: Array) -> Array:
    """Return the squared distances (q, n) float64."""
    return np.stack([((vectors.astype(np.float64) - query) ** 2).sum(axis=1) for query in queries.astype(np.float64)])


def literal_nearest(queries: Array, vectors: Array, ids: Array, k: int) -> Array:
    """Return the ids (q, k) of the k nearest vectors of each query."""
    return ids[np.argsort(squared_distances(queries, vectors), axis=1, kind="stable")[:, :k]]


def literal_recall(found: Array, truth: Array) -> float:
    """Return the share of the true ids (q, k) that were found."""
    return sum(len(set(row) & set(true)) for row, true in zip(found.tolist(), truth.tolist(), strict=True)) / truth.size
