"""Browsing a data set: orders, filters, near-duplicates and outliers, against literal references."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from udml_core.data.dataset import ArrayImages, Dataset
from udml_core.exploration import browsing
from udml_core.exploration.browsing import (
    find_images,
    most_similar,
    near_duplicates,
    neighbor_similarities,
    order_images,
    outlier_scores,
)
from udml_core.exploration.density import outlier_score
from udml_core.numerics.neighbors import nearest


@pytest.fixture
def dataset() -> Dataset:
    names = ("b/Image 10.png", "a/image 2.png", "b/other 1.png", "a/image 10.png")
    return Dataset("few", "Few", ArrayImages(np.zeros((4, 8, 8), np.uint8)), np.array([1, 0, 1, 0]), ("a", "b"),
                   "0" * 8, 8, True, names)


def clusters_and_outlier() -> np.ndarray:
    """Forty points near two directions, a pair of duplicates, and a point far from all."""
    random = np.random.default_rng(0)
    points = np.repeat([[5.0, 0, 0, 0], [0, 5.0, 0, 0]], 20, axis=0) + random.normal(0, 0.3, (40, 4))
    points[7] = 2 * points[3]
    return np.concatenate([points, [[0, 0, 1.0, 3.0]]]).astype(np.float32)


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def test_similarities_are_the_cosines_of_the_neighbors(monkeypatch: pytest.MonkeyPatch) -> None:
    points = clusters_and_outlier()
    neighbors = nearest(points, 5)[1]
    expected = [[cosine(points[row], points[other]) for other in neighbors[row]] for row in range(len(points))]
    for block in (4096, 7):
        monkeypatch.setattr(browsing, "BLOCK", block)
        np.testing.assert_allclose(neighbor_similarities(points, neighbors), expected, atol=1e-5)


def test_the_most_similar_images_are_found_among_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browsing, "BLOCK", 7)
    rng = np.random.default_rng(0)
    rows, images = rng.normal(size=(40, 5)).astype(np.float32), np.arange(0, 40, 2)
    rows[1] = rows[4] * 3  # the same direction, but not among the images
    rows[20] = rows[4] * 0.1
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    expected = sorted(set(images.tolist()) - {4}, key=lambda index: -float(unit[index] @ unit[4]))
    found = most_similar(rows, images, 4, 6)
    assert found.tolist() == expected[:6]
    assert found[0] == 20
    assert most_similar(rows, np.array([4]), 4, 6).tolist() == []


def test_the_outlier_has_the_largest_score() -> None:
    points = clusters_and_outlier()
    neighbors = nearest(points, 5)[1]
    scores = outlier_scores(neighbors, neighbor_similarities(points, neighbors))
    assert scores.argmax() == 40
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    distances = np.linalg.norm(unit[neighbors] - unit[:, None], axis=2)
    np.testing.assert_allclose(scores, outlier_score(distances, neighbors), rtol=0.05)


@pytest.mark.parametrize("least", [0.9, 0.99, 0.999, 1.0])
def test_near_duplicates_are_all_similar_pairs_once(least: float) -> None:
    points = clusters_and_outlier()
    neighbors = np.argsort(-_cosines(points) - 9 * np.eye(41), axis=1)[:, 1:]  # every other point is a neighbor
    similarities = neighbor_similarities(points, neighbors)
    pairs, values = near_duplicates(neighbors, similarities, least - 1e-6)
    cosines = _cosines(points)
    expected = {(i, j) for i in range(41) for j in range(i + 1, 41) if cosines[i, j] >= least - 1e-6}
    assert set(map(tuple, pairs.tolist())) == expected
    assert len(pairs) == len(expected)
    assert (np.diff(values) <= 0).all()
    assert pairs[0].tolist() == [3, 7]


def _cosines(points: np.ndarray) -> np.ndarray:
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(unit @ unit.T)


def test_images_are_found_by_class_and_name(dataset: Dataset) -> None:
    assert find_images(dataset).tolist() == [0, 1, 2, 3]
    assert find_images(dataset, 0).tolist() == [1, 3]
    assert find_images(dataset, None, " IMAGE 10 ").tolist() == [0, 3]
    assert find_images(dataset, 1, "image").tolist() == [0]
    assert find_images(dataset, None, "nowhere").tolist() == []


def test_images_are_ordered(dataset: Dataset) -> None:
    values = np.array([0.9, 0.8, 0.3, 0.9])
    orders = {order: order_images(dataset, np.arange(4), order, values).tolist() for order in browsing.ORDERS}
    assert orders == {"index": [0, 1, 2, 3], "class": [1, 3, 0, 2], "name": [1, 3, 0, 2], "outlier": [0, 3, 1, 2],
                      "duplicate": [0, 3, 1, 2]}
    assert order_images(dataset, np.array([1, 2, 3]), "outlier", values).tolist() == [3, 1, 2]


def test_an_order_without_its_values_is_the_data_sets(dataset: Dataset) -> None:
    unlabeled = replace(dataset, labels=None, class_names=())
    assert order_images(unlabeled, np.arange(4), "class").tolist() == [0, 1, 2, 3]
    assert order_images(dataset, np.arange(4), "outlier").tolist() == [0, 1, 2, 3]
