"""Nearest neighbors. The only file that imports faiss."""

from __future__ import annotations

from pathlib import Path

import faiss
import numpy as np

from udml_core.arrays import Array
from udml_core.errors import UserError


def nearest(points: Array, k: int, queries: Array | None = None) -> tuple[Array, Array]:
    """The k nearest points by Euclidean distance, by exact search.

    Args:
        points: (n, d), searched as float32.
        k: how many neighbors; at most n, or n − 1 without `queries`.
        queries: (q, d); without them the points themselves are asked, and a point is not its own neighbor.

    Returns:
        Squared distances (q, k) float32, never negative, ascending, and indices (q, k) int64.

    Raises:
        ValueError: k is below 1 or above what there is.
    """
    base = np.ascontiguousarray(points, dtype=np.float32)
    available = len(base) - (queries is None)
    if not 1 <= k <= available:
        raise ValueError(f"the number of neighbors must be between 1 and {available}, got {k}")
    if queries is not None:
        distances, indices = faiss.knn(np.ascontiguousarray(queries, dtype=np.float32), base, k)
        return np.maximum(distances, 0.0), indices
    distances, indices = faiss.knn(base, base, k + 1)
    return _without_self(np.maximum(distances, 0.0), indices)


def _without_self(distances: Array, indices: Array) -> tuple[Array, Array]:
    """Drop each row's own index; where duplicates pushed it out of the list, drop the last instead."""
    if np.array_equal(indices[:, 0], np.arange(len(indices))):
        return distances[:, 1:], indices[:, 1:]
    own = indices == np.arange(len(indices))[:, None]
    own[~own.any(axis=1), -1] = True
    kept = ~own
    shape = (len(indices), indices.shape[1] - 1)
    return distances[kept].reshape(shape), indices[kept].reshape(shape)


def build_index(points: Array) -> faiss.Index:
    """An exact index over the points' Euclidean distances."""
    index = faiss.IndexFlatL2(points.shape[1])
    index.add(np.ascontiguousarray(points, dtype=np.float32))
    return index


def search(index: faiss.Index, queries: Array, k: int, allowed: Array | None = None) -> tuple[Array, Array]:
    """The k nearest of the allowed points (bool mask (n,); all without it): squared distances and indices (q, k)."""
    count = index.ntotal if allowed is None else int(allowed.sum())
    k = min(k, count)
    if k == 0:
        empty = (len(queries), 0)
        return np.zeros(empty, np.float32), np.zeros(empty, np.int64)
    parameters = None
    if allowed is not None:
        selector = faiss.IDSelectorBatch(np.flatnonzero(allowed).astype(np.int64))
        parameters = faiss.SearchParameters(sel=selector)  # type: ignore[call-arg]
    distances, indices = index.search(np.ascontiguousarray(queries, dtype=np.float32), k, params=parameters)
    return np.maximum(distances, 0.0), indices


def write_index(index: faiss.Index, path: Path) -> None:
    """Store an index in faiss's own format."""
    faiss.write_index(index, str(path))


def read_index(path: Path) -> faiss.Index:
    """Read an index written by `write_index`.

    Raises:
        UserError: it is missing or broken.
    """
    try:
        return faiss.read_index(str(path))
    except (RuntimeError, MemoryError) as error:  # a length that was cut or spoilt can ask for any room
        raise UserError(f"{path} should hold an index and could not be read.") from error
