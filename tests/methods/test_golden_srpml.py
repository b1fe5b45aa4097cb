"""sRPML: two epochs with the encoder, repeated literally with plain torch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from tests.methods.golden_steps import (
    SEED,
    WIDTH,
    Network,
    Point,
    angular_excess,
    assert_same_embedder,
    assert_same_state,
    descend,
    double_precision,
    features,
    last_epoch,
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
from udml_core.data.augmentation import Augmentation
from udml_core.data.training_data import TrainingData
from udml_core.methods import Setting
from udml_core.methods.fields import BatchNorm
from udml_core.methods.rpml import SRPML
from udml_core.numerics.graph import AuthorityShift
from udml_core.numerics.losses.angular import Weight
from udml_core.numerics.sampling import generator

DIMENSION, BATCH, ALPHA, MARGIN = 5, 16, 30.0, 0.01
RATE, MOMENTUM, DECAY, DAMPENING = 0.02, 0.8, 0.01, 0.6
CROPS = Augmentation(smallest=0.16, flip=True, gray=0.0, jitter=None)
EPOCHS, STEPS = 2, 3


def pairs(labels: list[int], random: torch.Generator) -> Iterator[list[int]]:
    """Yield batches of anchors, each followed by another image of its cluster."""
    anchors = [image for image, label in enumerate(labels) if labels.count(label) > 1]
    order = [anchors[position] for position in torch.randperm(len(anchors), generator=random).tolist()]
    half = BATCH // 2
    for start in range(0, len(order) - half + 1, half):
        batch = []
        draws = torch.rand(half, generator=random, dtype=torch.float64).tolist()
        for anchor, draw in zip(order[start:start + half], draws, strict=True):
            cluster = [image for image, label in enumerate(labels) if label == labels[anchor]]
            ahead = 1 + int(draw * (len(cluster) - 1))
            batch += [anchor, cluster[(cluster.index(anchor) + ahead) % len(cluster)]]
        yield batch


def mine(distances: Tensor, labels: list[int], random: torch.Generator) -> Tensor:
    """Return a triplet for each row.

    The positive is the row's partner. The negative is a random semi-hard negative, or else any negative.
    """
    scores = torch.rand(distances.shape, generator=random)
    triplets = []
    for anchor, label in enumerate(labels):
        positive = anchor + 1 if anchor % 2 == 0 else anchor - 1
        nearest = distances[anchor, positive]
        others = [row for row, other in enumerate(labels) if other != label]
        semi_hard = [row for row in others if nearest < distances[anchor, row] < nearest + MARGIN]
        if others:
            triplets.append([anchor, positive, max(semi_hard or others, key=lambda row: scores[anchor, row])])
    return torch.tensor(triplets)


def objective(rows: Tensor, triplets: Tensor, weight: Weight, parameter: Tensor, projection: Tensor) -> Tensor:
    """Return J = Σ softplus(w·softplus(z)).

    w is that of eq. 25 (bilinear) or eq. 10 (concatenated).
    """
    anchor, positive, negative = (rows[part] for part in triplets.T)
    middle = (anchor + positive) / 2
    if weight == "bilinear":
        similar = ((anchor @ parameter) * (positive @ parameter)).sum(1).sigmoid()
        dissimilar = 1 - ((middle @ parameter) * (negative @ parameter)).sum(1).sigmoid()
        w = (similar + dissimilar) / 2
    else:
        w = (torch.cat([middle, negative], dim=1) @ parameter).sigmoid()
    return softplus(w * softplus(angular_excess(rows, triplets, projection, ALPHA))).sum()


def literal_training(data: TrainingData, setting: Setting, labels: list[int], weight: Weight,
                     batch_norm: BatchNorm, authors: bool) -> tuple[dict[str, Tensor], list[float]]:
    """Return the state and the batches' losses after two epochs.

    The losses are means over each batch of the last epoch. The authors' code crops and flips the images, mines by
    plain distances of the features, dampens SGD, and compares embeddings without scaling them to unit length. The
    first version did none of this.
    """
    network = network_of(setting)
    velocity: Network = {}
    random = torch.Generator().manual_seed(SEED + 1)
    parameter = torch.zeros(2 * WIDTH)
    if weight == "bilinear":
        parameter = torch.randn(WIDTH, DIMENSION, generator=random) / WIDTH**0.5
    point: Point = (parameter, random_frame(WIDTH, DIMENSION, SEED))
    step = 0.0
    for epoch in range(1, EPOCHS + 1):
        random, losses = generator(SEED, epoch), []
        for batch in pairs(labels, random):
            trainable(network, batch_norm)
            images = data.images(torch.tensor(batch))
            if authors:
                images = CROPS.apply(images, torch.rand(BATCH, 23, generator=random))
            rows = features(network, images, batch_norm == "batch")
            mined = rows.detach() if authors else rows.detach() @ point[1]
            distances = (mined[:, None] - mined).square().sum(2)
            distances = distances.sqrt() if authors else distances
            triplets = mine(distances, [labels[image] for image in batch], random)
            # First conjugate gradient on the weight's parameter and L, with constant features.
            fixed = rows.detach()
            point, step = descend(lambda *at, fixed=fixed, triplets=triplets: objective(fixed, triplets, weight, *at),
                                  point, step, STEPS)
            # Then a step of SGD on the network, with the new parameter and the new L as constants.
            loss = objective(rows, triplets, weight, *point) / len(triplets)
            sgd(network, velocity, loss, RATE, MOMENTUM, DECAY, DAMPENING if authors else 0.0)
            losses.append(loss.item())
    state = {"epoch": torch.tensor(EPOCHS), "parameter": point[0], "projection": point[1], "step": torch.tensor(step),
             "labels": torch.tensor(labels)}
    return state | state_of(network, velocity), losses


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize(("weight", "batch_norm", "authors"), fast_first([
    ("bilinear", "batch", True), ("bilinear", "frozen", True), ("bilinear", "statistics", True),
    ("concatenated", "batch", True), ("bilinear", "batch", False)]))
@double_precision()
def test_two_epochs_equal_the_algorithm_written_out(
        weight: Weight, batch_norm: BatchNorm, authors: bool, resumed: bool) -> None:
    setting = tiny_setting()
    data = tiny_data(setting)
    labels = AuthorityShift(5, epsilon=0.5, gamma=100.0).fit(data.features.numpy()).labels_.tolist()
    method = SRPML(dimension=DIMENSION, batch=BATCH, alpha=ALPHA, margin=MARGIN, learning_rate=RATE, momentum=MOMENTUM,
                   weight_decay=DECAY, epochs=EPOCHS, steps=STEPS, n_neighbors=5, epsilon=0.5, weight=weight,
                   batch_norm=batch_norm, crops=authors, dampening=DAMPENING if authors else 0.0,
                   mining_space="features" if authors else "projection", unit_length=not authors)
    expected, losses = literal_training(data, setting, labels, weight, batch_norm, authors)
    assert len(losses) >= 2, "momentum acts from the second batch on"
    epoch = last_epoch(method, data, setting, resumed)
    assert_same_state(epoch.state, expected)
    assert epoch.losses["loss"] == pytest.approx(sum(losses) / len(losses), rel=1e-8)
    encoder = {name.removeprefix("encoder."): value for name, value in expected.items()}
    assert_same_embedder(epoch, data, encoder, expected["projection"], unit_length=not authors)
