"""SSDML: two epochs with the encoder, repeated literally with plain torch."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
from torch import Tensor

from tests.methods.golden_steps import (
    CLASSES,
    IMAGES,
    SEED,
    WIDTH,
    Network,
    angular_excess,
    assert_same_state,
    descend,
    double_precision,
    features,
    last_epoch,
    nearest_rows,
    network_of,
    random_frame,
    sgd,
    softplus,
    state_of,
    tiny_data,
    tiny_setting,
    trainable,
)
from tests.tiers import fast_first
from udml_core.data.training_data import TrainingData
from udml_core.methods import Setting
from udml_core.methods.fields import BatchNorm
from udml_core.methods.ssdml import SSDML
from udml_core.numerics.losses.angular import Scale
from udml_core.numerics.sampling import generator

DIMENSION, BATCH, ALPHA = 5, 40, 30.0
RATE, MOMENTUM, DECAY = 0.02, 0.8, 0.01
EPOCHS, STEPS, NEIGHBORS, GAMMA, PARTITION = 2, 3, 6, 0.9, 20


def few_labels() -> Tensor:
    """Return the class of the first twelve images, and −1 for all others."""
    return torch.where(torch.arange(IMAGES) < 12, torch.arange(IMAGES) % CLASSES, -1)


def partition(labels: Tensor, epoch: int) -> Tensor:
    """Return all labeled and a random sample of unlabeled images, ascending."""
    labeled, unlabeled = torch.nonzero(labels >= 0).flatten(), torch.nonzero(labels < 0).flatten()
    order = torch.randperm(len(unlabeled), generator=generator(SEED, -epoch))
    return torch.cat([labeled, unlabeled[order[:PARTITION]]]).sort().values


def affinities(neighbors: Tensor, labels: Tensor) -> Tensor:
    """Return W = (W′ + W′ᵀ)/2 with W′ = (1−γ)(I−γQ)⁻¹W0, (p, p)."""
    both = (labels[:, None] >= 0) & (labels >= 0)
    initial = torch.where(both, torch.where(labels[:, None] == labels, 1.0, -1.0), 0.0).fill_diagonal_(1)
    walk = torch.zeros_like(initial).scatter_(1, neighbors, 1 / NEIGHBORS)
    directed = (1 - GAMMA) * torch.linalg.inv(torch.eye(len(labels)) - GAMMA * walk) @ initial
    return (directed + directed.T) / 2


def triplets_of(points: Tensor, rows: Tensor, labels: Tensor) -> Tensor:
    """Pair the upper half of each image's neighbors with the lower half.

    Neighbors are sorted by affinity.
    """
    neighbors = nearest_rows(rows, NEIGHBORS)
    affinity = affinities(neighbors, labels[points])
    triplets = []
    for anchor, near in enumerate(neighbors.tolist()):
        ordered = sorted(near, key=lambda other: -affinity[anchor, other])
        half = NEIGHBORS // 2
        triplets += [[anchor, ordered[rank], ordered[rank + half]] for rank in range(half)]
    return points[torch.tensor(triplets)]


def objective(rows: Tensor, triplets: Tensor, scale: Scale, projection: Tensor) -> Tensor:
    """Return J (eq. 3) at a scale.

    J is the mean of softplus(z), its sum, or its mean after division by the mean distance.
    """
    excess = angular_excess(rows, triplets, projection, ALPHA)
    if scale == "relative":
        anchor, positive, negative = (rows[part] @ projection for part in triplets.T)
        far = negative - (anchor + positive) / 2
        excess = excess / ((anchor - positive).square().sum(1) + far.square().sum(1)).mean()
    losses = softplus(excess)
    return losses.sum() if scale == "sum" else losses.mean()


def literal_training(data: TrainingData, setting: Setting, scale: Scale, batch_norm: BatchNorm,
                     orthogonal: bool, per_partition: bool) -> tuple[dict[str, Tensor], list[float]]:
    """Return the state and the batches' losses after two epochs.

    The losses are means per triplet in each batch of the last epoch.
    """
    network = network_of(setting)
    velocity: Network = {}
    projection, step = random_frame(WIDTH, DIMENSION, SEED), 0.0
    for epoch in range(1, EPOCHS + 1):
        points = partition(data.labels, epoch)
        # The graph needs the current network with its running statistics.
        rows = features(network, data.images(points), False).detach()
        triplets = triplets_of(points, rows, data.labels)
        if per_partition:
            local = torch.searchsorted(points, triplets)
            (projection,), step = descend(
                lambda at, rows=rows, local=local: objective(rows, local, scale, at), (projection,), step, STEPS,
                orthogonal)
        order = torch.randperm(len(triplets), generator=generator(SEED, epoch))
        losses = []
        for batch in triplets[order].split(BATCH):
            trainable(network, batch_norm)
            images = sorted({*batch.flatten().tolist()})
            local = torch.tensor([[images.index(image) for image in triplet] for triplet in batch.tolist()])
            rows = features(network, data.images(torch.tensor(images)), batch_norm == "batch")
            # First conjugate gradient on L with constant features, then SGD on the network with the new L.
            fixed = rows.detach()
            if not per_partition:
                (projection,), step = descend(
                    lambda at, fixed=fixed, local=local: objective(fixed, local, scale, at), (projection,), step,
                    STEPS, orthogonal)
            sgd(network, velocity, objective(rows, local, scale, projection), RATE, MOMENTUM, DECAY)
            losses.append(objective(fixed, local, scale, projection).item() / (len(batch) if scale == "sum" else 1))
    state = {"epoch": torch.tensor(EPOCHS), "projection": projection, "triplets": triplets, "step": torch.tensor(step)}
    return state | state_of(network, velocity), losses


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize(("scale", "batch_norm", "orthogonal", "alternation", "unit_length"), fast_first([
    ("mean", "batch", True, "batch", False), ("mean", "frozen", True, "partition", True),
    ("mean", "statistics", True, "batch", False), ("relative", "batch", True, "partition", False),
    ("sum", "batch", False, "batch", True)]))
@double_precision()
def test_two_epochs_equal_the_algorithm_written_out(scale: Scale, batch_norm: BatchNorm, orthogonal: bool,
                                                    alternation: Literal["batch", "partition"], unit_length: bool,
                                                    resumed: bool) -> None:
    setting = tiny_setting()
    data = tiny_data(setting, few_labels())
    method = SSDML(trains="all", dimension=DIMENSION, batch=BATCH, alpha=ALPHA, learning_rate=RATE,
                   momentum=MOMENTUM, weight_decay=DECAY, epochs=EPOCHS, steps=STEPS, n_neighbors=NEIGHBORS,
                   gamma=GAMMA, partition=PARTITION, partition_epochs=1, scale=scale, batch_norm=batch_norm,
                   orthogonal=orthogonal, alternation=alternation, unit_length=unit_length)
    expected, losses = literal_training(data, setting, scale, batch_norm, orthogonal, alternation == "partition")
    assert len(losses) >= 2, "momentum acts from the second batch on"
    epoch = last_epoch(method, data, setting, resumed)
    assert sorted(epoch.state["triplets"].tolist()) == sorted(expected["triplets"].tolist())
    assert_same_state(epoch.state, expected)
    assert epoch.losses["loss"] == pytest.approx(sum(losses) / len(losses), rel=1e-8)
    encoder = {name.removeprefix("encoder."): value for name, value in expected.items()}
    images = data.images(torch.arange(len(data)))
    embeddings = features(encoder, images, False) @ expected["projection"]
    if unit_length:
        embeddings = embeddings / embeddings.norm(dim=1, keepdim=True)
    torch.testing.assert_close(epoch.embedder(images), embeddings)
