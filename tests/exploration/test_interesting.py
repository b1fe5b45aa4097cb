"""The order of the images whose neighbors changed most, compared with naive loops."""

from __future__ import annotations

import numpy as np
import pytest

from udml_core.exploration.instrument import make_instrument
from udml_core.exploration.interesting import (
    classes_in_turn,
    evenly_spread,
    first_query,
    gains_and_losses_in_turn,
    most_changed,
    recorded_rows,
)
from udml_core.numerics.explanations import Clusters, LatentLayer, Pairs, Triplets, Uncertainty


def nearest_rows(points: np.ndarray, row: int, k: int) -> list[int]:
    distances = ((points - points[row]) ** 2).sum(axis=1)
    return [int(other) for other in np.argsort(distances, kind="stable") if other != row][:k]


def mean_distance(points: np.ndarray, row: int, k: int) -> float:
    """Return the mean squared distance from an image to its k nearest others."""
    return float(np.sort(((points - points[row]) ** 2).sum(axis=1))[1:k + 1].mean())


def key_of(before: np.ndarray, after: np.ndarray, labels: np.ndarray | None, row: int, k: int
           ) -> tuple[int, int, bool, int]:
    first, second = nearest_rows(before, row, k), nearest_rows(after, row, k)
    same = len(set(first) & set(second))
    usual = np.median([mean_distance(before, other, k) for other in range(len(before))])
    is_far = mean_distance(before, row, k) > usual + 1e-6
    if labels is None:
        return (0, 0, is_far, same)
    gain = sum(labels[other] == labels[row] for other in second) - sum(labels[other] == labels[row] for other in first)
    return (-abs(gain), -gain, is_far, same)


@pytest.fixture(scope="module")
def points() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    labels = random.integers(0, 4, 80)
    before = random.normal(size=(80, 5)).astype(np.float32)
    after = (random.normal(size=(80, 3)) + 1.5 * labels[:, None]).astype(np.float32)
    return before, after, labels


@pytest.mark.parametrize("with_labels", [True, False])
def test_order_equals_a_loop(points: tuple[np.ndarray, np.ndarray, np.ndarray], with_labels: bool) -> None:
    before, after, labels = points
    given = labels if with_labels else None
    expected = sorted(range(80), key=lambda row: (*key_of(before, after, given, row, 7), row))
    assert most_changed(before, after, given, 7).tolist() == expected


def test_gains_precede_equal_losses(points: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    before, after, labels = points
    gained = [key_of(before, after, labels, int(row), 10)[1] for row in most_changed(before, after, labels)]
    lost = [key_of(after, before, labels, int(row), 10)[1] for row in most_changed(after, before, labels)]
    assert gained[0] < 0 < lost[0]  # The largest change is a loss when training runs backward.
    assert [abs(gain) for gain in gained] == sorted((abs(gain) for gain in gained), reverse=True)


def test_gains_and_losses_take_turns_and_the_frequent_kind_leads() -> None:
    gains = [1, -5, 0, 3, -2, 9, 2]
    assert [gains[row] for row in gains_and_losses_in_turn(gains)] == [9, -5, 3, -2, 2, 1, 0]
    losses = [-gain for gain in gains]
    assert [losses[row] for row in gains_and_losses_in_turn(losses)] == [-9, 5, -3, 2, -2, -1, 0]
    assert gains_and_losses_in_turn([]) == []


def test_images_without_a_class_have_no_hits() -> None:
    before, after = np.random.default_rng(1).normal(size=(2, 30, 4))
    labels = np.where(np.arange(30) < 24, -1, 0)
    order = most_changed(before, after, labels, 5).tolist()
    unknown = [row for row in most_changed(before, after, k=5).tolist() if row < 24]
    assert [row for row in order if row < 24] == unknown


def test_without_classes_a_played_training_never_begins_with_an_outlier() -> None:
    random = np.random.default_rng(3)
    before = random.normal(size=(60, 4)).astype(np.float32)
    before[7] += 50
    after = before.copy()
    after[7] = after[0] + 0.01  # other neighbors than before
    usual = [row for row in range(60) if not key_of(before, after, None, row, 10)[2]]
    row = first_query(before, after, None)
    assert row in usual
    assert key_of(before, after, None, row, 10)[3] == min(key_of(before, after, None, other, 10)[3] for other in usual)


def test_duplicates_do_not_displace_neighbors() -> None:
    before = np.zeros((20, 2))
    after = np.arange(40.0).reshape(20, 2)
    assert sorted(most_changed(before, after, k=3).tolist()) == list(range(20))


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_images_have_no_order(count: int) -> None:
    assert most_changed(np.zeros((count, 2)), np.zeros((count, 2))).tolist() == []


def test_many_images_are_thinned() -> None:
    before, after = np.random.default_rng(2).normal(size=(2, 500, 4))
    rows = most_changed(before, after, most_queries=40, largest_gallery=300)
    assert len(rows) == len(set(rows.tolist())) == 40
    assert 0 in rows
    assert 499 in rows
    assert evenly_spread(10, 20).tolist() == list(range(10))


def test_a_record_contains_the_images_that_it_says_something_about() -> None:
    some, three = np.zeros(2, dtype=int), np.zeros(3)
    clusters = Clusters(np.array([0, 1, 0, 2, 2]), np.array([0, 1, 3]), np.array([0, 1, 0, 3, 3]))
    triplets = Triplets(np.array([4, 1, 4]), np.array([5, 2, 6]), np.array([7, 3, 8]), *[three] * 8)
    assert recorded_rows(clusters).tolist() == [0, 2, 3, 4], "the cluster of point 1 has no other image"  # type: ignore[union-attr]
    assert recorded_rows(triplets).tolist() == [1, 4], "anchors alone"  # type: ignore[union-attr]
    pairs = np.array([[3, 1], [1, 9]])
    assert recorded_rows(Pairs(pairs, some == 0, some, some, some)).tolist() == [1, 3, 9]  # type: ignore[union-attr]
    one_of_each = np.array([True, False])
    assert recorded_rows(Pairs(pairs, one_of_each, some, some, some)).tolist() == [1]  # type: ignore[union-attr]
    assert recorded_rows(Uncertainty(three)).tolist() == [0, 1, 2]  # type: ignore[union-attr]
    assert recorded_rows(LatentLayer(np.eye(2))) is None


def test_the_first_of_every_class_comes_first_then_the_second() -> None:
    labels = np.array([4, 4, 1, 4, 1, 7])
    assert classes_in_turn(labels).tolist() == [0, 2, 5, 1, 4, 3]
    assert classes_in_turn(np.zeros(0, dtype=np.int64)).tolist() == []


def test_the_first_query_is_the_row_of_the_played_training() -> None:
    """Image 3 has two neighbors of its class after training and none before; no other image gains as many."""
    before = np.array([[0.0], [1.0], [2.0], [9.0], [8.0], [8.5]])
    after = np.array([[0.0], [1.0], [2.0], [1.5], [8.0], [8.5]])
    labels = np.array([0, 0, 0, 0, 1, 1])
    assert first_query(before, after, labels, 2) == 3
    assert make_instrument([before, after], labels, k=2).clearest_query == 3
    assert first_query(before, after, None, 2) == make_instrument([before, after], None, k=2).clearest_query == 3
    assert first_query(before[:1], after[:1], None) == 0
