"""MOM: mining by the paper's definitions, the triplets, and training of the encoder by its formulas, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor

from tests.methods.golden_instance import (
    FIELDS,
    IMAGES,
    Model,
    all_images,
    assert_same_training,
    double_precision,
    literal_epochs,
    small_images,
    unit,
)
from tests.methods.test_instance_methods import fit_epochs
from tests.tiers import fast_first
from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.methods.mom import MOM, MinedLoss, Pools, mined_loss, modes

MINING = {"n_neighbors": 6, "positives": 7, "negatives": 9, "pool": 3}
MARGIN, HARDEST, TRIPLETS = 0.4, 2, 3


@cache
def ring() -> Array:
    """Return 60 unit rows near two parallel arcs, along which the random walk goes."""
    random = np.random.default_rng(0)
    angle = np.repeat(np.linspace(0, 2, 30), 2)
    rows = np.stack([np.cos(angle), np.sin(angle), 0.25 * (np.arange(60) % 2)], axis=1)
    rows += random.normal(0, 0.02, rows.shape)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


@cache
def mined(anchors: str = "all") -> Pools:
    return MOM.make({**MINING, "anchors": anchors}).mine(ring())


def literal_similarities(rows: Array, k: int) -> tuple[Array, Array]:
    """Return the cosines and (I − 0.99·S)⁻¹ of the graph of mutual neighbors."""
    cosines = rows.astype(np.float64) @ rows.T.astype(np.float64)
    order = np.argsort(-np.where(np.eye(len(rows)) > 0, -2, cosines), axis=1)[:, :k]
    listed = np.zeros(cosines.shape, bool)
    np.put_along_axis(listed, order, True, axis=1)
    affinities = np.where(listed & listed.T, cosines.clip(0) ** 3, 0)
    degree = affinities.sum(1)
    return cosines, np.linalg.inv(np.eye(len(rows)) - 0.99 * affinities / np.sqrt(np.outer(degree, degree)))


def test_pools_are_the_differences_of_the_two_lists_of_neighbors() -> None:
    """Solve the walk of each anchor by a dense inverse and compare sets, orders and weights."""
    cosines, walk = literal_similarities(ring(), MINING["n_neighbors"])
    pools = mined()
    for anchor in range(60):
        others = [j for j in range(60) if j != anchor]
        near = sorted(others, key=lambda j: -cosines[anchor, j])
        far = sorted((j for j in others if walk[anchor, j] > 1e-9), key=lambda j: -walk[anchor, j])
        positives = [j for j in far[:7] if j not in near[:7]][:3]
        negatives = [j for j in near[:9] if j not in far[:9]][:3]
        assert [j for j in pools.positives[anchor] if j >= 0] == positives
        assert [j for j in pools.negatives[anchor] if j >= 0] == negatives
        np.testing.assert_allclose(pools.weights[anchor, : len(positives)], walk[anchor, positives], rtol=1e-3)
        assert pools.usable[anchor] == bool(positives and negatives)
    assert pools.usable.sum() > 10


def test_images_that_the_walk_does_not_reach_are_negatives_only() -> None:
    """Two far groups: the nearest image of the other group is a neighbor, but on another manifold."""
    group = np.linspace(0, 0.3, 8)
    angles = np.concatenate([group, group + 1])
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    pools = MOM(n_neighbors=3, positives=4, negatives=8).mine(rows)
    same = np.arange(16) // 8
    for image in range(16):
        assert all(same[j] == same[image] for j in pools.positives[image] if j >= 0)
        assert all(same[j] != same[image] for j in pools.negatives[image][:1] if j >= 0)
    assert (pools.negatives[:, 0] >= 0).any()


def test_modes_are_visited_more_often_than_their_neighbors() -> None:
    """Power iteration of the walk gives the same local maxima as the degrees."""
    weights = np.zeros((7, 7))
    for i, j, w in ((0, 1, 1.0), (1, 2, 3.0), (2, 3, 1.5), (3, 0, 0.5), (2, 4, 0.5), (4, 5, 4.0), (5, 0, 1.0)):
        weights[i, j] = weights[j, i] = w
    visits = np.full(6, 1 / 6)
    walk = weights[:6, :6] / weights[:6, :6].sum(1, keepdims=True)
    for _ in range(500):
        visits = (visits + visits @ walk) / 2
    expected = [bool((visits[i] > visits[weights[i, :6] > 0]).all()) for i in range(6)] + [False]
    assert modes(sparse.csr_matrix(weights)).tolist() == expected
    assert 0 < sum(expected) < 6
    assert 0 < mined("modes").usable.sum() < mined().usable.sum()


def literal_loss(a: Tensor, p: Tensor, n: Tensor, w: float, loss: MinedLoss) -> Tensor:
    zero = torch.zeros(())
    near, far = ((a - p) ** 2).sum(), ((a - n) ** 2).sum()
    if loss == "contrastive":
        return near + torch.maximum(MARGIN - far.sqrt(), zero) ** 2
    return (w if loss == "weighted" else 1) * torch.maximum(MARGIN + near - far, zero)


@pytest.mark.parametrize("loss", fast_first(["weighted", "triplet", "contrastive"]))
@double_precision()
def test_training_equals_the_literal_loop(loss: MinedLoss) -> None:
    """Draw positives and the hardest negatives, and compute the loss, triplet by triplet."""
    data, setting = small_images()
    method = MOM.make(FIELDS | {"n_neighbors": 4, "positives": 3, "negatives": 5, "hardest": HARDEST, "margin": MARGIN,
                                "loss": loss, "batch": 3 * TRIPLETS + 1, "batch_norm": "batch"})
    pools = method.mine(unit(data.features).numpy())
    anchors = torch.tensor([image for image in range(IMAGES) if pools.usable[image]])
    assert len(anchors) >= 2 * TRIPLETS
    model, images = Model.begin(method, data, setting), all_images(data)

    def pick(pool: list[int], draw: float) -> int:
        return pool[int(draw * len(pool))]

    def batches(random: torch.Generator) -> Sequence[Tensor]:
        points = model.embed(images, by_batch=False).detach()
        order = anchors[torch.randperm(len(anchors), generator=random)].tolist()
        rows = []
        for kind in ("positives", "negatives"):
            pool = {a: [j for j in getattr(pools, kind)[a].tolist() if j >= 0] for a in order}
            if kind == "negatives":
                pool = {a: sorted(js, key=lambda j: float((points[a] - points[j]).norm()))[:HARDEST]
                        for a, js in pool.items()}
            draws = torch.rand(len(order), generator=random, dtype=torch.float64).tolist()
            rows.append([pick(pool[a], draw) for a, draw in zip(order, draws, strict=True)])
        full = range(0, len(order) - TRIPLETS + 1, TRIPLETS)
        return [torch.tensor([row[i] for row in (order, *rows) for i in range(k, k + TRIPLETS)]) for k in full]

    def mean_loss(x: Tensor, batch: Tensor, random: torch.Generator) -> Tensor:
        total = torch.zeros(())
        for i in range(TRIPLETS):
            pool = pools.positives[int(batch[i])].tolist()
            weight = float(pools.weights[int(batch[i]), pool.index(int(batch[TRIPLETS + i]))])
            total = total + literal_loss(x[i], x[TRIPLETS + i], x[2 * TRIPLETS + i], weight, loss)
        return total / TRIPLETS

    literal = literal_epochs(model, images, mean_loss, views=1, by_batch=True, plan=batches)
    assert_same_training(method, data, setting, model, literal)


def test_losses_vanish_beyond_the_margin_and_have_a_finite_gradient_for_equal_images() -> None:
    a, n = torch.tensor([[1.0, 0.0]]), torch.tensor([[-1.0, 0.0]])
    for loss in ("weighted", "triplet", "contrastive"):
        assert float(mined_loss(a, a, n, torch.ones(1), MARGIN, loss)) == 0  # type: ignore[arg-type]
        leaf = a.clone().requires_grad_()
        value = mined_loss(leaf, a, a, torch.full((1,), 2.0), MARGIN, loss)  # type: ignore[arg-type]
        expected = {"weighted": 2 * MARGIN, "triplet": MARGIN, "contrastive": MARGIN**2}[loss]
        assert value.item() == pytest.approx(expected, rel=1e-4)
        value.sum().backward()
        assert leaf.grad is not None
        assert leaf.grad.isfinite().all()


def test_without_a_learning_rate_nothing_changes() -> None:
    first, last = fit_epochs(MOM(dimension=16, epochs=2, learning_rate=0.0))
    assert torch.equal(first.state["network.weight"], last.state["network.weight"])
    assert 0 < first.losses["violating"] <= 1


def test_too_few_images_or_pools_are_rejected_with_the_field_to_change() -> None:
    with pytest.raises(UserError, match="MOM needs at least 4 training images and 3 images in a batch, got 3 and 128"):
        MOM(dimension=2).check(3, None)
    angles = np.array([0, 0.1, 1, 1.1, 2, 2.1])
    with pytest.raises(UserError, match=r"got 6 images and positives=1: .* Lower the field 'positives'"):
        MOM(n_neighbors=1, positives=1).mine(np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32))
