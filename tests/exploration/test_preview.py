"""The preview before training: clusters and angles of a sample, against the run's own functions."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch

from udml_core.data.splits import fixed_sample
from udml_core.exploration import preview as module
from udml_core.exploration.preview import draw_sample, preview
from udml_core.numerics.graph import AuthorityGraph
from udml_core.numerics.sampling import cluster_triplets, generator


@pytest.fixture(scope="module")
def features() -> np.ndarray:
    """Six groups of 50 points in 16 dimensions."""
    random = np.random.default_rng(0)
    centers = random.normal(size=(6, 16)) * 4
    return (np.repeat(centers, 50, axis=0) + random.normal(size=(300, 16))).astype(np.float32)


def test_the_preview_of_all_images_equals_what_a_run_computes(features: np.ndarray) -> None:
    train = np.arange(100, 300)
    sample = draw_sample(features.__getitem__, train)
    assert sample.indices.tolist() == train.tolist(), "all images fit into the sample"
    unit = features[train] / np.linalg.norm(features[train], axis=1, keepdims=True)
    clusters = AuthorityGraph.build(unit, 10).clusters(0.5, 100.0)
    result = preview(sample, 10, 0.5, 100.0, seed=3)
    sizes = np.bincount(clusters.labels)
    assert result.clusters.sizes.tolist() == sizes.tolist()
    triplets = cluster_triplets(torch.from_numpy(np.asarray(clusters.labels)), 2, 3000, generator(3, 0)).numpy()
    a, p, n = (unit[column].astype(np.float64) for column in triplets.T)
    angles = np.degrees(np.arctan(np.linalg.norm(a - p, axis=1) / (2 * np.linalg.norm(n - (a + p) / 2, axis=1))))
    assert result.shape is not None
    np.testing.assert_allclose(result.shape.angle, angles, rtol=1e-5)
    for alpha in (5.0, 20.0, 45.0):
        assert result.violations(alpha) == pytest.approx((angles > alpha).mean())


def test_the_example_is_a_cluster_of_median_size(features: np.ndarray) -> None:
    train = np.arange(0, 300, 2)
    sample = draw_sample(features.__getitem__, train)
    result = preview(sample, 10, 0.5, 100.0)
    labels = np.asarray(sample.graph(10).clusters(0.5, 100.0).labels)
    members = {tuple(train[labels == label]) for label in range(labels.max() + 1)}
    assert tuple(result.example) in members
    several = np.sort(result.clusters.sizes[result.clusters.sizes > 1])
    assert len(result.example) == several[len(several) // 2]


def test_a_large_half_is_sampled_without_the_other_half(features: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAMPLE", 40)
    train = np.arange(1, 300, 3)
    sample = draw_sample(features.__getitem__, train)
    assert len(sample.indices) == len(np.unique(sample.indices)) == 40
    assert set(sample.indices) <= set(train)
    assert sample.graph(60).authority.shape == (40,)


def test_the_sample_holds_the_images_that_a_run_stores(features: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAMPLE", 40)
    train = np.arange(1, 300, 3)
    assert set(fixed_sample(train, 25)) <= set(draw_sample(features.__getitem__, train).indices)


def test_without_triplets_there_are_no_violations(features: np.ndarray) -> None:
    result = preview(draw_sample(features.__getitem__, np.arange(300)), 10, 1.0, 100.0)
    assert result.clusters.count == result.clusters.singletons == 300
    assert result.shape is None
    assert result.violations(1.0) == 0.0
    assert not len(result.example)


def test_a_step_of_the_full_sample_is_fast() -> None:
    random = np.random.default_rng(1)
    features = random.normal(size=(module.SAMPLE, 512)).astype(np.float32)
    sample = draw_sample(features.__getitem__, np.arange(module.SAMPLE))
    preview(sample, 10, 0.5, 100.0)
    began = time.process_time()
    preview(sample, 50, 0.6, 100.0)
    assert time.process_time() - began < 1.0, "0.2 s on a free machine"
