"""The map of features side by side, against its formula written out."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from udml_core.base.arrays import Array
from udml_core.numerics.refinement.joining import joining
from udml_core.numerics.refinement.linear import unit_rows
from udml_core.numerics.refinement.recipe import Whitening

COUNT, NEIGHBORS = 80, 5


def parts() -> list[Array]:
    """Return unit features of two encoders, correlated and of different widths."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=(COUNT, 3))
    return [unit_rows(1 + common @ rng.normal(size=(3, width)) + 0.3 * rng.normal(size=(COUNT, width)))
            for width in (6, 4)]


def inverse_root(rows: Array) -> Array:
    """Return (C + v·I)^(−1/2) of the differences of mutual neighbors by the largest inner product."""
    similar = rows @ rows.T
    np.fill_diagonal(similar, -np.inf)
    near = [set(np.argsort(-row)[:NEIGHBORS]) for row in similar]
    pairs = [(i, j) for i in range(COUNT) for j in near[i] if i < j and i in near[j]]
    differences = np.array([rows[i] - rows[j] for i, j in pairs], np.float64)
    covariance = differences.T @ differences / len(pairs)
    values, vectors = np.linalg.eigh(covariance + np.trace(covariance) / len(covariance) * np.eye(len(covariance)))
    return np.asarray(vectors @ np.diag(values**-0.5) @ vectors.T)


def scaled(rows: Array, weight: float) -> Array:
    """Return centered rows with a mean squared length of weight²."""
    centered = rows - rows.mean(0)
    return np.asarray(weight * centered / np.sqrt((centered**2).sum(1).mean()))


def test_each_part_is_whitened_scaled_and_weighted() -> None:
    joint = joining(parts(), (1.0, 0.5), "each")
    expected = [scaled(part @ inverse_root(part), weight) for part, weight in zip(parts(), (1.0, 0.5), strict=True)]
    np.testing.assert_allclose((np.hstack(parts()) - joint.offset) @ joint.weight, np.hstack(expected), atol=1e-4)


def test_together_the_weighted_parts_are_whitened_as_one_vector() -> None:
    joint = joining(parts(), (1.0, 0.5), "together")
    first, second = parts()
    rows = np.hstack([first, 0.5 * second]) / np.sqrt(1.25)
    expected = (rows - rows.mean(0)) @ inverse_root(rows)
    np.testing.assert_allclose((np.hstack(parts()) - joint.offset) @ joint.weight, expected, atol=1e-4)


def test_without_whitening_the_weights_multiply_the_features() -> None:
    joint = joining(parts(), (1.0, 0.5), "none")
    first, second = parts()
    np.testing.assert_allclose((np.hstack(parts()) - joint.offset) @ joint.weight,
                               np.hstack([first, 0.5 * second]) / np.sqrt(1.25), atol=1e-6)


@pytest.mark.parametrize("whitened", get_args(Whitening))
def test_equal_images_give_finite_features(whitened: Whitening) -> None:
    equal = [np.repeat(part[:1], COUNT, axis=0) for part in parts()]
    joint = joining(equal, (1.0, 1.0), whitened)
    assert np.isfinite(joint.weight).all()
    assert np.isfinite(joint.offset).all()
