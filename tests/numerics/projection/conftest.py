"""Points for the tests of layouts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from udml_core.base.arrays import Array


@pytest.fixture(scope="session")
def digits() -> Array:
    """300 digits as unit vectors, (300, 64) float32."""
    points = load_digits().data[:300].astype(np.float32)
    return points / np.linalg.norm(points, axis=1, keepdims=True)


@pytest.fixture(scope="session")
def moved(digits: Array) -> Array:
    """The same digits with a little noise, like embeddings one training step later."""
    return digits + np.random.default_rng(0).normal(0, 0.02, digits.shape).astype(np.float32)


@pytest.fixture(scope="session")
def collapsed() -> Array:
    """60 copies of three points, like collapsed embeddings that keep the class only."""
    return np.repeat(np.eye(3, 8, dtype=np.float32), 20, axis=0)
