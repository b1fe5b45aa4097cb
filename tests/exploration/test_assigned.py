"""Measures among assigned labels: their literal values, their intervals, and what is too little."""

from __future__ import annotations

import numpy as np
import pytest

from udml_core.exploration.assigned import assigned_measures, doubtful_labels

POINTS = np.array([[0.0], [0.1], [5.0], [5.1], [-0.3], [100.0], [5.2]], np.float32)


def test_the_measures_are_those_of_the_labeled_images_alone() -> None:
    """Image 4 is nearest to class a, so one of its queries misses; image 6 has no label and is no result."""
    found = assigned_measures(POINTS, {0: "a", 1: "a", 2: "b", 3: "b", 4: "b", 5: "c"})
    assert found is not None
    assert found[:3] == (6, 3, 5)
    recall, precision = found.measures["recall@1"], found.measures["map@r"]
    assert recall.value == pytest.approx(80.0), "0 and 1, 2 and 3 are mutual neighbors"
    assert precision.value == pytest.approx(100 * (1 + 1 + 0.5 + 0.5 + 0) / 5), "4 follows after the other class"
    assert recall.low < recall.value < recall.high
    assert precision.low < precision.value < precision.high


def test_a_few_hits_do_not_prove_a_perfect_embedding() -> None:
    found = assigned_measures(POINTS, {0: "a", 1: "a", 2: "b", 3: "b"})
    assert found is not None
    recall = found.measures["recall@1"]
    assert (recall.value, recall.high) == (100.0, 100.0)
    assert recall.low == pytest.approx(51.0, abs=0.1), "the Wilson interval of 4 of 4"


@pytest.mark.parametrize("labels", [{}, {0: "a"}, {0: "a", 1: "a"}, {0: "a", 2: "b"}, {0: "a", 2: "b", 99: "b"}])
def test_one_class_or_no_query_measures_nothing(labels: dict[int, str]) -> None:
    assert assigned_measures(POINTS, labels) is None


def test_the_interval_covers_the_mean_of_all_images() -> None:
    """Draws of 40 labeled images of two overlapping classes contain the expected R@1 about 95 times in a hundred."""
    random, covered, values, spans = np.random.default_rng(0), 0, [], []
    for _ in range(60):
        classes = random.integers(0, 2, 40)
        points = (classes + random.normal(size=40) * 0.8)[:, None].astype(np.float32)
        found = assigned_measures(points, {image: str(code) for image, code in enumerate(classes)})
        assert found is not None
        values.append(found.measures["recall@1"].value)
        spans.append(found.measures["recall@1"][1:])
    mean = np.mean(values)
    covered = sum(low <= mean <= high for low, high in spans)
    assert covered >= 50


def test_labels_whose_nearest_label_differs_are_doubtful_the_nearest_pair_first() -> None:
    points = np.array([[0.0], [1.0], [1.1], [3.0], [3.5], [9.0]])
    assert doubtful_labels(points, ["a", "a", "b", "b", "c", "c"]).tolist() == [[1, 2], [3, 4]]
    assert doubtful_labels(points, ["a", "a", "a", "b", "b", "b"]).tolist() == []
    assert doubtful_labels(points[:1], ["a"]).tolist() == []
    assert doubtful_labels(points[[0, 3, 4]], ["a", "b", "b"]).tolist() == [[0, 1]], "0's nearest is 3, whose own is 4"
