"""Affinities on a subgraph, compared with the full graph.

Also triplets, ego graphs and spectra.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.exploration.test_label_spread import blob_graph, label_some
from udml_core.base.arrays import Array
from udml_core.exploration import affinity
from udml_core.numerics.evaluation import effective_rank
from udml_core.numerics.explanations import Affinities
from udml_core.numerics.graph import propagate


def labeled_graph(count: int = 120) -> tuple[affinity.LabelGraph, Array]:
    neighbors, classes = blob_graph(count)
    return affinity.LabelGraph(np.arange(count) * 2, neighbors, label_some(classes, 12)), classes


def test_a_training_graph_is_converted_to_data_set_indices() -> None:
    points, train = np.array([1, 4, 2]), np.array([10, 11, 12, 13, 20])
    record = Affinities(points, np.array([[4, 2], [2, 1], [1, 4]]), None, None, np.array([0, -1, 1]), None, None)
    graph = affinity.training_graph(record, train)
    assert graph.images.tolist() == [11, 20, 12]
    assert graph.images[graph.neighbors].tolist() == [[20, 12], [12, 11], [11, 20]]


def test_row_of_returns_the_row_or_none() -> None:
    graph = labeled_graph()[0]
    assert [graph.row_of(image) for image in (0, 1, 6, 238, 999, -1)] == [0, None, 3, 119, None, None]


def test_the_default_image_has_the_most_classes_in_its_neighborhood() -> None:
    neighbors = np.array([[1, 2], [0, 2], [0, 3], [4, 5], [3, 5], [3, 4]])
    for codes, expected in (([-1, 0, 0, 0, 1, -1], 3), ([-1, 0, 0, -1, -1, -1], 1), ([-1, -1, -1, -1, 2, 2], 5)):
        row = affinity.LabelGraph(np.arange(6), neighbors, np.array(codes)).most_informative_row
        hoods = [[codes[member] for member in (center, *neighbors[center]) if codes[member] >= 0]
                 for center in range(6)]
        ranks = [(len(set(hood)), len(hood)) for hood in hoods]
        assert ranks[row] == max(ranks)
        assert ranks[row] == ranks[expected]


def test_a_subgraph_grows_breadth_first() -> None:
    graph = labeled_graph()[0]
    steps, frontier = {5: 0}, [5]
    while frontier:
        frontier = sorted({int(neighbor) for row in frontier for neighbor in graph.neighbors[row]} - set(steps))
        steps |= dict.fromkeys(frontier, len(set(steps.values())))
    for limit in (1, 5, 30, 500):
        rows = graph.rows_around(5, limit).tolist()
        assert rows[0] == 5
        assert len(set(rows)) == len(rows) == min(limit, len(steps))
        assert [steps[row] for row in rows] == sorted(steps[row] for row in rows)


@pytest.mark.parametrize("gamma", [0.5, 0.99])
def test_the_affinities_of_the_full_graph_are_exact(gamma: float) -> None:
    graph = labeled_graph()[0]
    order = np.random.default_rng(4).permutation(len(graph.images))
    part = affinity.propagate_subgraph(graph, order, gamma)
    exact = propagate(graph.neighbors, graph.codes, gamma)
    np.testing.assert_allclose(part.after, exact.after[order], atol=1e-12)
    np.testing.assert_array_equal(part.before, exact.before[order])
    np.testing.assert_array_equal(part.rows[part.neighbors], graph.neighbors[order])
    assert part.complete.all()


def test_a_step_that_would_leave_the_subgraph_stays_in_place() -> None:
    graph = labeled_graph()[0]
    part = affinity.propagate_subgraph(graph, graph.rows_around(5, 40), 0.9)
    assert part.rows[part.neighbors[0]].tolist() == graph.neighbors[5].tolist()
    for position, row in enumerate(part.rows.tolist()):
        expected = [neighbor if neighbor in part.rows else row for neighbor in graph.neighbors[row].tolist()]
        assert part.rows[part.neighbors[position]].tolist() == expected
        assert part.complete[position] == (expected == graph.neighbors[row].tolist())
    ordered, values = part.sorted_neighbors(0)
    assert sorted(ordered.tolist()) == sorted(graph.neighbors[5].tolist())
    assert (np.diff(values) <= 0).all()


def test_triplets_are_judged_as_by_a_loop() -> None:
    graph, classes = labeled_graph()
    after = propagate(graph.neighbors, graph.codes, 0.9).after
    judged = []
    for row, neighbors in enumerate(graph.neighbors.tolist()):
        order = sorted(range(4), key=lambda position: -after[row, position])
        judged += [(classes[row] == classes[neighbors[order[j]]], classes[row] != classes[neighbors[order[j + 2]]])
                   for j in range(2)]
    truth = affinity.triplet_truth(graph.neighbors, after, classes)
    positive, negative = np.array(judged).T
    assert (truth.triplets, truth.judged) == (240, 240)
    assert (truth.positives, truth.negatives, truth.both) == pytest.approx(
        (positive.mean(), negative.mean(), (positive & negative).mean()))
    part = affinity.propagate_subgraph(graph, np.arange(120), 0.9)
    assert affinity.subgraph_truth(part, classes) == truth
    single = affinity.propagate_subgraph(graph, graph.rows_around(5, 1), 0.9)
    assert affinity.subgraph_truth(single, classes).triplets == 0


def test_sorted_by_distance_the_nearer_half_becomes_positives() -> None:
    neighbors = np.array([[1, 2, 3, 4]] * 5)
    truth = affinity.triplet_truth(neighbors[:1], affinity.by_distance(neighbors[:1]), np.array([0, 0, 1, 0, 0]))
    # The triplets are (0, 1, 3) and (0, 2, 4): one positive of two and both negatives have the anchor's class.
    assert (truth.triplets, truth.positives, truth.false_negatives, truth.both) == (2, 0.5, 1, 0)
    assert affinity.by_distance(neighbors).tolist() == [[0, -1, -2, -3]] * 5


def test_triplets_with_an_unknown_class_are_not_judged() -> None:
    neighbors = np.array([[1, 2], [0, 2], [0, 3], [0, 1]])
    after = np.array([[2.0, 1.0], [2.0, 1.0], [2.0, 1.0], [2.0, 1.0]])
    some = affinity.triplet_truth(neighbors, after, np.array([0, 0, 1, -1]))
    assert some == affinity.Truth(triplets=4, judged=2, positives=1, negatives=1, both=1)
    none = affinity.triplet_truth(neighbors, after, np.array([0, -1, 1, -1]))
    assert (none.triplets, none.judged) == (4, 0)
    assert np.isnan(none.both)


def test_the_ego_graph_contains_each_edge_of_two_steps_once() -> None:
    graph = labeled_graph()[0]
    part = affinity.propagate_subgraph(graph, graph.rows_around(5, 80), 0.9)
    drawn = affinity.ego_graph(part)
    inner = part.neighbors[0].tolist()
    expected = {tuple(sorted((start, int(end)))) for start in [0, *inner] for end in part.neighbors[start]}
    assert {tuple(edge) for edge in drawn.edges.tolist()} == expected
    assert len(drawn.edges) == len(expected)
    assert set(drawn.outer.tolist()) == {position for edge in expected for position in edge} - {0, *inner}
    for position, parent in zip(drawn.outer.tolist(), drawn.parents.tolist(), strict=True):
        assert position in part.neighbors[inner[parent]]
    for (start, end), value in zip(drawn.edges.tolist(), drawn.after.tolist(), strict=True):
        both = [part.after[a][part.neighbors[a] == b] for a, b in ((start, end), (end, start))]
        assert value == pytest.approx(float(np.concatenate(both)[0]))


def test_the_effective_rank_of_a_line_is_one_and_of_a_ball_nearly_full() -> None:
    random = np.random.default_rng(0)
    ball, line = random.normal(size=(300, 8)), np.outer(random.normal(size=300), np.ones(8))
    for points in (ball, line):
        spectrum = affinity.spectrum(points)
        assert spectrum.values.sum() == pytest.approx(1)
        assert (np.diff(spectrum.values) <= 1e-12).all()
        assert spectrum.rank == effective_rank(points)
    assert affinity.spectrum(line).values[0] == pytest.approx(1)
    assert affinity.spectrum(ball).rank > 7.5
    assert affinity.spectrum(np.ones((5, 3))).values.tolist() == [0, 0, 0]
