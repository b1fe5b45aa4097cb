"""Measures of rankings, on rankings small enough to count."""

from __future__ import annotations

import numpy as np
import pytest

from udml_core.numerics.evaluation import map_at_r, neighbor_stability, recall_at_k
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.refinement.ranking_measures import label_free_measures, retrieval_measures


def test_inside_the_gallery_the_measures_equal_the_evaluation_of_the_embedding() -> None:
    random = np.random.default_rng(0)
    points, labels = random.normal(size=(60, 3)).astype(np.float32), random.integers(0, 5, 60)
    measures = retrieval_measures(nearest(points, 59)[1], labels, labels, inside=True)
    assert measures["recall@1"] == pytest.approx(100 * recall_at_k(points, labels)[1])
    assert measures["map@r"] == pytest.approx(100 * map_at_r(points, labels)[0])


def test_queries_outside_retrieve_all_images_of_their_class() -> None:
    """Query 0 has R = 2 and hits at ranks 1 and 3: MAP@R is (1/1)/2. Query 1 has no class in the gallery."""
    measures = retrieval_measures(np.array([[0, 1, 2], [1, 0, 2]]), np.array([7, 9]), np.array([7, 8, 7]), inside=False)
    assert measures == {"recall@1": 50.0, "map@r": 50.0}


def test_missing_images_are_misses() -> None:
    measures = retrieval_measures(np.array([[2, -1]]), np.array([7]), np.array([7, 8, 7]), inside=False)
    assert measures == {"recall@1": 100.0, "map@r": 50.0}


def test_label_free_measures_of_a_star() -> None:
    """Images 1, 2 and 3 have the neighbor 0, whose neighbor is 1: 2 of 4 edges are mutual; occurrences 3, 1, 0, 0."""
    measures = label_free_measures(np.array([[1], [0], [0], [0]]), np.array([[1], [0], [3], [2]]))
    deviation = np.array([2.0, 0, -1, -1])
    assert measures["reciprocity"] == 50.0
    assert measures["neighbor stability"] == 50.0
    assert measures["hubness"] == pytest.approx((deviation**3).mean() / (deviation**2).mean() ** 1.5)


def test_stability_equals_the_evaluation() -> None:
    random = np.random.default_rng(1)
    before, after = random.normal(size=(2, 50, 4)).astype(np.float32)
    measures = label_free_measures(nearest(after, 10)[1], nearest(before, 10)[1])
    assert measures["neighbor stability"] == pytest.approx(100 * neighbor_stability(before, after))
