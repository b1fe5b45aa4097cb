"""Exact neighbors beside a full sort of float64 distances."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from udml_core.arrays import Array
from udml_core.neighbors import build_index, nearest, read_index, search, write_index


def normal(count: int, dimension: int = 6, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)


def squared_distances(queries: Array, points: Array) -> Array:
    return ((queries[:, None].astype(np.float64) - points[None]) ** 2).sum(axis=2)


def brute_force(queries: Array, points: Array, k: int, without: Array | None = None) -> tuple[Array, Array]:
    """Squared distances and indices; `without` marks the (query, point) pairs that do not count."""
    squared = squared_distances(queries, points)
    if without is not None:
        squared[without] = np.inf
    order = np.argsort(squared, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(squared, order, axis=1), order


@pytest.mark.parametrize(("count", "k"), [(2, 1), (15, 14), (200, 7)])
def test_nearest_of_the_points_themselves(count: int, k: int) -> None:
    points = normal(count)
    distances, indices = nearest(points, k)
    expected, order = brute_force(points, points, k, np.eye(count, dtype=bool))
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_allclose(distances, expected, rtol=1e-4, atol=1e-5)
    assert (distances.dtype, indices.dtype) == (np.float32, np.int64)


@pytest.mark.parametrize("k", [1, 5, 50])
def test_nearest_to_queries(k: int) -> None:
    points, queries = normal(50), normal(30, seed=1)
    distances, indices = nearest(points, k, queries)
    expected, order = brute_force(queries, points, k)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_allclose(distances, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("copies", [2, 9, 40])
@pytest.mark.parametrize("k", [1, 3, 20])
def test_a_point_is_never_its_own_neighbor_however_many_copies_there_are(copies: int, k: int) -> None:
    points = np.repeat(normal(80 // copies), copies, axis=0)
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


def test_nearest_takes_other_types_and_layouts() -> None:
    points = normal(30)
    expected = nearest(points, 4)[1]
    np.testing.assert_array_equal(nearest(np.asfortranarray(points.astype(np.float64)), 4)[1], expected)


@pytest.mark.parametrize(("k", "queries", "available"), [
    (0, False, 9), (10, False, 9), (-1, False, 9), (0, True, 10), (11, True, 10),
])
def test_the_number_of_neighbors_has_bounds(k: int, queries: bool, available: int) -> None:
    with pytest.raises(ValueError, match=f"between 1 and {available}, got {k}"):
        nearest(normal(10), k, normal(3) if queries else None)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_search_finds_the_nearest_of_the_allowed(share: float) -> None:
    points, queries = normal(60), normal(8, seed=1)
    allowed = np.random.default_rng(2).permutation(60) < share * 60
    distances, indices = search(build_index(points), queries, 10, allowed)
    expected, order = brute_force(queries, points, min(10, int(allowed.sum())), np.tile(~allowed, (8, 1)))
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_allclose(distances, expected, rtol=1e-4, atol=1e-5)


def test_search_without_a_mask_finds_all_and_a_point_itself_first() -> None:
    points = normal(12)
    distances, indices = search(build_index(points), points, 99)
    assert indices.shape == (12, 12)
    np.testing.assert_array_equal(indices[:, 0], np.arange(12))
    np.testing.assert_allclose(distances[:, 0], 0, atol=1e-5)


def test_an_index_is_read_as_it_was_written(tmp_path: Path) -> None:
    points, queries = normal(40), normal(5, seed=1)
    index = build_index(points)
    write_index(index, tmp_path / "index.faiss")
    for before, after in zip(search(index, queries, 7), search(read_index(tmp_path / "index.faiss"), queries, 7),
                             strict=True):
        np.testing.assert_array_equal(before, after)
