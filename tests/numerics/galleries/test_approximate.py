"""Approximate neighbors of many points, and the graphs that use them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import normalized_mutual_info_score

from tests.numerics.galleries.literal import grouped, literal_nearest, literal_recall, squared_distances
from udml_core.numerics.graph import AuthorityGraph, mutual_pairs
from udml_core.numerics.neighbors import approximate, approximate_nearest, graph_neighbors, nearest
from udml_core.numerics.neighbors.approximate import Approximate
from udml_core.numerics.refinement import unit_neighbors as search
from udml_core.numerics.refinement.linear import unit_rows

COUNT = 20_000


@pytest.fixture(scope="module")
def neighbors() -> Approximate:
    return approximate_nearest(grouped(COUNT), 15)


@pytest.fixture
def low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search approximately from 1,000 points on."""
    monkeypatch.setattr(approximate, "EXACT_UP_TO", 1000)
    monkeypatch.setattr(search, "EXACT_UP_TO", 1000)
    monkeypatch.setattr(search, "EXACT_BELOW", 1000)


def test_at_least_95_percent_of_the_neighbors_are_found(neighbors: Approximate) -> None:
    points, rows = grouped(COUNT), np.arange(0, COUNT, 200)
    truth = literal_nearest(points[rows], points, np.arange(COUNT), 16)[:, 1:]
    recall = literal_recall(neighbors.indices[rows], truth)
    assert recall >= 0.95
    assert neighbors.recall >= 0.95
    assert abs(recall - neighbors.recall) < 0.03
    assert neighbors.probes < neighbors.lists / 4


def test_neighbors_are_distinct_other_points_in_the_order_of_their_true_distance(neighbors: Approximate) -> None:
    points, rows = grouped(COUNT), np.arange(0, COUNT, 500)
    assert neighbors.indices.shape == neighbors.distances.shape == (COUNT, 15)
    assert not (neighbors.indices == np.arange(COUNT)[:, None]).any()
    assert (np.diff(np.sort(neighbors.indices, axis=1)) > 0).all()
    literal = np.take_along_axis(squared_distances(points[rows], points), neighbors.indices[rows], axis=1)
    np.testing.assert_allclose(neighbors.distances[rows], literal, rtol=1e-4)
    assert (np.diff(neighbors.distances, axis=1) >= 0).all()


def test_duplicates_are_neighbors_of_each_other() -> None:
    points = np.repeat(grouped(400), 5, axis=0)
    found = approximate_nearest(points, 4)
    assert (found.distances == 0).all()
    assert (np.sort(found.indices // 5, axis=1) == (np.arange(2000) // 5)[:, None]).all()
    assert not (found.indices == np.arange(2000)[:, None]).any()


def test_k_beyond_the_visited_lists_returns_all_points() -> None:
    found = approximate_nearest(grouped(100), 99)
    assert (np.sort(np.c_[found.indices, np.arange(100)], axis=1) == np.arange(100)).all()


def test_separate_queries_find_95_percent() -> None:
    points, queries = grouped(5000), grouped(800, seed=6)
    found = approximate_nearest(points, 10, queries=queries)
    assert literal_recall(found.indices, literal_nearest(queries, points, np.arange(5000), 10)) >= 0.95


@pytest.mark.parametrize("k", [0, 50])
def test_k_without_enough_points_is_refused(k: int) -> None:
    with pytest.raises(ValueError, match=f"between 1 and 49, got {k}"):
        approximate_nearest(grouped(50), k)


def test_up_to_the_limit_neighbors_are_exact_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    points = grouped(2000)
    monkeypatch.setattr(approximate, "EXACT_UP_TO", 2000)
    for ours, exact in zip(graph_neighbors(points, 10), nearest(points, 10), strict=True):
        np.testing.assert_array_equal(ours, exact)
    monkeypatch.setattr(approximate, "EXACT_UP_TO", 1999)
    assert (graph_neighbors(points, 10)[1] != nearest(points, 10)[1]).any()


@pytest.mark.parametrize("step", ["training the index", "dividing the points among lists", "measuring the recall",
                                  "neighbors"])
def test_every_step_reports_and_can_be_canceled(step: str) -> None:
    def cancel(_share: float, reported: str) -> None:
        if reported == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        approximate_nearest(grouped(500), 3, cancel)


def test_shares_of_a_step_rise_to_at_most_one() -> None:
    reports = list[tuple[str, float]]()
    approximate_nearest(grouped(500), 3, lambda share, step: reports.append((step, share)))
    assert all(0 <= share <= 1 for _, share in reports)
    for step in dict(reports):
        shares = [share for reported, share in reports if reported == step]
        assert shares == sorted(shares)


def test_clusters_above_the_limit_resemble_the_exact_clusters(low_limit: None) -> None:
    points = grouped(3000, groups=12)
    steps = list[str]()
    graph = AuthorityGraph.build(points, 20, report=lambda _share, step: steps.append(step))
    assert "neighbors" in steps
    squared, indices = nearest(points, 20)
    exact = AuthorityGraph.of_neighbors(squared, indices)
    scores = normalized_mutual_info_score(graph.clusters().labels, exact.clusters().labels)
    assert scores >= 0.9


def test_mutual_pairs_above_the_limit_are_95_percent_of_the_exact_pairs(low_limit: None,
                                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    points = grouped(3000)
    found = set(map(tuple, mutual_pairs(points, 10).tolist()))
    monkeypatch.setattr(approximate, "EXACT_UP_TO", 3000)
    exact = set(map(tuple, mutual_pairs(points, 10).tolist()))
    assert 0.95 <= len(found & exact) / len(exact) < 1


@pytest.mark.parametrize("dimension", [32, 300])
@pytest.mark.parametrize("own", [True, False])
def test_unit_rows_above_the_limit_find_95_percent(dimension: int, own: bool, low_limit: None) -> None:
    rows = unit_rows(grouped(3000, dimension))
    queries = None if own else unit_rows(grouped(1200, dimension, seed=6))
    distances, indices = search.nearest_unit(rows, 10, queries)
    exact, truth = nearest(rows, 10, queries)
    assert literal_recall(indices, truth) >= 0.95
    if dimension < search.DIMENSION:  # the candidates of wide rows are so many that all neighbors are among them
        assert (indices != truth).any()
    assert (distances >= exact - 1e-5).all()
