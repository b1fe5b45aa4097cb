"""Mutual nearest neighbors, compared with a loop over all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from udml_core.numerics.graph import mutual_pairs


@pytest.mark.parametrize(("count", "dimension", "k"), [(2, 3, 1), (30, 2, 1), (200, 5, 5), (60, 8, 59)])
@pytest.mark.parametrize("seed", [0, 1])
def test_mutual_pairs_equal_a_brute_force_search(count: int, dimension: int, k: int, seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
    distances = np.linalg.norm(points[:, None].astype(np.float64) - points[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    nearest = [set(np.argsort(row)[:k].tolist()) for row in distances]
    expected = [(i, j) for i in range(count) for j in range(i + 1, count) if j in nearest[i] and i in nearest[j]]
    pairs = mutual_pairs(points, k)
    assert pairs.dtype == np.int64
    assert [tuple(pair) for pair in pairs.tolist()] == expected


def test_a_hub_is_not_a_mutual_neighbor() -> None:
    """Points lie at 0, 1, 3, 7, and each point's nearest neighbor is on its left.

    Only the first two points are mutual.
    """
    assert mutual_pairs(np.array([[0.0], [1], [3], [7]], dtype=np.float32), 1).tolist() == [[0, 1]]


def test_too_many_neighbors_raise_an_error() -> None:
    with pytest.raises(ValueError, match="between 1 and 3, got 4"):
        mutual_pairs(np.eye(4, dtype=np.float32), 4)
