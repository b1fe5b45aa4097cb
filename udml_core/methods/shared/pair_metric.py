"""Algorithm 1 of SSDML's paper for a Mahalanobis metric M.

It alternates between M and the network.

At the start of each partition M is learned on the current features; then SGD trains the network with M fixed. Images
are embedded by M^½z without normalization, so that Euclidean distances between embeddings are the distances
(z−z')ᵀM(z−z') of the training.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from udml_core.base.arrays import Array
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Epoch, Method, Setting, State
from udml_core.methods.embedder import Head
from udml_core.methods.fields import (
    BatchNorm,
    BatchSize,
    Epochs,
    LearningRate,
    Momentum,
    Partition,
    PartitionEpochs,
    Trains,
    WeightDecay,
)
from udml_core.methods.shared.epoch_loop import EncoderLoop, StepCurves
from udml_core.methods.shared.few_labels import Partitions
from udml_core.methods.shared.training import rows_at
from udml_core.numerics.losses.mahalanobis import (
    LabeledPairs,
    Report,
    ignore_progress,
    labeled_pairs,
    matrix_root,
    scatter,
)
from udml_core.numerics.sampling import label_pairs, weighted_edges

MOST_PAIRS = 20_000
"""Largest number of labeled pairs of each kind that a metric is learned from, or that an epoch draws from."""
LISTED = 1_000_000
"""Largest number of labeled pairs that are enumerated (about 1,400 labels); more are sampled instead."""


@dataclass(frozen=True)
class WeightedGraph:
    """The graph of a partition.

    Attributes:
        features: Unit features z (p, d) float64.
        labels: Labels (p,), −1 where unlabeled.
        neighbors: Neighbors (p, k) int64, as rows of `features`.
        weights: Weights (p, k) of the edges, at least 0.
    """

    features: Tensor
    labels: Tensor
    neighbors: Tensor
    weights: Tensor

    def scatter(self) -> Tensor:
        """Return R (d, d), the weighted mean outer product along the edges.

        The outer products are of the differences between the ends.
        """
        count, k = self.neighbors.shape
        rows = torch.arange(count).repeat_interleave(k)
        edges = torch.stack([rows, self.neighbors.flatten()], dim=1)
        return scatter(self.features, edges, self.weights.flatten())


@dataclass(frozen=True)
class LearnedMetric:
    """The result of a metric step.

    Attributes:
        matrix: M (d, d), positive semidefinite.
        weight_dissimilar: The weight γd of the dissimilar pairs that was used.
        curves: Values for the method's curves.
    """

    matrix: Tensor
    weight_dissimilar: float = 1.0
    curves: dict[str, float] = field(default_factory=dict)


class PairMetric(Method):
    """Training of a Mahalanobis metric and the network in turn.

    With frozen features there is nothing to alternate with, and M is learned once. The effective rank shows no collapse
    for these methods, because M itself changes it with every partition.
    """

    rank_shows_collapse: ClassVar[bool] = False

    trains: Trains = "head"
    """Train only the metric on frozen features, or the encoder's last blocks or all layers with it."""

    epochs: Epochs = 10
    """Passes over the partition, if the encoder is trained. SSDML's paper takes at most 50 and keeps the best."""

    batch: BatchSize = 100
    """Pairs of each kind in a batch."""

    learning_rate: LearningRate = 1e-4
    momentum: Momentum = 0.9

    weight_decay: WeightDecay = 0.0
    """Weight decay of SGD; the paper prints none."""

    batch_norm: BatchNorm = "frozen"
    partition: Partition = 9000
    partition_epochs: PartitionEpochs = 10

    @property
    def epochs_planned(self) -> int:
        return self.epochs if self.trains_encoder else 1

    @property
    def partitions(self) -> Partitions:
        """The partitions' size and length."""
        return Partitions(self.partition, self.partition_epochs)

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        size = self.partitions.most_images(images)
        network = 9 * size * image_seconds if self.trains_encoder else 0.0
        return 1 + 1e-9 * size**2 + 1e-9 * width**3 + network

    @abstractmethod
    def build_graph(self, features: Tensor, labels: Tensor, random: torch.Generator) -> WeightedGraph:
        """Connect each point of a partition with others.

        Args:
            features: Unit features (p, d) float64.
            labels: Labels (p,), −1 where unlabeled.
            random: Random stream of the epoch.
        """

    @abstractmethod
    def learn_metric(self, graph: WeightedGraph, random: torch.Generator, report: Report) -> LearnedMetric:
        """Learn M on a partition's features."""

    @abstractmethod
    def network_loss(self, similar: Tensor, dissimilar: Tensor, edges: Tensor, weight_dissimilar: float) -> Tensor:
        """Return the loss () of a batch with M fixed.

        Args:
            similar: Squared distances (b,) of similar labeled pairs.
            dissimilar: Squared distances (b,) of dissimilar labeled pairs.
            edges: Squared distances (b,) along edges of the graph, times the edges' counts.
            weight_dissimilar: The weight γd that the metric used.
        """

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        self.check(*data.features.shape)
        yield from _MetricLoop(self, data, setting, start).run()


class _MetricLoop(EncoderLoop[PairMetric]):
    """The partition's graph and metric, and the network."""

    def __init__(self, method: PairMetric, data: TrainingData, setting: Setting, start: State | None) -> None:
        super().__init__(method, data, setting, start)
        self.setting = setting  # steps are not observed: without the first metric there is no embedder
        self._learned = dict(start or {})

    def _train(self, epoch: int, random: torch.Generator) -> dict[str, float]:
        # M is learned once a partition and not once an epoch: it is a full-batch problem on all of the partition's
        # features, and the network needs several epochs to move them noticeably.
        curves = self._begin_partition(epoch, random) if self.method.partitions.begin_with(epoch) else {}
        return super()._train(epoch, random) | curves

    def _begin_partition(self, epoch: int, random: torch.Generator) -> dict[str, float]:
        """Draw the partition, learn M on its current features and return M's curves."""
        method, labels, network = self.method, self.data.labels, self.network
        points = method.partitions.draw(labels, self.setting.seed, epoch)
        graph = method.build_graph(network.embed(points).cpu().double(), labels[points], random)
        metric = method.learn_metric(graph, random, ignore_progress if network.trains else self.setting.report)
        self._learned = {"points": points, "neighbors": points[graph.neighbors], "weights": graph.weights.float(),
                         "root": matrix_root(metric.matrix).float(),
                         "dissimilar": torch.tensor(metric.weight_dissimilar)}
        return metric.curves

    def _head(self) -> Head:
        return Head(self._learned["root"].to(self.setting.device), normalized=False)

    def _state(self) -> dict[str, Tensor]:
        return self._learned | super()._state()

    def _steps(self, epoch: int, random: torch.Generator) -> Iterator[StepCurves]:
        """Train the network for one epoch with M fixed, if it is trained."""
        if not self.network.trains:
            return
        method, learned, device = self.method, self._learned, self.setting.device
        root = learned["root"].to(device)
        for position, (*pairs, counts) in enumerate(self._batches(random), 1):
            images, local = torch.unique(torch.cat(pairs), return_inverse=True)
            parts = local.to(device).split([len(part) for part in pairs])
            mapped = self.network.features(images) @ root
            similar, dissimilar, edges = (
                (rows_at(mapped, part[:, 0]) - rows_at(mapped, part[:, 1])).square().sum(1) for part in parts)
            loss = method.network_loss(similar, dissimilar, counts.to(device) * edges, float(learned["dissimilar"]))
            self.network.step(loss)
            yield {"loss": loss.detach()}
            self.setting.report(min(1.0, position * method.batch / len(learned["points"])))

    def _batches(self, random: torch.Generator) -> Iterator[tuple[Tensor, ...]]:
        """Yield pairs, edges (b, 2) and the edges' counts (b,).

        Similar pairs come first, then dissimilar pairs, (b, 2) each.

        An epoch visits one edge of every point of the partition.
        """
        size, points = self.method.batch, self._learned["points"]
        others, counts = weighted_edges(self._learned["neighbors"], self._learned["weights"], random)
        edges = torch.stack([points, others], dim=1)
        labeled = some_pairs(self.data.labels, MOST_PAIRS, random)
        for rows in torch.randperm(len(edges), generator=random).split(size):
            similar, dissimilar = (part[torch.randint(len(part), (size,), generator=random)] for part in labeled)
            yield similar, dissimilar, edges[rows], counts[rows]


def some_pairs(labels: Tensor, most: int, random: torch.Generator) -> LabeledPairs:
    """Return labeled pairs, at most `most` of each kind.

    All pairs are enumerated and thinned at random; if the labels have too many pairs, pairs are sampled instead.

    Args:
        labels: Labels (n,), −1 where unlabeled.
        most: Largest number of similar pairs and of dissimilar pairs.
        random: Random stream.
    """
    labeled = torch.nonzero(labels >= 0).squeeze(1)
    if len(labeled) * (len(labeled) - 1) // 2 > LISTED:
        pairs, same = label_pairs(labels[labeled], 2 * most, random)
        return LabeledPairs(labeled[pairs[same]], labeled[pairs[~same]])
    return LabeledPairs(*(part[torch.randperm(len(part), generator=random)[:most]] for part in labeled_pairs(labels)))


def heat_kernel(squared: Array) -> Array:
    """Return the affinities exp(−d²/2σ²) (p, k) of squared distances.

    σ is the median distance.
    """
    return np.exp(-squared / max(2 * float(np.median(squared)), 1e-12))


def divide_by_density(affinities: Array, neighbors: Array) -> Array:
    """Return W_ij/√(ρ_iρ_j) with the densities ρ.

    ρ_i is the mean affinity of point i to its neighbors.

    Args:
        affinities: Affinities W (p, k) of the edges.
        neighbors: Neighbors (p, k), as row numbers.
    """
    density = affinities.mean(1)
    return affinities / np.sqrt(density[:, None] * density[neighbors])
