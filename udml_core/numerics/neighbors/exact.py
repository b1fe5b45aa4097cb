"""Exact nearest-neighbor search."""

from __future__ import annotations

from pathlib import Path

import faiss
import numpy as np

from udml_core.base.arrays import Array, Booleans, Floats, Integers
from udml_core.base.errors import UserError
from udml_core.base.files import check_regular, publish


def nearest(points: Array, k: int, queries: Array | None = None, own: Integers | None = None
            ) -> tuple[Floats, Integers]:
    """Find the k nearest points by Euclidean distance.

    Args:
        points: Points (n, d), searched as float32.
        k: Number of neighbors: at most n with `queries` alone, otherwise n − 1.
        queries: Query points (q, d); by default the points of `own`.
        own: Row (q,) of each query among the points, which is not its neighbor; −1 for a query from outside. By default
            each point is a query.

    Returns:
        Squared distances (q, k) float32, never negative, ascending, and indices (q, k) int64.

    Raises:
        ValueError: k is below 1 or above the number of available points.
    """
    base = np.ascontiguousarray(points, dtype=np.float32)
    if queries is None:
        queries, own = (base, np.arange(len(base))) if own is None else (base[own], own)
    available = len(base) - (own is not None)
    if not 1 <= k <= available:
        raise ValueError(f"The number of neighbors must be between 1 and {available}, got {k}. Change k or add points.")
    distances, indices = faiss.knn(np.ascontiguousarray(queries, dtype=np.float32), base, k + (own is not None))
    distances = np.maximum(distances, 0.0)
    return (distances, indices) if own is None else without_own(distances, indices, own)


def largest_products(points: Array, k: int, queries: Array) -> Integers:
    """Find the points (n, d) of the k largest inner products with each query (q, d); return indices (q, k) int64."""
    return faiss.knn(np.ascontiguousarray(queries, dtype=np.float32), np.ascontiguousarray(points, dtype=np.float32), k,
                     metric=faiss.METRIC_INNER_PRODUCT)[1]


def without_own(values: Floats, indices: Integers, own: Integers) -> tuple[Floats, Integers]:
    """Drop the own index (q,) of each query from its ranking.

    If duplicates displaced the own index, the last index is dropped.

    Args:
        values: Values (q, k + 1) of the ranked points, such as distances.
        indices: Indices (q, k + 1) of the ranked points.
        own: Index (q,) of each query; −1 for a query from outside.
    """
    if np.array_equal(indices[:, 0], own):
        return values[:, 1:], indices[:, 1:]
    kept = indices != own[:, None]
    kept[kept.all(axis=1), -1] = False
    shape = (len(indices), indices.shape[1] - 1)
    return values[kept].reshape(shape), indices[kept].reshape(shape)


def build_index(points: Array) -> faiss.Index:
    """Build an exact index of Euclidean distances over points (n, d)."""
    index = faiss.IndexFlatL2(points.shape[1])
    index.add(np.ascontiguousarray(points, dtype=np.float32))
    return index


def search(index: faiss.Index, queries: Array, k: int, allowed: Booleans | None = None) -> tuple[Floats, Integers]:
    """Find the k nearest allowed points of an index.

    Args:
        index: An index over n points.
        queries: Query points (q, d).
        k: Number of neighbors; all allowed points if there are fewer.
        allowed: Mask (n,) of the points to search; all points by default.

    Returns:
        Squared distances and indices (q, k).
    """
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
    """Write an index in faiss's own format, atomically."""
    aside = path.with_suffix(".part")
    faiss.write_index(index, str(aside))
    publish(aside, path)


def read_index(path: Path) -> faiss.Index:
    """Read an index written by `write_index`.

    Raises:
        UserError: The file is missing or damaged.
    """
    try:
        check_regular(path)
        return faiss.read_index(str(path))
    except (OSError, RuntimeError, MemoryError) as error:  # a damaged length field can request any amount of memory
        raise UserError(f"{path} should hold a search index, but could not be read: {error}. "
                        "Resume the run, or start a new one.") from error
