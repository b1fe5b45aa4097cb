"""The random walk similarity, compared with the power series of its inverse."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from udml_core.numerics.evaluation import similarity_correlation
from udml_core.numerics.graph import walk_similarity
from udml_core.numerics.neighbors import nearest


def test_similarity_is_the_sum_over_walks_of_all_lengths() -> None:
    pixels, labels = load_digits(return_X_y=True)
    points = (pixels / np.linalg.norm(pixels, axis=1, keepdims=True))[:300].astype(np.float32)
    neighbors = nearest(points, 10)[1]
    is_neighbor = np.zeros((300, 300), dtype=bool)
    is_neighbor[np.arange(300)[:, None], neighbors] = True
    weights = np.where(is_neighbor & is_neighbor.T, (points.astype(float) @ points.T.astype(float)).clip(0) ** 3, 0)
    degree = weights.sum(1)
    scale = np.where(degree > 0, 1 / np.sqrt(np.where(degree > 0, degree, 1)), 0)
    walk, power, total = scale[:, None] * weights * scale, np.eye(300), np.zeros((300, 300))
    for _ in range(400):
        total, power = total + 0.1 * power, 0.9 * walk @ power
    similarity = walk_similarity(points, 10, stay=0.9)
    np.testing.assert_allclose(similarity, total, atol=1e-6)
    np.testing.assert_allclose(similarity, similarity.T, atol=1e-9)
    assert similarity_correlation(similarity, labels[:300]) > 0.3
