"""Algorithm 1 of SSDML's paper for a Mahalanobis metric M.

It alternates between M and the network.

At the start of each partition M is learned on the current features; then SGD trains the network with M fixed. Images
are embedded by M^½z without normalization, so that Euclidean distances between embeddings are the distances
(z−z')ᵀM(z−z') of the training.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from udml_core.base.arrays import Array
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Epoch, Setting, State, mean_curves
from udml_core.methods.embedder import Embedder, Head
from udml_core.methods.shared.few_labels import Partitions
from udml_core.methods.shared.training import EncoderInTraining, rows_at
from udml_core.numerics.losses.mahalanobis import Pairs, Report, ignore_progress, labeled_pairs, matrix_root, scatter
from udml_core.numerics.sampling import generator, label_pairs, weighted_edges

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


class PairMetric(Protocol):
    """A method's part of the alternation: its graph, its metric and its loss."""

    def build_graph(self, features: Tensor, labels: Tensor, random: torch.Generator) -> WeightedGraph:
        """Connect each point of a partition with others.

        Args:
            features: Unit features (p, d) float64.
            labels: Labels (p,), −1 where unlabeled.
            random: Random stream of the epoch.
        """

    def learn_metric(self, graph: WeightedGraph, random: torch.Generator, report: Report) -> LearnedMetric:
        """Learn M on a partition's features."""

    def network_loss(self, similar: Tensor, dissimilar: Tensor, edges: Tensor, weight_dissimilar: float) -> Tensor:
        """Return the loss () of a batch with M fixed.

        Args:
            similar: Squared distances (b,) of similar labeled pairs.
            dissimilar: Squared distances (b,) of dissimilar labeled pairs.
            edges: Squared distances (b,) along edges of the graph, times the edges' counts.
            weight_dissimilar: The weight γd that the metric used.
        """


def alternate(method: PairMetric, network: EncoderInTraining, partitions: Partitions, epochs: int, batch: int,
              data: TrainingData, setting: Setting, start: State | None) -> Iterator[Epoch]:
    """Train the metric and the network in turn and yield after every epoch.

    Args:
        method: Graph, metric and loss.
        network: The encoder and its SGD; without training it gives the cached features.
        partitions: Size and length of the partitions.
        epochs: Total number of epochs.
        batch: Number of pairs of each kind in a batch.
        data: Training half with few labels.
        setting: Seed, device and encoder.
        start: State of an earlier epoch to continue after.
    """
    done = int(start["epoch"]) if start is not None else 0
    learned = dict(start) if start is not None else {}
    for epoch in range(done + 1, epochs + 1):
        random = generator(setting.seed, epoch)
        metric_curves: dict[str, float] = {}
        # M is learned once a partition and not once an epoch: it is a full-batch problem on all of the partition's
        # features, and the network needs several epochs to move them noticeably.
        if partitions.begin_with(epoch):
            points = partitions.draw(data.labels, setting.seed, epoch)
            graph = method.build_graph(network.embed(points).cpu().double(), data.labels[points], random)
            metric = method.learn_metric(graph, random, ignore_progress if network.trains else setting.report)
            metric_curves = metric.curves
            learned = {"points": points, "neighbors": points[graph.neighbors], "weights": graph.weights.float(),
                    "root": matrix_root(metric.matrix).float(), "dissimilar": torch.tensor(metric.weight_dissimilar)}
        root = learned["root"].to(setting.device)
        losses = list(_train_network(method, network, learned, batch, data, setting, random)) if network.trains else []
        embedder = Embedder(network.snapshot(), Head(root, normalized=False), trained=network.trains)
        state = learned | network.state() | {"epoch": torch.tensor(epoch)}
        yield Epoch(epoch, mean_curves(losses) | metric_curves, embedder, (), state)


def _train_network(method: PairMetric, network: EncoderInTraining, learned: State, batch: int, data: TrainingData,
                   setting: Setting, random: torch.Generator) -> Iterator[dict[str, float]]:
    """Train the network for one epoch with M fixed and yield the curves of each batch."""
    root = learned["root"].to(setting.device)
    for position, (*pairs, counts) in enumerate(_batches(learned, data.labels, batch, random), 1):
        images, local = torch.unique(torch.cat(pairs), return_inverse=True)
        parts = local.to(setting.device).split([len(part) for part in pairs])
        mapped = network.features(images) @ root
        similar, dissimilar, edges = (
            (rows_at(mapped, part[:, 0]) - rows_at(mapped, part[:, 1])).square().sum(1) for part in parts)
        loss = method.network_loss(similar, dissimilar, counts.to(setting.device) * edges, float(learned["dissimilar"]))
        network.step(loss)
        yield {"loss": loss.item()}
        setting.report(min(1.0, position * batch / len(learned["points"])))


def _batches(learned: State, labels: Tensor, size: int, random: torch.Generator) -> Iterator[tuple[Tensor, ...]]:
    """Yield pairs, edges (b, 2) and the edges' counts (b,).

    Similar pairs come first, then dissimilar pairs, (b, 2) each.

    An epoch visits one edge of every point of the partition.
    """
    points, neighbors = learned["points"], learned["neighbors"]
    others, counts = weighted_edges(neighbors, learned["weights"], random)
    edges = torch.stack([points, others], dim=1)
    labeled = some_pairs(labels, MOST_PAIRS, random)
    for rows in torch.randperm(len(edges), generator=random).split(size):
        similar, dissimilar = (part[torch.randint(len(part), (size,), generator=random)] for part in labeled)
        yield similar, dissimilar, edges[rows], counts[rows]


def alternation_seconds(trains_encoder: bool, images: int, width: int, image_seconds: float) -> float:
    """Estimate the time of one epoch of `alternate`.

    Args:
        trains_encoder: Whether the network is trained.
        images: Number of images in a partition.
        width: Dimension d of the features.
        image_seconds: Time of one forward pass of one image.
    """
    network = 9 * images * image_seconds if trains_encoder else 0.0
    return 1 + 1e-9 * images**2 + 1e-9 * width**3 + network


def some_pairs(labels: Tensor, most: int, random: torch.Generator) -> Pairs:
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
        return Pairs(labeled[pairs[same]], labeled[pairs[~same]])
    return Pairs(*(part[torch.randperm(len(part), generator=random)[:most]] for part in labeled_pairs(labels)))


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
