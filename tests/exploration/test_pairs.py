"""Pairs against the hinge, those that contradict, and which are asked about: near the hinge's bends, none twice."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udml_core.exploration import pairs as views
from udml_core.exploration.pairs import candidates, informative_pairs

POINTS = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
SQUARED = ((POINTS[:, None].astype(np.float64) - POINTS[None]) ** 2).sum(axis=2)
ABOVE = np.triu_indices(60, 1)
FOUND = candidates(POINTS, np.arange(60))


def test_both_kinds_come_in_turn_the_most_doubtful_first() -> None:
    bias, margin = float(np.median(SQUARED)), 0.5
    pairs, squared = informative_pairs(FOUND, bias, margin, 9)
    np.testing.assert_allclose(squared, SQUARED[pairs[:, 0], pairs[:, 1]], rtol=1e-5)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert (squared < bias).tolist() == [True, False] * 4 + [True]
    every = SQUARED[ABOVE]
    for kind, edge, inside in ((squared < bias, bias - margin, every < bias), (squared >= bias, bias + margin,
                                                                              every >= bias)):
        gaps = np.abs(squared[kind] - edge)
        np.testing.assert_allclose(gaps, np.sort(np.abs(every[inside] - edge))[:kind.sum()], rtol=1e-4, atol=1e-5)


def test_what_is_known_is_not_asked_again() -> None:
    bias = float(np.median(SQUARED))
    seen = np.zeros((0, 2), dtype=np.int64)
    for _ in range(5):
        pairs, _ = informative_pairs(FOUND, bias, 0.1, 8, seen[:, ::-1])
        assert not {tuple(one) for one in pairs} & {tuple(one) for one in seen}
        seen = np.concatenate([seen, pairs])


def test_a_kind_that_is_not_there_is_not_asked_about() -> None:
    pairs, squared = informative_pairs(FOUND, 1e9, 1.0, 10)
    assert len(pairs) == 5
    assert (squared < 1e9).all()
    two = candidates(POINTS, np.array([4, 9]))
    assert two.pairs.tolist() == [[4, 9]]
    assert len(informative_pairs(two, 1.0, 0.1, 10)[0]) == 1
    assert len(informative_pairs(two, 1.0, 0.1, 10, np.array([[9, 4]]))[0]) == 0


def test_an_argument_is_the_margin_that_a_pair_lacks() -> None:
    found = views.arguments(np.array([0.05, 0.09, 0.2, 0.11]), np.array([True, True, False, False]), 0.1, 0.02)
    np.testing.assert_allclose(found, [-0.03, 0.01, -0.08, 0.01], atol=1e-12)
    assert (found > 0).tolist() == [False, True, False, True], "the same beyond b − m, the different within b + m"


def test_every_pair_is_counted_once_in_a_spread() -> None:
    random = np.random.default_rng(1)
    before, after, same = random.gamma(2, size=500), random.gamma(1, size=500), random.random(500) < 0.3
    found = views.spread(before, after, same, 2.0)
    for counts, values in ((found.before, before), (found.after, after)):
        assert counts.sum(axis=1).tolist() == [same.sum(), (~same).sum()]
        low, high = found.edges[3], found.edges[4]
        inside = (values >= low) & (values < high)
        assert counts[:, 3].tolist() == [(inside & same).sum(), (inside & ~same).sum()]
    assert views.spread(before, after, same, 50.0).edges[-1] == 50
    assert found.edges[-1] >= np.quantile(before, 0.98)


def naive_groups(count: int, linked: list[tuple[int, int]]) -> list[int]:
    """Which images are the same by the pairs that say so: the least of each group, by repeated merging."""
    group = list(range(count))
    for _ in range(count):
        for one, other in linked:
            group[one] = group[other] = min(group[one], group[other])
    return group


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.booleans()).filter(lambda one: one[0] != one[1]),
                unique_by=lambda one: frozenset(one[:2])))
def test_contradictions_are_the_different_pairs_within_a_group_of_the_same(given_: list[tuple[int, int, bool]]) -> None:
    pairs = np.array([one[:2] for one in given_], dtype=np.int64).reshape(-1, 2)
    same = np.array([one[2] for one in given_], dtype=bool)
    group = naive_groups(8, [(one, other) for one, other, alike in given_ if alike])
    expected = [place for place, (one, other, alike) in enumerate(given_) if not alike and group[one] == group[other]]
    assert views.contradicting(pairs, same).tolist() == expected
    alike = {frozenset(pair) for pair in pairs[same].tolist()}
    for place in expected:
        found = views.chain(pairs, same, place)
        assert [found[0], found[-1]] == pairs[place].tolist()
        assert all(frozenset(link) in alike for link in pairwise(found))
        assert len(set(found)) == len(found)


def test_the_chain_of_a_contradiction_is_the_shortest() -> None:
    pairs, same = np.array([[1, 2], [2, 3], [3, 4], [1, 9], [9, 4], [4, 1]]), np.array([True] * 5 + [False])
    assert views.contradicting(pairs, same).tolist() == [5]
    assert views.chain(pairs, same, 5) == (4, 9, 1)


def test_pairs_against_the_classes() -> None:
    pairs, labels = np.array([[0, 1], [1, 2], [0, 1], [1, 2]]), np.array([5, 5, 6])
    assert views.against_classes(pairs, np.array([True, False, False, True]), labels).tolist() == [False, False,
                                                                                                  True, True]


def test_a_pair_is_found_either_way_round() -> None:
    pairs = np.array([[4, 7], [9, 2], [3, 1]])
    assert [views.place_of(pairs, one) for one in ((2, 9), (9, 2), (1, 3), (4, 9), (), (4,))] == [1, 1, 2, None, None,
                                                                                                 None]
    assert views.first_unasked(pairs, np.array([[7, 4], [2, 9]])) == 2
    assert views.first_unasked(pairs, np.zeros((0, 2), dtype=np.int64)) == 0
    assert views.first_unasked(pairs[:2], pairs) is None


@pytest.mark.parametrize("scale", [1e-4, 0.1, 3.0, 700.0])
def test_the_usual_bias_lies_between_near_and_far(scale: float) -> None:
    points = scale * POINTS
    bias, margin = views.default_hinge(points)
    near, far = np.median((scale**2 * (SQUARED + np.diag([np.inf] * 60))).min(axis=1)), np.median(scale**2 * SQUARED)
    assert near < bias < far
    assert 0 < margin < 0.2 * bias
    assert views.default_hinge(np.ones((3, 2), dtype=np.float32))[0] > 0, "also where all images are one point"


@pytest.mark.parametrize(("value", "step"), [(0.1, 0.01), (1.0, 0.1), (0.043, 0.001), (250.0, 10.0)])
def test_a_step_is_the_unit_of_the_second_digit(value: float, step: float) -> None:
    assert views.step_of(value) == pytest.approx(step)

