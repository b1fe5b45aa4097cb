"""Affinity propagation at the paper's n = 9,100, k = 10 beside the dense solve, and on 60,000 points at once."""

from __future__ import annotations

import resource
from typing import Any

import numpy as np
import pytest
import torch

from tests.benchmarks.measure import medians, seconds
from tests.graph.naive import propagated
from udml_core.backbones import Encoder, choose_spec
from udml_core.data import catalog
from udml_core.data.features import embed_pixels
from udml_core.errors import UserError
from udml_core.graph import propagate_affinities
from udml_core.neighbors import nearest

PARTITION, WHOLE, NEIGHBORS, PER_CLASS = 9_100, 60_000, 10, 10

Array = np.ndarray[Any, Any]
pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def points() -> tuple[Array, Array]:
    """Fashion-MNIST's training images as the untrained LeNet sees them, (60,000, 128), and labels of 10 a class."""
    try:
        dataset = catalog.load("fashion-mnist")
    except UserError as error:
        pytest.skip(str(error))
    encoder = Encoder(choose_spec("lenet", 28, True))
    pixels = np.stack([np.asarray(dataset.images[index])[None, :, :, 0] for index in range(WHOLE)])
    features = np.concatenate([embed_pixels(encoder, part) for part in np.array_split(pixels, 60)])
    assert dataset.labels is not None
    labels = np.full(WHOLE, -1)
    for label in range(10):
        labels[np.flatnonzero(dataset.labels[:WHOLE] == label)[:PER_CLASS]] = label
    return features / np.linalg.norm(features, axis=1, keepdims=True), labels


def test_a_partition_costs_a_twentieth_of_the_dense_solve(points: tuple[Array, Array]) -> None:
    features, labels = (part[:PARTITION] for part in points)
    neighbors = nearest(features, NEIGHBORS)[1]
    whole: list[Array] = []
    times = medians(3, selected=lambda: propagate_affinities(neighbors, labels))
    times["dense"] = seconds(lambda: whole.append(propagated(neighbors, labels, 0.99)))
    expected = whole[0][np.arange(PARTITION)[:, None], neighbors]
    error = abs(propagate_affinities(neighbors, labels) - expected).max() / abs(whole[0]).max()
    print(f"\nn={PARTITION}: dense {times['dense']:.1f} s, selected {times['selected']:.2f} s, "
          f"ratio {times['dense'] / times['selected']:.0f}, error {error:.1e} of the largest")
    assert error < 1e-4
    assert times["dense"] > 20 * times["selected"]


def test_all_of_fashion_mnist_at_once(points: tuple[Array, Array]) -> None:
    neighbors = nearest(points[0], NEIGHBORS)[1]
    took = seconds(lambda: propagate_affinities(neighbors, points[1]))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"\nn={WHOLE}: {took:.0f} s with {torch.get_num_threads()} threads, at most {memory:.1f} GB")
    assert took < 300
    assert memory < 8
