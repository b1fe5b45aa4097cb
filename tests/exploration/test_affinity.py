"""Affinities on a part of a graph beside those of the whole, the triplets that follow, the drawing's edges, spectra."""

from __future__ import annotations

import numpy as np
import pytest

from tests.exploration.test_label_spread import blobs, few
from udml_core.arrays import Array
from udml_core.evaluation import effective_rank
from udml_core.explanations import Affinities
from udml_core.exploration import affinity as views
from udml_core.graph import propagate


def graph(count: int = 120) -> tuple[views.LabelGraph, Array]:
    neighbors, classes = blobs(count)
    return views.LabelGraph(np.arange(count) * 2, neighbors, few(classes, 12)), classes


def test_a_graph_that_training_kept_is_told_in_positions_of_the_data_set() -> None:
    points, train = np.array([1, 4, 2]), np.array([10, 11, 12, 13, 20])
    record = Affinities(points, np.array([[4, 2], [2, 1], [1, 4]]), None, None, np.array([0, -1, 1]), None, None)
    found = views.graph_of(record, train)
    assert found.images.tolist() == [11, 20, 12]
    assert found.images[found.neighbors].tolist() == [[20, 12], [12, 11], [11, 20]]


def test_an_image_is_found_in_its_graph_or_is_not_there() -> None:
    found = graph()[0]
    assert [found.row_of(image) for image in (0, 1, 6, 238, 999, -1)] == [0, None, 3, 119, None, None]


def test_the_most_telling_image_has_the_most_classes_around_it() -> None:
    neighbors = np.array([[1, 2], [0, 2], [0, 3], [4, 5], [3, 5], [3, 4]])
    for codes, expected in (([-1, 0, 0, 0, 1, -1], 3), ([-1, 0, 0, -1, -1, -1], 1), ([-1, -1, -1, -1, 2, 2], 5)):
        found = views.LabelGraph(np.arange(6), neighbors, np.array(codes)).telling
        around = [{codes[one] for one in (row, *neighbors[row]) if codes[one] >= 0} for row in range(6)]
        labels = [sum(codes[one] >= 0 for one in (row, *neighbors[row])) for row in range(6)]
        assert (len(around[found]), labels[found]) == max(zip(map(len, around), labels, strict=True))
        assert (len(around[found]), labels[found]) == (len(around[expected]), labels[expected])


def test_a_part_grows_step_by_step() -> None:
    whole = graph()[0]
    steps, ring = {5: 0}, [5]
    while ring:
        ring = sorted({int(one) for row in ring for one in whole.neighbors[row]} - set(steps))
        steps |= dict.fromkeys(ring, len(set(steps.values())))
    for most in (1, 5, 30, 500):
        rows = whole.part(5, most).tolist()
        assert rows[0] == 5
        assert len(set(rows)) == len(rows) == min(most, len(steps))
        assert [steps[row] for row in rows] == sorted(steps[row] for row in rows)


@pytest.mark.parametrize("gamma", [0.5, 0.99])
def test_on_the_whole_graph_the_part_is_exact(gamma: float) -> None:
    whole = graph()[0]
    order = np.random.default_rng(4).permutation(len(whole.images))
    part = views.propagated(whole, order, gamma)
    exact = propagate(whole.neighbors, whole.codes, gamma)
    np.testing.assert_allclose(part.after, exact.after[order], atol=1e-12)
    np.testing.assert_array_equal(part.before, exact.before[order])
    np.testing.assert_array_equal(part.rows[part.neighbors], whole.neighbors[order])
    assert part.complete.all()


def test_a_part_keeps_its_first_image_s_neighbors_and_waits_at_its_border() -> None:
    whole = graph()[0]
    part = views.propagated(whole, whole.part(5, 40), 0.9)
    assert part.rows[part.neighbors[0]].tolist() == whole.neighbors[5].tolist()
    for place, row in enumerate(part.rows.tolist()):
        expected = [one if one in part.rows else row for one in whole.neighbors[row].tolist()]
        assert part.rows[part.neighbors[place]].tolist() == expected
        assert part.complete[place] == (expected == whole.neighbors[row].tolist())
    ordered, values = part.sorted_neighbors(0)
    assert sorted(ordered.tolist()) == sorted(whole.neighbors[5].tolist())
    assert (np.diff(values) <= 0).all()


def test_triplets_are_true_where_a_loop_finds_them_so() -> None:
    whole, classes = graph()
    after = propagate(whole.neighbors, whole.codes, 0.9).after
    kept = []
    for row, near in enumerate(whole.neighbors.tolist()):
        order = sorted(range(4), key=lambda place: -after[row, place])
        kept += [(classes[row] == classes[near[order[j]]], classes[row] != classes[near[order[j + 2]]])
                 for j in range(2)]
    found = views.triplet_truth(whole.neighbors, after, classes)
    positive, negative = np.array(kept).T
    assert (found.triplets, found.judged) == (240, 240)
    assert (found.positives, found.negatives, found.both) == pytest.approx(
        (positive.mean(), negative.mean(), (positive & negative).mean()))
    part = views.propagated(whole, np.arange(120), 0.9)
    assert views.part_truth(part, classes) == found
    lonely = views.propagated(whole, whole.part(5, 1), 0.9)
    assert views.part_truth(lonely, classes).triplets == 0


def test_triplets_are_judged_where_all_three_classes_are_known() -> None:
    neighbors = np.array([[1, 2], [0, 2], [0, 3], [0, 1]])
    after = np.array([[2.0, 1.0], [2.0, 1.0], [2.0, 1.0], [2.0, 1.0]])
    some = views.triplet_truth(neighbors, after, np.array([0, 0, 1, -1]))
    assert some == views.Truth(triplets=4, judged=2, positives=1, negatives=1, both=1)
    none = views.triplet_truth(neighbors, after, np.array([0, -1, 1, -1]))
    assert (none.triplets, none.judged) == (4, 0)
    assert np.isnan(none.both)


def test_the_drawing_has_each_edge_of_two_steps_once() -> None:
    whole = graph()[0]
    part = views.propagated(whole, whole.part(5, 80), 0.9)
    found = views.ego(part)
    inner = part.neighbors[0].tolist()
    expected = {tuple(sorted((one, int(other)))) for one in [0, *inner] for other in part.neighbors[one]}
    assert {tuple(edge) for edge in found.edges.tolist()} == expected
    assert len(found.edges) == len(expected)
    assert set(found.outer.tolist()) == {place for edge in expected for place in edge} - {0, *inner}
    for place, parent in zip(found.outer.tolist(), found.parents.tolist(), strict=True):
        assert place in part.neighbors[inner[parent]]
    for (one, other), value in zip(found.edges.tolist(), found.after.tolist(), strict=True):
        both = [part.after[a][part.neighbors[a] == b] for a, b in ((one, other), (other, one))]
        assert value == pytest.approx(float(np.concatenate(both)[0]))


def test_a_spectrum_counts_the_directions_that_are_used() -> None:
    random = np.random.default_rng(0)
    ball, line = random.normal(size=(300, 8)), np.outer(random.normal(size=300), np.ones(8))
    for points in (ball, line):
        found = views.spectrum(points)
        assert found.values.sum() == pytest.approx(1)
        assert (np.diff(found.values) <= 1e-12).all()
        assert found.rank == effective_rank(points)
    assert views.spectrum(line).values[0] == pytest.approx(1)
    assert views.spectrum(ball).rank > 7.5
    assert views.spectrum(np.ones((5, 3))).values.tolist() == [0, 0, 0]
