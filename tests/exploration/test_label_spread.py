"""Walks that end at labels, compared with exact propagation and simulated walks.

Also suggestions and distances.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from udml_core.base.arrays import Array
from udml_core.exploration import label_spread
from udml_core.numerics.graph import propagate
from udml_core.numerics.neighbors import nearest


def blob_graph(count: int, seed: int = 0) -> tuple[Array, Array]:
    """Return the neighbor graph (n, 4) of four blobs in the plane, and the blobs (n,)."""
    random = np.random.default_rng(seed)
    classes = random.permutation(np.arange(count) % 4)
    points = 3 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[classes] + random.normal(size=(count, 2))
    return nearest(points.astype(np.float32), 4)[1], classes


def label_some(classes: Array, count: int, seed: int = 1) -> Array:
    codes = np.full(len(classes), -1)
    chosen = np.random.default_rng(seed).permutation(len(classes))[:count]
    codes[chosen] = classes[chosen]
    return codes


@settings(max_examples=25, deadline=None)
@given(st.integers(12, 200), st.integers(1, 12), st.sampled_from([0.2, 0.9, 0.99]), st.integers(0, 99))
def test_end_probabilities_equal_exact_propagation(count: int, labels: int, gamma: float, seed: int) -> None:
    neighbors, classes = blob_graph(count, seed)
    codes = label_some(classes, labels, seed)
    exact = propagate(neighbors, codes, gamma)
    walks = label_spread.walk_ends(neighbors, codes, 4, gamma)
    np.testing.assert_allclose(walks.reach[:, exact.classes], exact.reach, atol=2e-5)
    missing = np.setdiff1d(np.arange(4), exact.classes)
    assert not walks.reach[:, missing].any()
    reached = exact.reach.sum(1) > 1e-4
    assert set(walks.best[reached].tolist()) <= set(exact.classes.tolist())
    assert (walks.certainty[reached] > 1 / 4 - 1e-6).all()
    assert (walks.certainty[reached] < 1 + 1e-6).all()


def test_end_probabilities_equal_simulated_walks() -> None:
    neighbors, classes = blob_graph(30)
    codes, random = label_some(classes, 6), np.random.default_rng(3)
    rows, walking = np.full(20_000, 7), np.ones(20_000, dtype=bool)
    while walking.any():
        walking &= random.random(20_000) < 0.8
        rows = np.where(walking, neighbors[rows, random.integers(4, size=20_000)], rows)
    counts = np.bincount(codes[rows][codes[rows] >= 0], minlength=4)
    np.testing.assert_allclose(label_spread.walk_ends(neighbors, codes, 4, 0.8).reach[7], counts / 20_000, atol=0.012)


def test_no_label_is_reached_if_none_is_assigned() -> None:
    neighbors, classes = blob_graph(20)
    for class_count in (0, 3):
        walks = label_spread.walk_ends(neighbors, np.full(len(classes), -1), class_count, 0.9)
        assert (walks.best == -1).all()
        assert np.isnan(walks.certainty).all()


def test_a_disconnected_label_is_not_reached() -> None:
    neighbors = np.array([[1], [0], [3], [2]])
    walks = label_spread.walk_ends(neighbors, np.array([0, -1, -1, -1]), 1, 0.9)
    assert walks.best.tolist() == [0, 0, -1, -1]
    assert walks.certainty[:2].tolist() == [1, 1]
    assert label_spread.hop_counts(neighbors, 0).tolist() == [0, 1, -1, -1]


def visits_by_steps(neighbors: Array, stops: Array, gamma: float) -> Array:
    """Return the expected visits of each image, accumulated step by step."""
    present, visits = np.ones(len(neighbors)), np.zeros(len(neighbors))
    while present.sum() > 1e-9:
        visits += present
        moved = np.zeros(len(neighbors))
        for row, share in enumerate(present):
            if not stops[row]:
                for neighbor in neighbors[row]:
                    moved[neighbor] += gamma * share / neighbors.shape[1]
        present = moved
    return visits


@pytest.mark.parametrize("gamma", [0.5, 0.9])
def test_the_most_visited_images_are_suggested(gamma: float) -> None:
    neighbors, classes = blob_graph(40)
    labeled = label_some(classes, 3) >= 0
    suggestions = label_spread.suggestions(neighbors, labeled, gamma, 4)
    stops = labeled.copy()
    for suggestion in suggestions:
        expected = visits_by_steps(neighbors, stops, gamma)
        assert suggestion.row == int(np.where(stops, -1, expected).argmax())
        assert suggestion.visits == pytest.approx(expected[suggestion.row], rel=1e-4)
        stops[suggestion.row] = True
    assert len({suggestion.row for suggestion in suggestions}) == 4


def test_excluded_images_are_not_suggested() -> None:
    neighbors, _ = blob_graph(12)
    labeled = np.zeros(12, dtype=bool)
    first = label_spread.suggestions(neighbors, labeled, 0.9, 1)[0].row
    others = label_spread.suggestions(neighbors, labeled, 0.9, 12, [first])
    assert first not in [suggestion.row for suggestion in others]
    assert len(label_spread.suggestions(neighbors, labeled, 0.9, 50, [first])) == 11
    assert label_spread.suggestions(neighbors, ~labeled, 0.9, 5) == []


def test_the_shares_of_all_labels_sum_to_one() -> None:
    neighbors, classes = blob_graph(60)
    codes = label_some(classes, 5)
    total = sum(label_spread.label_share(neighbors, codes, int(row), 0.9) for row in np.flatnonzero(codes >= 0))
    np.testing.assert_allclose(total[~np.isnan(total)], 1, atol=1e-3)


def test_hops_equal_a_breadth_first_search_and_shares_are_averaged_by_hops() -> None:
    neighbors, _ = blob_graph(60)
    steps, frontier, distance = {5: 0}, {5}, 0
    while frontier:
        distance += 1
        frontier = {row for row in range(60) if row not in steps and frontier & set(neighbors[row].tolist())}
        steps |= dict.fromkeys(frontier, distance)
    hops = label_spread.hop_counts(neighbors, 5)
    assert {row: int(hop) for row, hop in enumerate(hops) if hop >= 0} == steps
    values = np.random.default_rng(0).random(60)
    for average in label_spread.mean_share_by_hops(hops, values):
        rows = [row for row, step in steps.items() if step == average.hops]
        assert average.images == len(rows)
        assert average.share == pytest.approx(np.mean(values[rows]))


def test_labels_are_sorted_by_distance_with_unreachable_labels_last() -> None:
    neighbors = np.array([[3], [0], [1], [4], [2], [0]])
    assert label_spread.labels_by_distance(neighbors, np.array([0, 0, 1, -1, 0, 1]), 0).tolist() == [0, 4, 2, 1, 5]


def test_codes_are_positions_in_the_list_of_names() -> None:
    names = {7: "b", 3: "a", 9: "b", 100: "c"}
    codes = label_spread.label_codes(names, ("b", "unused", "a", "c"), np.array([3, 5, 7, 9]))
    assert codes.tolist() == [2, -1, 0, 0]


def test_agreement_compares_accepted_names_by_class_name() -> None:
    named, codes, labels = np.array([0, 0, 1, -1]), np.array([0, -1, -1, -1]), np.array([1, 1, 1, 0])
    assert label_spread.share_correct(named, codes, ("y", "x"), labels, ("x", "y")) == pytest.approx(1 / 2)
    assert label_spread.share_correct(named, np.zeros(4, dtype=int), ("y", "x"), labels, ("x", "y")) is None
