"""Density and outlier score, compared with scikit-learn and with literal values."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import LocalOutlierFactor

from udml_core.base.arrays import Array
from udml_core.exploration import density as views
from udml_core.numerics.neighbors import nearest


@pytest.fixture(scope="module")
def points() -> Array:
    """A dense group, a sparse group, and one point far from both, which is last."""
    generator = np.random.default_rng(0)
    groups = generator.normal(0, 0.1, (150, 5)), generator.normal(4, 1.0, (150, 5)), np.full((1, 5), 12.0)
    return np.concatenate(groups).astype(np.float32)


@pytest.fixture(scope="module")
def neighbors(points: Array) -> tuple[Array, Array]:
    squared, rows = nearest(points, 10)
    return np.sqrt(squared), rows


def test_the_distances_to_given_neighbors_are_those_of_the_search(
        points: Array, neighbors: tuple[Array, Array], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "BLOCK", 64)
    np.testing.assert_allclose(views.neighbor_distances(points, neighbors[1]), neighbors[0], atol=2e-3)


def test_the_outlier_score_is_the_local_outlier_factor(points: Array, neighbors: tuple[Array, Array]) -> None:
    score = views.outlier_score(*neighbors)
    reference = LocalOutlierFactor(n_neighbors=10).fit(points)
    np.testing.assert_allclose(score, -reference.negative_outlier_factor_, rtol=1e-3)
    assert score.argmax() == len(points) - 1
    assert np.abs(np.median(score) - 1) < 0.1


def test_density_counts_doublings_of_the_median_distance() -> None:
    distances = np.array([[1.0, 1.0], [2.0, 2.0], [4.0, 4.0], [1.0, 3.0], [0.0, 0.0]])
    np.testing.assert_allclose(views.density(distances), [1.0, 0.0, -1.0, 0.0, 6.0])


def test_the_denser_group_has_the_higher_density(neighbors: tuple[Array, Array]) -> None:
    density = views.density(neighbors[0])
    assert density[:150].min() > density[150:].max()
    assert density.argmin() == 300


def test_identical_points_have_a_finite_density_and_score() -> None:
    same, rows = np.zeros((6, 3)), np.tile([1, 2, 3], (6, 1))
    np.testing.assert_array_equal(views.density(same), np.zeros(6))
    np.testing.assert_allclose(views.outlier_score(same, rows), np.ones(6))
