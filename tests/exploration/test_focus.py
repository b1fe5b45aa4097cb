"""The stand-in of an image, and the labels that reach it, compared with other computations."""

from __future__ import annotations

import numpy as np
import pytest

from udml_core.exploration.focus import label_sources, stand_in
from udml_core.exploration.label_spread import walk_ends
from udml_core.numerics.neighbors import nearest


def test_stand_in_is_the_image_itself_or_the_nearest() -> None:
    points = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    among = np.arange(0, 50, 7)
    assert stand_in(points, 14, among) == 14
    expected = min(among.tolist(), key=lambda other: float(((points[other] - points[3]) ** 2).sum()))
    assert stand_in(points, 3, among) == expected


@pytest.fixture(scope="module")
def graph() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    neighbors = nearest(random.normal(size=(60, 3)).astype(np.float32), 5)[1]
    codes = np.where(random.random(60) < 0.2, random.integers(0, 3, 60), -1)
    return neighbors, codes


@pytest.mark.parametrize("row", [0, 17, 59])
def test_sources_add_up_to_where_walks_end(graph: tuple[np.ndarray, np.ndarray], row: int) -> None:
    neighbors, codes = graph
    walks, sources = walk_ends(neighbors, codes, 3, 0.9), label_sources(neighbors, codes, row, 0.9)
    by_class = [sources.total * sources.shares[sources.codes == code].sum() for code in range(3)]
    np.testing.assert_allclose(by_class, walks.reach[row], atol=1e-5)
    assert sources.best == walks.best[row]
    assert sources.certainty == pytest.approx(walks.certainty[row], abs=1e-4)
    assert (np.diff(sources.shares) <= 0).all()


def test_one_source_equals_the_solution_for_this_label_alone(graph: tuple[np.ndarray, np.ndarray]) -> None:
    neighbors, codes = graph
    sources = label_sources(neighbors, codes, 5, 0.9)
    alone = np.where(np.arange(60) == sources.rows[1], 0, -1)
    assert sources.total * sources.shares[1] == pytest.approx(walk_ends(neighbors, alone, 1, 0.9).reach[5, 0], abs=1e-5)


def test_no_label_has_no_source(graph: tuple[np.ndarray, np.ndarray]) -> None:
    sources = label_sources(graph[0], np.full(60, -1), 0, 0.9)
    assert (len(sources.rows), sources.best, sources.certainty, sources.total) == (0, -1, 0.0, 0.0)
