"""Walks that end at labels beside the exact propagation and walks that are walked, suggestions, hops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from udml_core.arrays import Array
from udml_core.exploration import label_spread as views
from udml_core.graph import propagate
from udml_core.neighbors import nearest


def blobs(count: int, seed: int = 0) -> tuple[Array, Array]:
    """The graph (n, 4) of four blobs in the plane, and which blob each point is of."""
    random = np.random.default_rng(seed)
    classes = random.permutation(np.arange(count) % 4)
    points = 3 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[classes] + random.normal(size=(count, 2))
    return nearest(points.astype(np.float32), 4)[1], classes


def few(classes: Array, count: int, seed: int = 1) -> Array:
    codes = np.full(len(classes), -1)
    chosen = np.random.default_rng(seed).permutation(len(classes))[:count]
    codes[chosen] = classes[chosen]
    return codes


@settings(max_examples=25, deadline=None)
@given(st.integers(12, 200), st.integers(1, 12), st.sampled_from([0.2, 0.9, 0.99]), st.integers(0, 99))
def test_walks_end_where_the_exact_propagation_says(count: int, labels: int, gamma: float, seed: int) -> None:
    neighbors, classes = blobs(count, seed)
    codes = few(classes, labels, seed)
    exact = propagate(neighbors, codes, gamma)
    found = views.ends(neighbors, codes, 4, gamma)
    np.testing.assert_allclose(found.reach[:, exact.classes], exact.reach, atol=2e-5)
    missing = np.setdiff1d(np.arange(4), exact.classes)
    assert not found.reach[:, missing].any()
    reached = exact.reach.sum(1) > 1e-4
    assert set(found.best[reached].tolist()) <= set(exact.classes.tolist())
    assert (found.certainty[reached] > 1 / 4 - 1e-6).all()
    assert (found.certainty[reached] < 1 + 1e-6).all()


def test_the_share_of_walked_walks_is_the_reach() -> None:
    neighbors, classes = blobs(30)
    codes, random = few(classes, 6), np.random.default_rng(3)
    counts = np.zeros(4)
    for _ in range(20_000):
        at = 7
        while random.random() < 0.8:
            at = neighbors[at, random.integers(4)]
        if codes[at] >= 0:
            counts[codes[at]] += 1
    np.testing.assert_allclose(views.ends(neighbors, codes, 4, 0.8).reach[7], counts / 20_000, atol=0.012)


def test_without_labels_nothing_is_reached() -> None:
    neighbors, classes = blobs(20)
    for number in (0, 3):
        found = views.ends(neighbors, np.full(len(classes), -1), number, 0.9)
        assert (found.best == -1).all()
        assert np.isnan(found.certainty).all()


def test_a_label_that_no_way_leads_to_is_not_reached() -> None:
    neighbors = np.array([[1], [0], [3], [2]])
    found = views.ends(neighbors, np.array([0, -1, -1, -1]), 1, 0.9)
    assert found.best.tolist() == [0, 0, -1, -1]
    assert found.certainty[:2].tolist() == [1, 1]
    assert views.hops(neighbors, 0).tolist() == [0, 1, -1, -1]


def visited(neighbors: Array, stops: Array, gamma: float) -> Array:
    """How often walks come by, step by step."""
    there, total = np.ones(len(neighbors)), np.zeros(len(neighbors))
    while there.sum() > 1e-9:
        total += there
        onward = np.zeros(len(neighbors))
        for row, share in enumerate(there):
            if not stops[row]:
                for neighbor in neighbors[row]:
                    onward[neighbor] += gamma * share / neighbors.shape[1]
        there = onward
    return total


@pytest.mark.parametrize("gamma", [0.5, 0.9])
def test_suggestions_are_those_that_walks_come_by_most(gamma: float) -> None:
    neighbors, classes = blobs(40)
    labeled = few(classes, 3) >= 0
    found = views.suggestions(neighbors, labeled, gamma, 4)
    stops = labeled.copy()
    for one in found:
        expected = visited(neighbors, stops, gamma)
        assert one.row == int(np.where(stops, -1, expected).argmax())
        assert one.visits == pytest.approx(expected[one.row], rel=1e-4)
        stops[one.row] = True
    assert len({one.row for one in found}) == 4


def test_suggestions_leave_out_what_is_not_wanted_and_end_with_the_images() -> None:
    neighbors, _ = blobs(12)
    labeled = np.zeros(12, dtype=bool)
    first = views.suggestions(neighbors, labeled, 0.9, 1)[0].row
    assert first not in [one.row for one in views.suggestions(neighbors, labeled, 0.9, 12, [first])]
    assert len(views.suggestions(neighbors, labeled, 0.9, 50, [first])) == 11
    assert views.suggestions(neighbors, ~labeled, 0.9, 5) == []


def test_one_label_s_shares_and_the_others_make_one() -> None:
    neighbors, classes = blobs(60)
    codes = few(classes, 5)
    total = sum(views.shares(neighbors, codes, int(row), 0.9) for row in np.flatnonzero(codes >= 0))
    np.testing.assert_allclose(total[~np.isnan(total)], 1, atol=1e-3)


def test_hops_are_those_of_a_search_and_shares_are_averaged_by_them() -> None:
    neighbors, _ = blobs(60)
    steps, ring, reached = {5: 0}, {5}, 0
    while ring:
        reached += 1
        ring = {row for row in range(60) if row not in steps and ring & set(neighbors[row].tolist())}
        steps |= dict.fromkeys(ring, reached)
    found = views.hops(neighbors, 5)
    assert {row: int(one) for row, one in enumerate(found) if one >= 0} == steps
    values = np.random.default_rng(0).random(60)
    for one in views.by_hops(found, values):
        assert one.images == sum(step == one.hops for step in steps.values())
        assert one.share == pytest.approx(np.mean([values[row] for row, step in steps.items() if step == one.hops]))


def test_labels_are_told_by_the_steps_from_an_image_and_those_out_of_reach_last() -> None:
    neighbors = np.array([[3], [0], [1], [4], [2], [0]])
    assert views.labels_from(neighbors, np.array([0, 0, 1, -1, 0, 1]), 0).tolist() == [0, 4, 2, 1, 5]


def test_codes_are_places_among_the_names() -> None:
    codes = views.coded({7: "b", 3: "a", 9: "b", 100: "c"}, ("b", "gone", "a", "c"), np.array([3, 5, 7, 9]))
    assert codes.tolist() == [2, -1, 0, 0]


def test_agreement_counts_unlabeled_images_by_their_classes_names() -> None:
    found = views.Ends(np.array([[1.0, 0], [0.6, 0.4], [0, 1], [0, 0]]))
    codes = np.array([0, -1, -1, -1])
    assert views.agreement(found, codes, ("y", "x"), np.array([1, 1, 1, 0]), ("x", "y")) == pytest.approx(1 / 3)
    assert views.agreement(found, np.zeros(4, dtype=int), ("y", "x"), np.array([1, 1, 1, 0]), ("x", "y")) is None
