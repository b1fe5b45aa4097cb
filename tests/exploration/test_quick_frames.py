"""Quick PCA maps of several embeddings: orientation, size, time."""

from __future__ import annotations

import time

import numpy as np
import pytest

from udml_core.exploration.quick_frames import quick_frames
from udml_core.numerics.projection.pca import pca_layout


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
