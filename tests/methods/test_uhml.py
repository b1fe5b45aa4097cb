"""UHML-like hierarchy: levels, hyperbolic distances, and training of the encoder by the formulas, step by step."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from sklearn.cluster import AgglomerativeClustering
from torch import Tensor

from tests.methods.golden_instance import (
    FIELDS,
    Model,
    all_images,
    assert_same_training,
    double_precision,
    literal_epochs,
    small_images,
    unit,
)
from tests.methods.test_instance_methods import fit_epochs
from udml_core.base.errors import UserError
from udml_core.methods.uhml import UHML, hierarchy, hyperbolic_distances, level_gaps, log_ratio_loss
from udml_core.numerics.sampling import generator, pair_batches

CLUSTERS, STEP, CURVATURE = 6, 0.4, 0.7


def rows_of(count: int, seed: int = 0) -> Tensor:
    return unit(torch.randn(count, 4, generator=generator(seed, 0), dtype=torch.float64))


def ball_distance(first: Tensor, second: Tensor) -> Tensor:
    """Compute the distance (2/√c) artanh(√c ‖(−u) ⊕ v‖) of u = tanh(√c)·x/√c in the ball of curvature −c."""
    root = math.sqrt(CURVATURE)
    u, v = (math.tanh(root) * row / root for row in (-first, second))
    product, uu, vv = u @ v, u @ u, v @ v
    moved = ((1 + 2 * CURVATURE * product + CURVATURE * vv) * u + (1 - CURVATURE * uu) * v) / (
        1 + 2 * CURVATURE * product + CURVATURE**2 * uu * vv)
    return 2 / root * torch.atanh(root * moved.norm())


def literal_loss(rows: Tensor, labels: list[list[int]]) -> Tensor:
    """Compute the mean over triplets, one by one."""
    terms = []
    for i, j, k in itertools.permutations(range(len(rows)), 3):
        gaps = [sum(a != b for a, b in zip(labels[i], labels[other], strict=True)) for other in (j, k)]
        if gaps[0] == 0 < gaps[1]:
            ratio = torch.log(ball_distance(rows[i], rows[k]) / ball_distance(rows[i], rows[j]))
            terms.append((ratio - STEP * gaps[1]) ** 2)
    return torch.stack(terms).mean()


@double_precision()
def test_training_equals_the_literal_loop() -> None:
    """Compute the clusters of each epoch by scikit-learn, and the loss triplet by triplet."""
    data, setting = small_images()
    method = UHML.make(FIELDS | {"clusters": CLUSTERS, "levels": 2, "step": STEP, "curvature": CURVATURE, "batch": 8,
                                 "batch_norm": "batch"})
    model, images = Model.begin(method, data, setting), all_images(data)
    labels = np.zeros((0, 0))

    def plan(random: torch.Generator) -> Sequence[Tensor]:
        nonlocal labels
        points = model.embed(images, by_batch=False).detach().numpy()
        counts = [CLUSTERS, CLUSTERS // 2]
        labels = np.stack([AgglomerativeClustering(count).fit_predict(points) for count in counts], axis=1)
        # The draw depends on the numbering of the clusters, which is arbitrary; the package's numbering is used for it.
        ours = hierarchy(points, counts)
        assert same_partition(ours[:, 0], labels[:, 0])
        assert same_partition(ours[:, 1], labels[:, 1])
        return list(pair_batches(torch.from_numpy(ours[:, 0]), 8, random))

    def loss(rows: Tensor, batch: Tensor, random: torch.Generator) -> Tensor:
        return literal_loss(rows, labels[batch.numpy()].tolist())

    literal = literal_epochs(model, images, loss, views=1, by_batch=True, plan=plan)
    assert_same_training(method, data, setting, model, literal)


def same_partition(first: np.ndarray, second: np.ndarray) -> bool:  # type: ignore[type-arg]
    return len(set(zip(first.tolist(), second.tolist(), strict=True))) == len(set(first.tolist())) == len(
        set(second.tolist()))


def test_levels_are_nested_and_have_their_numbers_of_clusters() -> None:
    labels = hierarchy(rows_of(40).numpy(), [12, 6, 3])
    assert [len(set(column.tolist())) for column in labels.T] == [12, 6, 3]
    for fine, coarse in itertools.pairwise(labels.T):
        assert len(set(zip(fine.tolist(), coarse.tolist(), strict=True))) == len(set(fine.tolist()))
    gaps = level_gaps(torch.from_numpy(labels))
    assert gaps.diagonal().eq(0).all()
    assert set(gaps.flatten().tolist()) == {0, 1, 2, 3}
    first, second = labels[0], labels[7]
    assert int(gaps[0, 7]) == sum(first != second)


def test_hyperbolic_distances_are_those_of_the_ball_and_keep_the_order_of_the_cosine() -> None:
    rows = rows_of(9)
    distances = hyperbolic_distances(rows, CURVATURE)
    for i, j in itertools.combinations(range(9), 2):
        torch.testing.assert_close(distances[i, j], ball_distance(rows[i], rows[j]))
    cosines = (rows @ rows.mT).fill_diagonal_(2)
    torch.testing.assert_close(distances.argsort(1)[:, 1:], cosines.argsort(1, descending=True)[:, 1:])


def test_flat_space_has_euclidean_distances() -> None:
    """As c → 0, the ball's metric 4‖dx‖² at its center gives twice the Euclidean distance."""
    rows = rows_of(5)
    expected = 2 * torch.cdist(rows, rows)
    torch.testing.assert_close(hyperbolic_distances(rows, 1e-6)[0, 1:], expected[0, 1:], rtol=1e-4, atol=1e-6)


def test_the_loss_vanishes_where_distances_grow_by_the_same_ratio_with_each_level() -> None:
    gaps = torch.tensor([[0, 0, 1, 2], [0, 0, 1, 2], [1, 1, 0, 0], [2, 2, 0, 0]])
    distances = torch.exp(STEP * gaps.double())
    value, ratio = log_ratio_loss(distances, gaps, STEP)
    assert float(value) == pytest.approx(0, abs=1e-12)
    assert float(ratio) == pytest.approx(math.exp(1.5 * STEP))  # two triplets of each level
    assert float(log_ratio_loss(distances, gaps, 2 * STEP)[0]) == pytest.approx((1 + 4) / 2 * STEP**2)


def test_equal_images_and_a_single_cluster_have_a_finite_gradient() -> None:
    rows = rows_of(1).expand(4, -1).clone().requires_grad_()
    for gaps in (torch.zeros(4, 4, dtype=torch.int64), level_gaps(torch.tensor([[0], [0], [1], [1]]))):
        value, _ = log_ratio_loss(hyperbolic_distances(rows, 1.0), gaps, STEP)
        (gradient,) = torch.autograd.grad(value, rows)
        assert gradient.isfinite().all()


def test_without_a_learning_rate_nothing_changes() -> None:
    first, last = fit_epochs(UHML(dimension=16, epochs=2, learning_rate=0.0))
    assert torch.equal(first.state["network.weight"], last.state["network.weight"])
    assert first.losses["distance ratio"] > 1


@pytest.mark.parametrize(("fields", "images", "message"), [
    ({"clusters": 6}, 11, "UHML.clusters must be at most half the number of training images 11, got 6. Lower the"),
    ({"clusters": 6, "levels": 3}, 20, "UHML.levels must leave at least 2 .* got 3 levels of 6, 3, 1 clusters. Lower"),
    ({}, 20_001, "UHML compares all pairs of images and can train on at most 20,000 images, got 20,001. Choose")])
def test_impossible_fields_are_rejected_with_the_field_to_change(
        fields: dict[str, int], images: int, message: str) -> None:
    with pytest.raises(UserError, match=message):
        UHML.make({"dimension": 2} | fields).check(images, None)
