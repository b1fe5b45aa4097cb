"""DeepCluster: k-means with empty clusters, whitening, and batches that show every cluster equally often."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from udml_core.methods.deepcluster import CHANGE, DeepCluster, _Clustering, cluster, fill_empty, whiten
from udml_core.methods.embedder import unit
from udml_core.numerics.sampling import generator


def blobs() -> Tensor:
    """Return three groups of ten points around distant centers."""
    noise = 0.01 * torch.randn(30, 4, generator=generator(0, 0))
    return 5 * torch.eye(4)[torch.arange(30) % 3] + noise


def distortion(points: Tensor, clusters: Tensor) -> float:
    """Return the sum of squared distances to the clusters' means."""
    return sum(float((part - part.mean(0)).square().sum())
               for part in (points[clusters == number] for number in clusters.unique()))


def test_no_cluster_stays_empty_though_most_first_centers_are_equal_points() -> None:
    points = torch.cat([blobs()[:1].expand(40, -1), blobs()])
    for seed in range(10):
        clusters = cluster(points, 8, generator(seed, 0))
        assert (clusters.bincount(minlength=8) > 0).all()
        assert len(clusters[:41].unique()) == 1


def test_k_means_finds_distant_groups_and_lowers_the_distortion_of_its_start() -> None:
    clusters = cluster(blobs(), 6, generator(1, 0))
    groups = [set(clusters[group::3].tolist()) for group in range(3)]
    assert sum(map(len, groups)) == len(set.union(*groups))
    first = torch.cdist(blobs(), blobs()[torch.randperm(30, generator=generator(1, 0))[:6]]).argmin(1)
    assert distortion(blobs(), clusters) < distortion(blobs(), first)
    assert torch.equal(cluster(blobs(), 6, generator(1, 0)), clusters)


def test_an_empty_cluster_gets_a_slightly_changed_center_of_a_cluster_that_can_be_divided() -> None:
    centers, clusters = 5 * torch.eye(5), torch.tensor([0, 0, 2, 2, 2, 3])  # 1 and 4 are empty, 3 has one point
    sources = set()
    for seed in range(20):
        filled = fill_empty(centers, clusters, generator(seed, 0))
        assert torch.equal(filled[[0, 2, 3]], centers[[0, 2, 3]])
        lengths, nearest = torch.cdist(filled[[1, 4]], centers).min(1)
        torch.testing.assert_close(lengths, torch.full((2,), CHANGE), rtol=1e-3, atol=0)
        sources |= set(nearest.tolist())
    assert sources == {0, 2}


def test_centers_stay_if_no_cluster_is_empty_or_none_can_be_divided() -> None:
    centers = torch.eye(3)
    assert torch.equal(fill_empty(centers, torch.tensor([0, 1, 2, 2]), generator(0, 0)), centers)
    assert torch.equal(fill_empty(centers, torch.tensor([0, 1]), generator(0, 0)), centers)


def test_whitened_rows_have_unit_length_and_do_not_depend_on_shift_and_scale_of_directions() -> None:
    rows = torch.randn(50, 4, generator=generator(0, 0))
    mixed = rows @ torch.randn(4, 4, generator=generator(1, 0)) + 3
    torch.testing.assert_close(whiten(rows).norm(dim=1), torch.ones(50))
    torch.testing.assert_close(whiten(mixed) @ whiten(mixed).mT, whiten(rows) @ whiten(rows).mT, rtol=0, atol=1e-4)
    flat = torch.cat([rows, torch.zeros(50, 2)], dim=1)  # without variance in two directions
    torch.testing.assert_close(whiten(flat) @ whiten(flat).mT, whiten(rows) @ whiten(rows).mT, rtol=0, atol=1e-4)


def test_equal_images_form_one_cluster() -> None:
    rows = unit(torch.ones(6, 4))
    assert torch.equal(whiten(rows), torch.zeros(6, 4))
    assert len(cluster(whiten(rows), 3, generator(0, 0)).unique()) == 1


def test_batches_show_every_cluster_equally_often() -> None:
    clustering = _Clustering(DeepCluster(clusters=3, dimension=4), 1000, 0)
    clustering.assignment.copy_(torch.tensor([0] * 10 + [1] * 190 + [2] * 800))
    batches = list(clustering.batches(1000, 100, generator(0, 1)))
    assert [len(batch) for batch in batches] == [100] * 10
    shares = clustering.assignment[torch.cat(batches)].bincount() / 1000
    torch.testing.assert_close(shares, torch.full((3,), 1 / 3), rtol=0, atol=0.05)


@pytest.mark.parametrize("kind", ["centers", "random"])
def test_an_empty_cluster_has_a_class_without_images(kind: str) -> None:
    """Equal points cannot be divided, so some classes have no image; the weights stay finite."""
    clustering = _Clustering(DeepCluster(clusters=3, dimension=4).model_copy(update={"first_classifier": kind}), 6, 0)
    clustering.assignment.copy_(torch.tensor([0, 0, 0, 2, 2, 2]))
    rows = unit(torch.ones(6, 4))
    clustering.classifier.reset(clustering._first_weights(rows, generator(0, 0)))
    value, curves = clustering.loss(rows, torch.arange(6), generator(0, 0))
    assert value.isfinite()
    assert 0 <= curves["accuracy"] <= 1
