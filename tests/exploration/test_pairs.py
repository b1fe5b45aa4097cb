"""Pairs against the hinge, contradictions, and candidates near the hinge's bends."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udml_core.exploration.pairs import (
    candidates,
    chain,
    class_contradictions,
    contradicting_pairs,
    default_hinge,
    distance_histograms,
    first_new_pair,
    hinge_arguments,
    informative_pairs,
    labeling_hinge,
    position_of_pair,
    slider_step,
)

POINTS = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
SQUARED = ((POINTS[:, None].astype(np.float64) - POINTS[None]) ** 2).sum(axis=2)
UPPER = np.triu_indices(60, 1)
CANDIDATES = candidates(POINTS, np.arange(60))


def test_similar_and_dissimilar_predictions_alternate_with_the_most_uncertain_first() -> None:
    bias, margin = float(np.median(SQUARED)), 0.5
    pairs, squared = informative_pairs(CANDIDATES, bias, margin, 9)
    np.testing.assert_allclose(squared, SQUARED[pairs[:, 0], pairs[:, 1]], rtol=1e-5)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert (squared < bias).tolist() == [True, False] * 4 + [True]
    all_squared = SQUARED[UPPER]
    for kind, edge, all_of_kind in ((squared < bias, bias - margin, all_squared < bias),
                                    (squared >= bias, bias + margin, all_squared >= bias)):
        gaps = np.abs(squared[kind] - edge)
        expected = np.sort(np.abs(all_squared[all_of_kind] - edge))[:kind.sum()]
        np.testing.assert_allclose(gaps, expected, rtol=1e-4, atol=1e-5)


def test_known_pairs_are_not_suggested_again() -> None:
    bias = float(np.median(SQUARED))
    known = np.zeros((0, 2), dtype=np.int64)
    for _ in range(5):
        pairs, _ = informative_pairs(CANDIDATES, bias, 0.1, 8, known[:, ::-1])
        assert not {tuple(pair) for pair in pairs} & {tuple(pair) for pair in known}
        known = np.concatenate([known, pairs])


def test_fewer_pairs_are_suggested_if_there_are_not_enough_of_a_kind() -> None:
    pairs, squared = informative_pairs(CANDIDATES, 1e9, 1.0, 10)
    assert len(pairs) == 5
    assert (squared < 1e9).all()
    two = candidates(POINTS, np.array([4, 9]))
    assert two.pairs.tolist() == [[4, 9]]
    assert len(informative_pairs(two, 1.0, 0.1, 10)[0]) == 1
    assert len(informative_pairs(two, 1.0, 0.1, 10, np.array([[9, 4]]))[0]) == 0


def test_the_argument_is_positive_exactly_for_violations() -> None:
    values = hinge_arguments(np.array([0.05, 0.09, 0.2, 0.11]), np.array([True, True, False, False]), 0.1, 0.02)
    np.testing.assert_allclose(values, [-0.03, 0.01, -0.08, 0.01], atol=1e-12)
    assert (values > 0).tolist() == [False, True, False, True], (
        "violations are similar pairs beyond b − m and dissimilar pairs within b + m")


def test_a_histogram_counts_every_pair_once() -> None:
    random = np.random.default_rng(1)
    before, after, same = random.gamma(2, size=500), random.gamma(1, size=500), random.random(500) < 0.3
    histogram = distance_histograms(before, after, same, 2.0)
    for counts, values in ((histogram.before, before), (histogram.after, after)):
        assert counts.sum(axis=1).tolist() == [same.sum(), (~same).sum()]
        low, high = histogram.edges[3], histogram.edges[4]
        inside = (values >= low) & (values < high)
        assert counts[:, 3].tolist() == [(inside & same).sum(), (inside & ~same).sum()]
    assert distance_histograms(before, after, same, 50.0).edges[-1] == 50
    assert histogram.edges[-1] >= np.quantile(before, 0.98)


def components_by_merging(count: int, links: list[tuple[int, int]]) -> list[int]:
    """Return the lowest image of each image's component, by repeated merging."""
    component = list(range(count))
    for _ in range(count):
        for first, second in links:
            component[first] = component[second] = min(component[first], component[second])
    return component


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.booleans()).filter(lambda pair: pair[0] != pair[1]),
                unique_by=lambda pair: frozenset(pair[:2])))
def test_a_different_class_pair_within_a_component_is_a_contradiction(labeled: list[tuple[int, int, bool]]) -> None:
    pairs = np.array([pair[:2] for pair in labeled], dtype=np.int64).reshape(-1, 2)
    same = np.array([pair[2] for pair in labeled], dtype=bool)
    component = components_by_merging(8, [(first, second) for first, second, is_same in labeled if is_same])
    expected = [position for position, (first, second, is_same) in enumerate(labeled)
                if not is_same and component[first] == component[second]]
    assert contradicting_pairs(pairs, same).tolist() == expected
    links = {frozenset(pair) for pair in pairs[same].tolist()}
    for position in expected:
        path = chain(pairs, same, position)
        assert [path[0], path[-1]] == pairs[position].tolist()
        assert all(frozenset(link) in links for link in pairwise(path))
        assert len(set(path)) == len(path)


def test_the_shortest_chain_explains_a_contradiction() -> None:
    pairs, same = np.array([[1, 2], [2, 3], [3, 4], [1, 9], [9, 4], [4, 1]]), np.array([True] * 5 + [False])
    assert contradicting_pairs(pairs, same).tolist() == [5]
    assert chain(pairs, same, 5) == (4, 9, 1)


def test_pairs_that_disagree_with_the_classes_are_marked() -> None:
    pairs, labels = np.array([[0, 1], [1, 2], [0, 1], [1, 2]]), np.array([5, 5, 6])
    marks = class_contradictions(pairs, np.array([True, False, False, True]), labels)
    assert marks.tolist() == [False, False, True, True]


def test_a_pair_is_found_in_either_order() -> None:
    pairs = np.array([[4, 7], [9, 2], [3, 1]])
    positions = [position_of_pair(pairs, pair) for pair in ((2, 9), (9, 2), (1, 3), (4, 9), (), (4,))]
    assert positions == [1, 1, 2, None, None, None]
    assert first_new_pair(pairs, np.array([[7, 4], [2, 9]])) == 2
    assert first_new_pair(pairs, np.zeros((0, 2), dtype=np.int64)) == 0
    assert first_new_pair(pairs[:2], pairs) is None


@pytest.mark.parametrize("scale", [1e-4, 0.1, 3.0, 700.0])
def test_pairs_to_label_lie_between_nearest_pairs_and_a_quarter_of_the_way_to_random_pairs(scale: float) -> None:
    bias, margin = labeling_hinge(scale * POINTS)
    near = np.median((scale**2 * (SQUARED + np.diag([np.inf] * 60))).min(axis=1))
    far = np.median(scale**2 * SQUARED)
    assert bias - margin == pytest.approx(near, abs=0.1 * far)
    assert bias + margin == pytest.approx(near + (far - near) / 4, abs=0.1 * far)
    assert bias < default_hinge(scale * POINTS)[0]


@pytest.mark.parametrize("scale", [1e-4, 0.1, 3.0, 700.0])
def test_the_default_bias_lies_between_near_and_random_pairs(scale: float) -> None:
    points = scale * POINTS
    bias, margin = default_hinge(points)
    near = np.median((scale**2 * (SQUARED + np.diag([np.inf] * 60))).min(axis=1))
    far = np.median(scale**2 * SQUARED)
    assert near < bias < far
    assert 0 < margin < 0.2 * bias
    assert default_hinge(np.ones((3, 2), dtype=np.float32))[0] > 0, "the bias is positive even if all images coincide"


@pytest.mark.parametrize(("value", "step"), [(0.1, 0.01), (1.0, 0.1), (0.043, 0.001), (250.0, 10.0)])
def test_a_slider_step_is_the_unit_of_the_second_digit(value: float, step: float) -> None:
    assert slider_step(value) == pytest.approx(step)

