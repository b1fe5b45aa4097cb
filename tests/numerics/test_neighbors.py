"""Exact neighbors compared with a full sort of float64 distances."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from udml_core.base.arrays import Array
from udml_core.numerics.neighbors import build_index, nearest, read_index, search, write_index


def gaussian_points(count: int, dimension: int = 6, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)


def squared_distances(queries: Array, points: Array) -> Array:
    return ((queries[:, None].astype(np.float64) - points[None]) ** 2).sum(axis=2)


def brute_force(queries: Array, points: Array, k: int, excluded: Array | None = None) -> tuple[Array, Array]:
    """Return squared distances and indices of the k nearest.

    `excluded` marks (query, point) pairs to leave out."""
    squared = squared_distances(queries, points)
    if excluded is not None:
        squared[excluded] = np.inf
    order = np.argsort(squared, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(squared, order, axis=1), order


@pytest.mark.parametrize(("count", "k"), [(2, 1), (15, 14), (200, 7)])
def test_nearest_matches_brute_force_among_the_points(count: int, k: int) -> None:
    points = gaussian_points(count)
    distances, indices = nearest(points, k)
    expected, order = brute_force(points, points, k, np.eye(count, dtype=bool))
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_allclose(distances, expected, rtol=1e-4, atol=1e-5)
    assert (distances.dtype, indices.dtype) == (np.float32, np.int64)


@pytest.mark.parametrize("k", [1, 5, 50])
def test_nearest_matches_brute_force_for_queries(k: int) -> None:
    points, queries = gaussian_points(50), gaussian_points(30, seed=1)
    distances, indices = nearest(points, k, queries)
    expected, order = brute_force(queries, points, k)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_allclose(distances, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("copies", [2, 9, 40])
@pytest.mark.parametrize("k", [1, 3, 20])
def test_a_point_is_never_its_own_neighbor_with_any_number_of_duplicates(copies: int, k: int) -> None:
    points = np.repeat(gaussian_points(80 // copies), copies, axis=0)
    points = points[np.random.default_rng(3).permutation(len(points))]
    distances, indices = nearest(points, k)
    assert indices.shape == distances.shape == (len(points), k)
    for i, row in enumerate(indices):
        assert i not in row
        assert len(set(row)) == k
    expected, _ = brute_force(points, points, k, np.eye(len(points), dtype=bool))
    np.testing.assert_allclose(distances, expected, atol=1e-5)
    assert (distances >= 0).all()
    assert (np.diff(distances, axis=1) >= 0).all()


@pytest.mark.parametrize("copies", [1, 2, 30])
def test_queries_among_the_points_are_left_out_of_a_search_for_one_more(copies: int) -> None:
    points, own = np.repeat(gaussian_points(60 // copies), copies, axis=0), np.array([17, 4, 4, 59])
    squared, rows = nearest(points, 8, points[own])
    left_out = [row.index(index) if index in row else 7 for row, index in zip(rows.tolist(), own, strict=True)]
    for actual, longer in zip(nearest(points, 7, own=own), (squared, rows), strict=True):
        np.testing.assert_array_equal(actual, [np.delete(row, at) for row, at in zip(longer, left_out, strict=True)])


def test_queries_of_their_own_exclude_their_rows_and_a_query_from_outside_excludes_none() -> None:
    points, queries = gaussian_points(40), gaussian_points(3, seed=1)
    squared, rows = nearest(points, 8, queries)
    kept, found = nearest(points, 7, queries, np.array([rows[0, 2], -1, rows[2, 7]]))
    np.testing.assert_array_equal(found, [np.delete(rows[0], 2), rows[1, :7], rows[2, :7]])
    np.testing.assert_array_equal(kept, [np.delete(squared[0], 2), squared[1, :7], squared[2, :7]])


def test_nearest_accepts_other_dtypes_and_memory_layouts() -> None:
    points = gaussian_points(30)
    expected = nearest(points, 4)[1]
    np.testing.assert_array_equal(nearest(np.asfortranarray(points.astype(np.float64)), 4)[1], expected)


@pytest.mark.parametrize(("k", "queries", "available"), [
    (0, False, 9), (10, False, 9), (-1, False, 9), (0, True, 10), (11, True, 10),
])
def test_nearest_rejects_a_number_of_neighbors_out_of_range(k: int, queries: bool, available: int) -> None:
    with pytest.raises(ValueError, match=f"between 1 and {available}, got {k}"):
        nearest(gaussian_points(10), k, gaussian_points(3) if queries else None)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_search_returns_the_nearest_allowed_points(share: float) -> None:
    points, queries = gaussian_points(60), gaussian_points(8, seed=1)
    allowed = np.random.default_rng(2).permutation(60) < share * 60
    distances, indices = search(build_index(points), queries, 10, allowed)
    expected, order = brute_force(queries, points, min(10, int(allowed.sum())), np.tile(~allowed, (8, 1)))
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_allclose(distances, expected, rtol=1e-4, atol=1e-5)


def test_search_without_a_mask_ranks_each_point_first_among_all_points() -> None:
    points = gaussian_points(12)
    distances, indices = search(build_index(points), points, 99)
    assert indices.shape == (12, 12)
    np.testing.assert_array_equal(indices[:, 0], np.arange(12))
    np.testing.assert_allclose(distances[:, 0], 0, atol=1e-5)


def test_a_stored_index_gives_the_same_results(tmp_path: Path) -> None:
    points, queries = gaussian_points(40), gaussian_points(5, seed=1)
    index = build_index(points)
    write_index(index, tmp_path / "index.faiss")
    for before, after in zip(search(index, queries, 7), search(read_index(tmp_path / "index.faiss"), queries, 7),
                             strict=True):
        np.testing.assert_array_equal(before, after)
