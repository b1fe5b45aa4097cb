"""The quick map, compared with the exact principal plane."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from udml_core.base.arrays import Array
from udml_core.exploration.quick_map import quick_map
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
