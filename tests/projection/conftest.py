"""Points that several tests lay out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from udml_core.arrays import Array


@pytest.fixture(scope="session")
def digits() -> Array:
    """600 digits as unit vectors, (600, 64) float32."""
    points = load_digits().data[:600].astype(np.float32)
    return points / np.linalg.norm(points, axis=1, keepdims=True)


@pytest.fixture(scope="session")
def moved(digits: Array) -> Array:
    """The same digits a training step later: every vector a little elsewhere."""
    return digits + np.random.default_rng(0).normal(0, 0.02, digits.shape).astype(np.float32)


@pytest.fixture(scope="session")
def collapsed() -> Array:
    """60 points at three places, as embeddings that lost everything but the class."""
    return np.repeat(np.eye(3, 8, dtype=np.float32), 20, axis=0)
