"""Quick maps, compared with the exact principal plane; earlier embeddings on the last map, compared with a loop."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sklearn.datasets import load_digits

from udml_core.base.arrays import Array
from udml_core.exploration.quick_map import place_among_neighbors, quick_frames, quick_map
from udml_core.numerics.projection.pca import pca_layout


def _wide(count: int, width: int) -> Array:
    """Points with variances that fall as in features, in a random orientation."""
    generator = np.random.default_rng(1)
    scales = 1 / np.sqrt(np.arange(1, width + 1))
    rotation = np.linalg.qr(generator.standard_normal((width, width)))[0]
    return (generator.standard_normal((count, width)) * scales @ rotation + 3).astype(np.float32)


def test_the_quick_map_of_digits_is_their_principal_plane() -> None:
    digits = load_digits().data.astype(np.float32)
    expected = pca_layout(digits)
    np.testing.assert_allclose(quick_map(digits), expected, atol=0.02 * np.abs(expected).max())


def test_the_quick_map_of_wide_embeddings_holds_nearly_all_variance_of_the_principal_plane() -> None:
    points = _wide(1500, 400)
    quick, exact = quick_map(points).var(axis=0), pca_layout(points).var(axis=0)
    assert (quick > 0.98 * exact).all()
    assert (quick < 1.001 * exact).all()


def test_the_quick_map_is_deterministic_and_centered() -> None:
    points = _wide(300, 50)
    np.testing.assert_array_equal(quick_map(points), quick_map(points))
    np.testing.assert_allclose(quick_map(points).mean(axis=0), 0, atol=1e-4)


@pytest.mark.parametrize("points", [np.zeros((12, 5), np.float32), np.arange(12.0)[:, None], np.eye(3)])
def test_degenerate_embeddings_have_a_quick_map(points: Array) -> None:
    layout = quick_map(points)
    assert layout.shape == (len(points), 2)
    assert np.isfinite(layout).all()


@pytest.fixture(scope="module")
def points() -> np.ndarray:
    return (np.random.default_rng(0).normal(size=(400, 12)) * np.arange(12, 0, -1) + 5).astype(np.float32)


def test_a_turned_and_scaled_embedding_has_the_same_layout(points: np.ndarray) -> None:
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(12, 12)))[0]
    frames = quick_frames([points, 7 * points @ turn])
    np.testing.assert_allclose(frames[1], frames[0], atol=0.02)


def test_a_layout_is_the_principal_plane_in_unit_size(points: np.ndarray) -> None:
    layout, exact = quick_frames([points])[0], pca_layout(points)
    assert (layout ** 2).sum(axis=1).mean() == pytest.approx(1, abs=1e-4)
    np.testing.assert_allclose(layout, exact / np.sqrt((exact ** 2).sum(axis=1).mean()), atol=0.02)


def test_equal_points_do_not_divide_by_zero() -> None:
    assert np.isfinite(quick_frames([np.ones((5, 3)), np.ones((5, 2))])).all()


@pytest.mark.benchmark
def test_six_thousand_images_take_less_than_200_ms() -> None:
    embedding = np.random.default_rng(0).normal(size=(6000, 64)).astype(np.float32)
    start = time.perf_counter()
    quick_frames([embedding, embedding])
    assert time.perf_counter() - start < 0.2


def test_a_point_lies_at_the_mean_of_its_neighbors() -> None:
    random = np.random.default_rng(0)
    embedding, layout = random.normal(size=(30, 4)), random.normal(size=(30, 2))
    places, neighbors = place_among_neighbors(embedding, layout, 3)
    for row in range(30):
        order = np.argsort(((embedding - embedding[row]) ** 2).sum(axis=1), kind="stable")
        near = [other for other in order.tolist() if other != row][:3]
        assert neighbors[row].tolist() == near
        np.testing.assert_allclose(places[row], layout[near].mean(axis=0), rtol=1e-5, atol=1e-6)


def test_two_points_change_places() -> None:
    layout = np.array([[0.0, 1.0], [2.0, 3.0]])
    np.testing.assert_array_equal(place_among_neighbors(np.zeros((2, 3)), layout)[0], layout[::-1])
