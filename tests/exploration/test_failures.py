"""The failure atlas and the history of nearest images, compared with loops."""

from __future__ import annotations

import numpy as np
import pytest

from udml_core.exploration.failures import (
    Atlas,
    ConfusedPair,
    failed_rows,
    failure_atlas,
    history,
    hit_since,
    last_hit,
    nearest_other,
)
from udml_core.numerics.evaluation import recall_at_k


def class_points(seed: int, count: int = 120, classes: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Return unit vectors (n, 6) and classes (n,).

    The vectors are shifted toward the direction of their class."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, count)
    vectors = random.normal(size=(count, 6)) + 1.2 * random.normal(size=(classes, 6))[labels]
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32), labels


def nearest_by_loop(vectors: np.ndarray) -> list[int]:
    nearest = []
    wide = vectors.astype(np.float64)
    for row, vector in enumerate(wide):
        distances = [np.inf if other == row else ((vector - wide[other]) ** 2).sum() for other in range(len(wide))]
        nearest.append(int(np.argmin(distances)))
    return nearest


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_atlas_equals_a_loop_over_every_query(seed: int) -> None:
    vectors, labels = class_points(seed)
    indices = np.arange(len(labels)) * 3 + 5
    atlas = failure_atlas(vectors, indices, labels)
    nearest = nearest_by_loop(vectors)
    counts: dict[tuple[int, int], int] = {}
    for row, other in enumerate(nearest):
        assert atlas.nearest[row] == indices[other]
        if labels[row] != labels[other]:
            pair = (int(labels[row]), int(labels[other]))
            counts[pair] = counts.get(pair, 0) + 1
    assert len(counts) > 3
    expected = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    assert atlas.pairs == tuple(ConfusedPair(own, other, count) for (own, other), count in expected)
    own, other = expected[0][0]
    assert atlas.members(own, other).tolist() == [row for row in range(len(labels))
                                                  if (labels[row], labels[nearest[row]]) == (own, other)]
    assert atlas.recall == pytest.approx(recall_at_k(vectors, labels, (1,))[1], abs=1e-12)
    by_class = atlas.recall_by_class(5)
    for label in range(4):
        rows = [row for row in range(len(labels)) if labels[row] == label]
        hits = sum(labels[nearest[row]] == label for row in rows)
        assert by_class[label] == pytest.approx(hits / len(rows))
    assert np.isnan(by_class[4])


def test_without_a_miss_no_classes_are_confused() -> None:
    vectors = np.repeat(np.eye(3), 4, axis=0)
    labels = np.repeat(np.arange(3), 4)
    atlas = failure_atlas(vectors, np.arange(12), labels)
    assert atlas.pairs == ()
    assert atlas.recall == 1


def test_failed_queries_come_in_the_order_of_their_confused_pairs() -> None:
    classes, nearest = np.array([0, 1, 1, 2, 0, 1]), np.array([1, 2, 1, 2, 2, 2])
    atlas = Atlas(np.arange(10, 16), np.arange(6), classes, nearest)
    assert failed_rows(atlas).tolist() == [1, 5, 0, 4], "the pair 1, 2 is the most frequent"
    assert failed_rows(atlas, 0).tolist() == [0, 4]
    assert failed_rows(atlas, 2).tolist() == []


def test_reported_progress_increases_to_one() -> None:
    shares: list[float] = []
    nearest_other(class_points(0, 2500)[0], shares.append)
    assert len(shares) > 2
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_the_epoch_in_which_a_query_became_a_hit_equals_a_loop() -> None:
    random = np.random.default_rng(0)
    right = random.random((6, 300)) < random.random(300)
    since, last = hit_since(right), last_hit(right)
    for column in range(300):
        hits = right[:, column].tolist()
        assert since[column] == next((row for row in range(6) if all(hits[row:])), 6)
        assert last[column] == max((row for row in range(6) if hits[row]), default=-1)
    assert {0, 3, 6} <= set(since.tolist())
    assert -1 in last


def test_the_history_contains_the_nearest_images_of_every_epoch() -> None:
    samples = [class_points(seed, 60)[0] for seed in range(3)]
    labels = class_points(0, 60)[1]
    indices = np.arange(60) * 2
    result = history(indices, (0, 1, 2), samples, labels)
    for epoch, sample in enumerate(samples):
        nearest = nearest_by_loop(sample)
        assert result.nearest[epoch].tolist() == nearest
        assert result.hits is not None
        assert result.hits[epoch].tolist() == [labels[row] == labels[other] for row, other in enumerate(nearest)]
    assert [result.row(index) for index in (0, 6, 7, 118, 500, -1)] == [0, 3, None, 59, None, None]
    assert history(indices, (0,), samples[:1], None).hits is None
