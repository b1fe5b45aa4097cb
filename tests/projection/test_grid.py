"""The snapped grid: a real assignment, least in total, and seams of true distance."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from udml_core.arrays import Array
from udml_core.projection import grid
from udml_core.projection.grid import seams, snapped


def cost(layout: Array, cells: Array, rows: int, columns: int) -> float:
    """Mean squared way from a point to its cell, in cells, where the layout fills the grid."""
    low, high = layout.min(axis=0), layout.max(axis=0)
    points = (layout - low) / (high - low) * (columns, rows)
    centers = np.stack([cells % columns, cells // columns], axis=1) + 0.5
    return float(((points - centers) ** 2).sum(axis=1).mean())


def clustered(count: int, seed: int = 0) -> Array:
    """Points in blobs of unequal size with empty space between, as maps have them."""
    random = np.random.default_rng(seed)
    centers = random.uniform(-10, 10, (12, 2))
    return centers[random.integers(0, 12, count) ** 2 % 12] + random.normal(0, 1, (count, 2))


@pytest.mark.parametrize("seed", range(4))
def test_few_points_are_assigned_as_the_best_of_all_permutations(seed: int) -> None:
    layout = np.random.default_rng(seed).normal(size=(6, 2))
    cells, rows, columns = snapped(layout)
    best = min(cost(layout, np.array(order), rows, columns) for order in permutations(range(rows * columns), 6))
    assert cost(layout, cells, rows, columns) == pytest.approx(best)


@pytest.mark.parametrize("layout", [clustered(2000), np.random.default_rng(0).normal(size=(1000, 2)) ** 3],
                         ids=["clusters", "heavy tails"])
def test_windows_come_within_two_percent_of_the_best(layout: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    best = cost(layout, *snapped(layout))
    monkeypatch.setattr(grid, "EXACT", 0)
    shares: list[float] = []
    cells, rows, columns = snapped(layout, shares.append)
    assert cost(layout, cells, rows, columns) < 1.02 * best
    assert len(np.unique(cells)) == len(layout)
    assert shares == sorted(shares)


@pytest.mark.parametrize("exact", [0, 10_000])
@pytest.mark.parametrize("count", [1, 2, 13, 700])
def test_every_image_has_a_cell_of_its_own_and_few_cells_are_empty(
        count: int, exact: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "EXACT", exact)
    cells, rows, columns = snapped(clustered(count))
    assert len(np.unique(cells)) == count
    assert cells.min() >= 0
    assert cells.max() < rows * columns < count + columns


def test_the_grid_is_as_wide_as_the_layout() -> None:
    layout = np.random.default_rng(0).uniform(size=(400, 2))
    _, rows, columns = snapped(layout * (4.0, 1.0))
    assert columns / rows == pytest.approx(4, rel=0.1)
    _, rows, columns = snapped(layout * (1e9, 1.0))
    assert columns / rows == pytest.approx(4, rel=0.1)
    assert snapped(np.zeros((9, 2)))[1:] == (3, 3)


def test_seams_are_the_distances_of_grid_neighbors_and_nothing_beside_an_empty_cell() -> None:
    vectors = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]], np.float32)
    right, down = seams(vectors, np.array([0, 1, 2]), 2, 2)  # the last cell is empty
    np.testing.assert_allclose(right, [[5.0], [np.nan]])
    np.testing.assert_allclose(down, [[1.0, np.nan]])
