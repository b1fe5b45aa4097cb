"""Mutual nearest neighbors beside a loop over all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from udml_core.graph import mutual_pairs


@pytest.mark.parametrize(("count", "dimension", "k"), [(2, 3, 1), (30, 2, 1), (200, 5, 5), (60, 8, 59)])
@pytest.mark.parametrize("seed", [0, 1])
def test_mutual_pairs_are_the_brute_forces(count: int, dimension: int, k: int, seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
    distances = np.linalg.norm(points[:, None].astype(np.float64) - points[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    near = [set(np.argsort(row)[:k].tolist()) for row in distances]
    expected = [(i, j) for i in range(count) for j in range(i + 1, count) if j in near[i] and i in near[j]]
    found = mutual_pairs(points, k)
    assert found.dtype == np.int64
    assert [tuple(pair) for pair in found.tolist()] == expected


def test_a_hub_is_not_mutual() -> None:
    """Points on a line at 0, 1, 3, 7: each asks its left neighbor, and only the first two answer."""
    assert mutual_pairs(np.array([[0.0], [1], [3], [7]], dtype=np.float32), 1).tolist() == [[0, 1]]


def test_too_many_neighbors_are_refused() -> None:
    with pytest.raises(ValueError, match="between 1 and 3, got 4"):
        mutual_pairs(np.eye(4, dtype=np.float32), 4)
