"""Re-ranking and diffusion, compared with dense references."""

from __future__ import annotations

import numpy as np
import pytest

from tests.numerics.refinement.literal import k_reciprocal_distances
from udml_core.base.arrays import Array
from udml_core.numerics.refinement.diffusion import DiffusionRanking
from udml_core.numerics.refinement.linear import unit_rows
from udml_core.numerics.refinement.reciprocal import ReciprocalRanking


def clustered(seed: int, count: int = 90, dimension: int = 6) -> Array:
    random = np.random.default_rng(seed)
    centers = random.normal(size=(6, dimension))
    return unit_rows(centers[np.arange(count) % 6] + 0.4 * random.normal(size=(count, dimension)))


def test_the_literal_reference_equals_the_published_code() -> None:
    """The figures were printed by the authors' Python version with k₁ = 6, k₂ = 3 and λ = 0.3.

    https://github.com/zhunzhong07/person-re-ranking, commit 278f2c70, `re_ranking`: rows 0 to 3 are queries, and
    columns are rows 4 to 9. It divides squared distances by the largest of each row, and expands a set by sets of which
    more than two thirds are in it. The paper says at least two thirds.
    """
    rows = np.random.default_rng(0).normal(size=(24, 4))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    squared = 2 - 2 * rows @ rows.T
    np.fill_diagonal(squared, 0)
    result = k_reciprocal_distances(squared / squared.max(axis=1, keepdims=True), 6, 3, 0.3, strict=True)
    np.testing.assert_allclose(result[:4, 4:10], [
        [0.57721, 0.93628, 0.90698, 1.0, 0.79029, 0.56577], [0.39367, 0.71213, 0.98623, 0.92329, 0.46927, 0.32288],
        [0.77335, 0.89047, 0.73918, 0.57325, 0.97206, 0.82605], [0.86503, 0.71609, 0.64773, 0.31598, 0.87863, 0.90316],
    ], atol=2e-5)


@pytest.mark.parametrize(("k1", "k2", "weight"), [(20, 6, 0.3), (7, 1, 0.0), (12, 4, 0.1), (5, 9, 1.0), (1, 1, 0.5)])
@pytest.mark.parametrize("seed", [0, 1])
def test_re_ranking_equals_the_literal_reference(k1: int, k2: int, weight: float, seed: int) -> None:
    rows = clustered(seed)
    expected = k_reciprocal_distances(1 - rows.astype(np.float64) @ rows.T, k1, k2, weight)
    indices, scores = ReciprocalRanking(rows, k1, k2, weight, shortlist=len(rows)).neighbors(len(rows) - 1)
    np.testing.assert_allclose(1 - scores, np.take_along_axis(expected, indices, axis=1), atol=2e-5)
    assert (np.diff(scores, axis=1) <= 0).all()


def test_a_shortlist_keeps_the_smallest_distances() -> None:
    rows = clustered(3, count=200)
    whole = ReciprocalRanking(rows, 10, 4, 0.1, shortlist=200).neighbors(15)
    short = ReciprocalRanking(rows, 10, 4, 0.1, shortlist=40).neighbors(15)
    np.testing.assert_allclose(short[1], whole[1], atol=1e-5)


@pytest.mark.slow
def test_a_query_outside_is_encoded_by_its_own_reciprocal_neighbors() -> None:
    """The formula with the query appended, where the gallery's own sets do not contain it."""
    rows, query = clustered(4, count=60), clustered(5, count=60)[:1]
    k1, k2, weight = 8, 3, 0.2
    cosine = rows.astype(np.float64) @ rows.T
    order = np.argsort(-cosine, axis=1)
    radius = [1 - cosine[image, order[image, k1]] for image in range(60)]
    distances = 1 - rows.astype(np.float64) @ query[0]
    by_distance = np.argsort(distances)

    def reciprocal(image: int, k: int) -> set[int]:
        return {other for other in order[image, : k + 1] if image in order[other, : k + 1]}

    first = {int(image) for image in by_distance[:k1] if distances[image] <= radius[image]}
    members = set(first)
    for image in first:
        half = reciprocal(image, k1 // 2)
        if 3 * len(half & first) >= 2 * len(half):
            members |= half
    single = np.zeros(60)
    for image in members:
        single[image] = np.exp(-distances[image])
    single /= max(single.sum(), 1e-9)
    ranker = ReciprocalRanking(rows, k1, k2, weight, shortlist=60)
    encoding = single + ranker._single.toarray()[by_distance[: k2 - 1]].sum(axis=0)
    encoding /= encoding.sum()
    gallery = ranker.encoding.toarray()
    overlap = np.minimum(encoding, gallery).sum(axis=1)
    expected = (1 - weight) * (1 - overlap / (2 - overlap)) + weight * distances
    indices, scores = ranker.search(query, 60)
    np.testing.assert_allclose(1 - scores[0], expected[indices[0]], atol=1e-5)


@pytest.mark.parametrize("alpha", [0.5, 0.99])
def test_diffusion_equals_the_closed_form(alpha: float) -> None:
    rows = clustered(0).astype(np.float64)
    k, gamma = 8, 3.0
    cosine = rows @ rows.T
    order = np.argsort(-cosine, axis=1)
    is_near = np.zeros((90, 90), bool)
    for image in range(90):
        is_near[image, [other for other in order[image] if other != image][:k]] = True
    affinity = np.where(is_near & is_near.T, np.maximum(cosine, 0) ** gamma, 0)
    root = 1 / np.sqrt(np.maximum(affinity.sum(axis=1), 1e-12))
    inverse = np.linalg.inv(np.eye(90) - alpha * root[:, None] * affinity * root)
    ranker = DiffusionRanking(rows, k, alpha, gamma, shortlist=89)
    indices, scores = ranker.neighbors(89)
    np.testing.assert_allclose(scores, np.take_along_axis(inverse, indices, axis=1), atol=2e-3 * inverse.max())
    query = clustered(1)[:3].astype(np.float64)
    similarity = query @ rows.T
    kth = np.sort(similarity, axis=1)[:, -k][:, None]
    expected = np.where(similarity >= kth, np.maximum(similarity, 0) ** gamma, 0) @ inverse
    indices, scores = DiffusionRanking(rows, k, alpha, gamma, shortlist=90).search(query, 90)
    np.testing.assert_allclose(scores, np.take_along_axis(expected, indices, axis=1), atol=2e-3 * expected.max())


def test_truncated_diffusion_solves_on_the_nearest_images_only() -> None:
    rows = clustered(2)
    whole = DiffusionRanking(rows, 6, 0.9, shortlist=89)
    graph = whole.graph.toarray()
    image = 5
    order = np.argsort(-(rows @ rows[image]))[:21]
    assert order[0] == image
    expected = np.linalg.inv(np.eye(21) - 0.9 * graph[np.ix_(order, order)])[0]
    indices, scores = DiffusionRanking(rows, 6, 0.9, shortlist=20).neighbors(20)
    by_image = dict(zip(order.tolist(), expected, strict=True))
    np.testing.assert_allclose(scores[image], [by_image[other] for other in indices[image]], atol=1e-4)
