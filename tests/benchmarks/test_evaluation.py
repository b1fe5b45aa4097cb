"""Exact rankings for the evaluation beside faiss's flat search, which leaves ties and rounding errors as they come."""

from __future__ import annotations

import faiss
import numpy as np
import pytest

from tests.benchmarks.measure import medians
from udml_core.numerics.evaluation import rankings

COUNT, DIMENSION, NEIGHBORS = 20_000, 64, 50

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]


def test_exact_rankings_take_little_more_time_than_a_flat_search() -> None:
    random = np.random.default_rng(0)
    points = random.normal(size=(COUNT, DIMENSION)).astype(np.float32)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    times = medians(5, search=lambda: faiss.knn(points, points, NEIGHBORS + 1),
                    exact=lambda: list(rankings(points, NEIGHBORS)))
    ratio = times["exact"] / times["search"]
    print(f"\nn={COUNT}, d={DIMENSION}, k={NEIGHBORS}: faiss.knn {times['search']:.2f} s, "
          f"rankings {times['exact']:.2f} s, ratio {ratio:.2f}")
    assert ratio < 1.3
