"""The principal plane, compared with scikit-learn, and its alignment."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from udml_core.base import arrays
from udml_core.base.arrays import Array
from udml_core.numerics.projection.align import Motion
from udml_core.numerics.projection.pca import Plane, pca_layout, place


def test_the_plane_equals_scikit_learn_up_to_signs(digits: Array) -> None:
    layout, expected = pca_layout(digits), PCA(2, svd_solver="full").fit_transform(digits.astype(np.float64))
    np.testing.assert_allclose(np.abs(layout), np.abs(expected), atol=1e-10)
    axes = Plane.of(digits).axes
    assert (axes[np.abs(axes).argmax(axis=0), [0, 1]] > 0).all()


@pytest.mark.parametrize("block", [100, 8_000_000])
def test_the_plane_of_fewer_points_than_dimensions_equals_scikit_learn(block: int, digits: Array,
                                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "BLOCK_ENTRIES", block)
    few = np.concatenate([digits[:40], digits[40:80]], axis=1)
    layout, expected = pca_layout(few), PCA(2, svd_solver="full").fit_transform(few.astype(np.float64))
    np.testing.assert_allclose(np.abs(layout), np.abs(expected), atol=1e-8)
    np.testing.assert_allclose(place(few, layout, few[:5]), layout[:5], atol=1e-8)


def test_new_points_are_placed_exactly_on_a_rotated_layout(digits: Array, moved: Array) -> None:
    rotated = Motion(np.array([[0.6, 0.8], [0.8, -0.6]]), np.array([3.0, -1.0]))(pca_layout(digits))
    np.testing.assert_allclose(place(digits, rotated, digits[:50]), rotated[:50], atol=1e-9)
    following = pca_layout(moved, before=rotated)
    np.testing.assert_allclose(place(moved, following, moved[:50]), following[:50], atol=1e-9)
    assert ((following - rotated) ** 2).sum() <= ((pca_layout(moved) - rotated) ** 2).sum()


@pytest.mark.parametrize("points", [np.zeros((12, 5), np.float32), np.arange(12.0)[:, None],
                                    np.outer(np.arange(12.0), np.arange(40.0))])
def test_points_without_a_second_dimension_have_a_layout(points: Array) -> None:
    layout = pca_layout(points)
    assert layout.shape == (12, 2)
    np.testing.assert_allclose(layout[:, 1], 0, atol=1e-9)
