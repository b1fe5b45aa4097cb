"""Authority shift at n = 60,000, k = 50: time to move ε, and time to fit relative to the neighbor search."""

from __future__ import annotations

import gzip
from itertools import cycle
from pathlib import Path
from statistics import median

import faiss
import numpy as np
import pytest
import torch

from tests.benchmarks.measure import medians, seconds
from udml_core.base.arrays import Array
from udml_core.numerics.graph import AuthorityShift

FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz")
COUNT, NEIGHBORS = 60_000, 50

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def pixels() -> Array:
    """Unit rows (60000, 784) of Fashion-MNIST's training pixels, or seeded Gaussian rows if it is not installed."""
    if FASHION_MNIST.exists():
        values = np.frombuffer(gzip.decompress(FASHION_MNIST.read_bytes()), np.uint8, offset=16)
    else:
        values = np.random.default_rng(0).normal(size=COUNT * 784)
    points = values.reshape(COUNT, 784).astype(np.float32)
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def project_by_pca(points: Array, dimension: int) -> Array:
    centered = torch.from_numpy(points - points.mean(axis=0))
    vectors = torch.linalg.eigh(centered.mT @ centered).eigenvectors[:, -dimension:]
    return (centered @ vectors).numpy()


@pytest.mark.parametrize(("dimension", "repetitions"), [(128, 5), (784, 3)])
def test_fit_takes_little_more_time_than_the_search(pixels: Array, dimension: int, repetitions: int) -> None:
    points = np.ascontiguousarray(pixels if dimension == 784 else project_by_pca(pixels, dimension))
    times = medians(repetitions, search=lambda: faiss.knn(points, points, NEIGHBORS + 1),
                    fit=lambda: AuthorityShift(NEIGHBORS).fit(points))
    ratio = times["fit"] / times["search"]
    print(f"\nn={COUNT}, d={dimension}, k={NEIGHBORS}, {repetitions} rounds: faiss.knn {times['search']:.2f} s, "
          f"AuthorityShift.fit {times['fit']:.2f} s, ratio {ratio:.3f}")
    assert ratio < 1.10


def test_moving_epsilon_forms_the_clusters_again_within_25_ms(pixels: Array) -> None:
    graph = AuthorityShift(NEIGHBORS).fit(project_by_pca(pixels, 128)).graph_
    graph.clusters(0.5, 100.0)
    epsilons = np.linspace(0.3, 0.9, 25)
    moves = [1000 * seconds(lambda value=value: graph.clusters(value, 100.0)) for value in np.tile(epsilons, 3)]
    gammas = cycle([50.0, 200.0])
    changes = [1000 * seconds(lambda: graph.clusters(0.65, next(gammas))) for _ in range(9)]
    print(f"\nn={COUNT}, k={NEIGHBORS}: ε takes {median(moves):.1f} ms (slowest {max(moves):.1f}), "
          f"γ {median(changes):.0f} ms, {len(graph.rows):,} ascending edges")
    assert median(moves) < 25
