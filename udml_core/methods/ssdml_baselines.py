"""The five semi-supervised methods that SSDML is compared with, made deep as its paper does, by Algorithm 1: once a
partition the metric M is learnt on the features as they are, then SGD trains the network with M fixed.

Their embedding is M^½z, of any length, so that images are compared by (z−z')ᵀM(z−z') as in training. Their own papers
give no objective for a network; what is minimized there is said in `PairMetric._loss` and `SERAPH._loss`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from udml_core.arrays import Array
from udml_core.data.training import TrainingData
from udml_core.declaration import Shown
from udml_core.graph import propagate_affinities
from udml_core.losses.mahalanobis import (
    Bounds,
    Pairs,
    Report,
    close_metric,
    entropy_metric,
    information_theoretic_prior,
    labeled_pairs,
    laplacian_metric,
    likelihood_ratio_prior,
    matrix_root,
    pair_entropy,
    scatter,
    untold,
)
from udml_core.methods.base import Card, Epoch, Setting, State, mean_curves
from udml_core.methods.embedder import Embedder, Head
from udml_core.methods.shared.few_labels import Partitioned, check_neighbors
from udml_core.methods.shared.training import rows_at
from udml_core.neighbors import nearest
from udml_core.sampling import generator, label_pairs, weighted_edges

Learnt = dict[str, float]
MOST_PAIRS = 20_000
"""Labeled pairs of each kind that a metric, or the network in an epoch, is learnt from; of more, a random part."""
ITML_PAIRS = 500
"""The same for ITML, which visits one pair after the other."""
LISTED = 1_000_000
"""Labeled pairs of both kinds that are listed, those of 1,400 labels; of more, the random part is drawn."""


@dataclass(frozen=True)
class _Graph:
    """A partition: unit features z (p, d) float64, labels (p,), and weighted edges to the k nearest of each point.

    neighbors (p, k) int64 rows. weights (p, k).
    """

    features: Tensor
    labels: Tensor
    neighbors: Tensor
    weights: Tensor

    def scatter(self) -> Tensor:
        """R (d, d), the weighted mean outer product of the edges' differences."""
        count, k = self.neighbors.shape
        rows = torch.arange(count).repeat_interleave(k)
        edges = torch.stack([rows, self.neighbors.flatten()], dim=1)
        return scatter(self.features, edges, self.weights.flatten())


class PairMetric(Partitioned):
    """What the five share. On frozen features there is nothing to alternate with, so M is learnt once.

    The effective rank tells no collapse here: M itself, of any length, moves it at once and again with every partition.
    On digits with the small CNN, LRML leads it from 81 to 20, and it is 61 where recall@1 is best.
    """

    rank_shows_collapse: ClassVar[bool] = False

    n_neighbors: Annotated[int, Field(ge=1, le=500), Shown(symbol="k", step=1, high=100)] = 10
    """Neighbors of each image in the graph; without one, other images that it is paired with."""

    @property
    def epochs_planned(self) -> int:
        return self.epochs if self.trains_encoder else 1

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        seen = self._partitioned(images)
        network = 9 * seen * image_seconds if self.trains_encoder else 0.0
        return 1 + 1e-9 * seen**2 + 1e-9 * width**3 + network

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        self.check(*data.features.shape)
        network = self._network(data, setting, start)
        done = int(start["epoch"]) if start is not None else 0
        kept = dict(start) if start is not None else {}
        for epoch in range(done + 1, self.epochs_planned + 1):
            random = generator(setting.seed, epoch)
            learnt: Learnt = {}
            if self._begins(epoch):
                points = self._drawn(data.labels, setting, epoch)
                graph = self._graph(network.embedded(points).cpu().double(), data.labels[points], random)
                metric, used, learnt = self._metric(graph, random, untold if network.trains else setting.report)
                kept = {"points": points, "neighbors": points[graph.neighbors], "weights": graph.weights.float(),
                        "root": matrix_root(metric).float(), "dissimilar": torch.tensor(used)}
            root = kept["root"].to(setting.device)
            seen = []
            if network.trains:
                for *batch, counts in self._batches(kept, data.labels, random):
                    images, local = torch.unique(torch.cat(batch), return_inverse=True)
                    pairs = local.to(setting.device).split([len(part) for part in batch])
                    mapped = network.features(images) @ root
                    similar, dissimilar, edges = (
                        (rows_at(mapped, one[:, 0]) - rows_at(mapped, one[:, 1])).square().sum(1) for one in pairs)
                    loss = self._loss(similar, dissimilar, counts.to(setting.device) * edges, float(kept["dissimilar"]))
                    network.step(loss)
                    seen.append({"loss": loss.item()})
                    setting.report(min(1.0, len(seen) * self.batch / len(kept["points"])))
            embedder = Embedder(network.snapshot(), Head(root, normalized=False), trained=network.trains)
            state = kept | network.state() | {"epoch": torch.tensor(epoch)}
            yield Epoch(epoch, mean_curves(seen) | learnt, embedder, (), state)

    def _batches(self, kept: State, labels: Tensor, random: torch.Generator) -> Iterator[tuple[Tensor, ...]]:
        """One edge of every point of the partition, in batches, each with as many similar and dissimilar pairs; and
        what each edge counts (b,)."""
        points, neighbors = kept["points"], kept["neighbors"]
        others, counts = weighted_edges(neighbors, kept["weights"], random)
        edges = torch.stack([points, others], dim=1)
        known = some_pairs(labels, MOST_PAIRS, random)
        for rows in torch.randperm(len(edges), generator=random).split(self.batch):
            similar, dissimilar = (one[torch.randint(len(one), (self.batch,), generator=random)] for one in known)
            yield similar, dissimilar, edges[rows], counts[rows]

    @abstractmethod
    def _graph(self, features: Tensor, labels: Tensor, random: torch.Generator) -> _Graph:
        """Pairs of points, labeled or not, with a weight each; features (p, d), labels (p,)."""

    @abstractmethod
    def _metric(self, graph: _Graph, random: torch.Generator, report: Report) -> tuple[Tensor, float, Learnt]:
        """M (d, d), the γd that was used, and what to say about it among the curves."""

    @abstractmethod
    def _loss(self, similar: Tensor, dissimilar: Tensor, edges: Tensor, weight_dissimilar: float) -> Tensor:
        """What SGD minimizes on a batch's pairs with M fixed, from their squared distances (b,) each, those of edges
        times what these count."""


class GraphMetric(PairMetric):
    """Methods that keep neighbors close."""

    weight_similar: Annotated[float, Field(ge=0, le=1000), Shown(symbol="γs", step=0.1, high=10)] = 1.0
    """Weight of the mean squared distance of similar labeled pairs."""

    weight_dissimilar: Annotated[float, Field(ge=0, le=1000), Shown(symbol="γd", step=0.1, high=10)] = 1.0
    """Weight of the mean squared distance of dissimilar labeled pairs, which is to grow."""

    weight_edges: Annotated[float, Field(ge=0, le=1000), Shown(symbol="β", step=0.1, high=10)] = 1.0
    """Weight of the mean squared distance along the graph's edges."""

    def check(self, images: int, width: int | None) -> None:
        check_neighbors(type(self).__name__, self.n_neighbors, images)

    def _graph(self, features: Tensor, labels: Tensor, random: torch.Generator) -> _Graph:
        squared, neighbors = nearest(features.numpy(), min(self.n_neighbors, len(features) - 1))
        weights = self._weights(squared.astype(np.float64), neighbors, labels.numpy())
        return _Graph(features, labels, torch.from_numpy(neighbors), torch.from_numpy(weights))

    def _loss(self, similar: Tensor, dissimilar: Tensor, edges: Tensor, weight_dissimilar: float) -> Tensor:
        """γs·mean δ²_S − γd·mean δ²_D + β·ΣWδ²/ΣW, this as the edges drawn tell it: LRML's objective with M fixed.

        APLLR's and APIT's objectives have the edges alone, whose minimum is a single point; they get the labels' terms
        too, and the fields at 0 take them away.
        """
        return (self.weight_similar * similar.mean() - weight_dissimilar * dissimilar.mean()
                + self.weight_edges * edges.mean())

    @abstractmethod
    def _weights(self, squared: Array, neighbors: Array, labels: Array) -> Array:
        """Weights (p, k), at least 0, of the edges to the nearest, from their squared distances."""


class LRML(GraphMetric):
    """Laplacian regularized metric learning (S. Hoi, W. Liu, S. Chang, TOMM 2010)."""

    card: ClassVar[Card] = Card(
        name="lrml",
        title="Deep-LRML",
        paper="U. K. Dutta, M. Harandi, C. Chandra Sekhar: Semi-Supervised Metric Learning: A Deep Resurrection.",
        idea=("Labeled images of one class are to come close and those of two to part, while neighbors stay "
              "neighbors. The best metric has a closed form, as long as parting does not outweigh the rest. Where it "
              "does there is no best one: its weight is then halved until there is."),
        supervision="few",
        promise="may fall",
        source="Paper, table 1: recall@1 rises over Initial, on CIFAR-10 NMI falls.")

    def _weights(self, squared: Array, neighbors: Array, labels: Array) -> Array:
        """exp(−d²/2σ²), σ the median distance to a neighbor; W stays that of the partition's start."""
        return heat_kernel(squared)

    def _metric(self, graph: _Graph, random: torch.Generator, report: Report) -> tuple[Tensor, float, Learnt]:
        similar, dissimilar = (scatter(graph.features, part) for part in some_pairs(graph.labels, MOST_PAIRS, random))
        metric, used = laplacian_metric(similar, dissimilar, graph.scatter(), self.weight_similar,
                                        self.weight_dissimilar, self.weight_edges)
        return metric, used, {"dissimilar weight": used}


class ISDML(LRML):
    """Information-theoretic semi-supervised metric learning (S. Ying et al. 2017), approximated.

    Its exact objective was not found. What is said of it is done: LRML whose affinities respect the density around
    each image, W_ij/√(ρ_iρ_j) with ρ_i the mean affinity to the neighbors [?].
    """

    card: ClassVar[Card] = Card(
        name="isdml",
        title="Deep-ISDML (approximated)",
        paper="U. K. Dutta, M. Harandi, C. Chandra Sekhar: Semi-Supervised Metric Learning: A Deep Resurrection.",
        idea=("LRML in which edges count by the density around their ends, so that neighbors in sparse places count "
              "as much as those in dense ones. The original objective was not to be had; this follows its "
              "description."),
        supervision="few",
        promise="may fall",
        source="Paper, table 1: recall@1 rises over Initial, on CIFAR-10 NMI falls.")

    def _weights(self, squared: Array, neighbors: Array, labels: Array) -> Array:
        affinity = heat_kernel(squared)
        density = affinity.mean(1)
        return affinity / np.sqrt(density[:, None] * density[neighbors])


class PriorMetric(GraphMetric):
    """What APLLR and APIT share (U. Dutta, C. Chandra Sekhar 2018): stay close to a prior from the labels, and be
    smooth along propagated affinities."""

    gamma: Annotated[float, Field(gt=0, lt=1), Shown(symbol="γ", step=0.01)] = 0.99
    """How far labels reach: a walk goes on with this probability at each step."""

    def _weights(self, squared: Array, neighbors: Array, labels: Array) -> Array:
        """Propagated affinities; negative ones, between images of different classes, count as none."""
        return propagate_affinities(neighbors, labels, self.gamma).clip(0)

    def _metric(self, graph: _Graph, random: torch.Generator, report: Report) -> tuple[Tensor, float, Learnt]:
        prior, learnt = self._prior(graph, random, report)
        return close_metric(prior, graph.scatter(), self.weight_edges), self.weight_dissimilar, learnt

    @abstractmethod
    def _prior(self, graph: _Graph, random: torch.Generator, report: Report) -> tuple[Tensor, Learnt]:
        """M0 (d, d), and what to say about it among the curves."""


class APLLR(PriorMetric):
    """Affinity propagation with a log-likelihood ratio prior (KISSME)."""

    card: ClassVar[Card] = Card(
        name="apllr",
        title="Deep-APLLR",
        paper="U. K. Dutta, M. Harandi, C. Chandra Sekhar: Semi-Supervised Metric Learning: A Deep Resurrection.",
        idea=("The ratio of two Gaussians, of differences within and between classes, gives a prior metric. It is "
              "then bent along affinities that spread from the labels. With few labels the prior is close to "
              "singular, and the embedding poor."),
        supervision="few",
        promise="may fall",
        source="Paper, table 1: below Initial in recall@1 on every data set.")

    def _prior(self, graph: _Graph, random: torch.Generator, report: Report) -> tuple[Tensor, Learnt]:
        pairs = some_pairs(graph.labels, MOST_PAIRS, random)
        prior, rank = likelihood_ratio_prior(*(scatter(graph.features, part) for part in pairs))
        return prior, {"prior rank": float(rank)}


class APIT(PriorMetric):
    """Affinity propagation with an information-theoretic prior (ITML)."""

    card: ClassVar[Card] = Card(
        name="apit",
        title="Deep-APIT",
        paper="U. K. Dutta, M. Harandi, C. Chandra Sekhar: Semi-Supervised Metric Learning: A Deep Resurrection.",
        idea=("The metric closest to the plain one that keeps labeled pairs within bounds is the prior. It is then "
              "bent along affinities that spread from the labels. The prior moves only where labels ask for it, so it"
              " is milder than a likelihood ratio."),
        supervision="few",
        promise="may fall",
        source="Paper, table 1: recall@1 falls on Fashion-MNIST and CIFAR-10, rises on MNIST.")

    slack: Annotated[float, Field(gt=0, le=1000), Shown(symbol="γ", low=0.01, high=100, logarithmic=True)] = 1.0
    """How dear it is to break a pair's bound (ITML)."""

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        return super().expected_seconds(images, width, image_seconds) + 2e-8 * ITML_PAIRS * width**2

    def _prior(self, graph: _Graph, random: torch.Generator, report: Report) -> tuple[Tensor, Learnt]:
        pairs = some_pairs(graph.labels, ITML_PAIRS, random)
        found = [(graph.features[part[:, 0]] - graph.features[part[:, 1]]).square().sum(1) for part in pairs]
        near, far = torch.cat(found).quantile(torch.tensor([0.05, 0.95], dtype=torch.float64)).clamp_min(1e-6).tolist()
        bounds = Bounds(near, far)
        return information_theoretic_prior(graph.features, pairs, bounds, self.slack, report=report), {}


class SERAPH(PairMetric):
    """Entropy regularized metric learning (G. Niu et al., Neural Computation 2014)."""

    card: ClassVar[Card] = Card(
        name="seraph",
        title="Deep-SERAPH",
        paper="U. K. Dutta, M. Harandi, C. Chandra Sekhar: Semi-Supervised Metric Learning: A Deep Resurrection.",
        idea=("A pair is similar with a probability that falls with its distance. Labeled pairs are to be judged "
              "rightly, and unlabeled ones are to be judged surely, whichever way. There is no graph; being sure "
              "alone also pulls everything together, so the start matters."),
        supervision="few",
        promise="may fall",
        source="Paper, table 1: recall@1 rises over Initial on every data set.")

    threshold: Annotated[float, Field(gt=0, le=100), Shown(symbol="η", step=0.05, high=4)] = 1.0
    """The squared distance at which a pair is as likely similar as not."""

    weight_unlabeled: Annotated[float, Field(ge=0, le=100), Shown(symbol="μ", step=0.1, high=10)] = 1.0
    """Weight of the mean entropy of unlabeled pairs beside the mean likelihood of labeled ones."""

    trace: Annotated[float, Field(ge=0, le=100), Shown(symbol="λ", step=0.01, high=1)] = 0.0
    """Weight of tr M, which makes the metric low in rank."""

    steps: Annotated[int, Field(ge=1, le=1000), Shown(step=1, high=200)] = 50
    """Projected-gradient steps on M, a partition."""

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        seen = self._partitioned(images)
        distances = width * min(seen * (seen + width), 2 * MOST_PAIRS * width)
        step = 1e-10 * distances + 4e-10 * width**3
        return super().expected_seconds(images, width, image_seconds) + self.steps * step

    def _graph(self, features: Tensor, labels: Tensor, random: torch.Generator) -> _Graph:
        """Each point with random others: what is unlabeled here is all pairs, not neighbors."""
        count = len(features)
        others = torch.randint(1, count, (count, self.n_neighbors), generator=random)
        paired = (torch.arange(count)[:, None] + others) % count
        return _Graph(features, labels, paired, torch.ones(paired.shape, dtype=torch.float64))

    def _metric(self, graph: _Graph, random: torch.Generator, report: Report) -> tuple[Tensor, float, Learnt]:
        pairs = some_pairs(graph.labels, MOST_PAIRS, random)
        rows = torch.arange(len(graph.features)).repeat_interleave(self.n_neighbors)
        free = torch.stack([rows, graph.neighbors.flatten()], dim=1)
        free = free[torch.randperm(len(free), generator=random)[:MOST_PAIRS]]
        kinds = torch.cat([torch.ones(len(pairs.similar)), -torch.ones(len(pairs.dissimilar))]).double()
        start = torch.eye(graph.features.shape[1], dtype=torch.float64)
        metric = entropy_metric(start, graph.features, torch.cat(pairs), kinds, free, self.threshold,
                                self.weight_unlabeled, self.trace, self.steps, report)
        return metric, 1.0, {"metric rank": float((torch.linalg.eigvalsh(metric) > 1e-6).sum())}

    def _loss(self, similar: Tensor, dissimilar: Tensor, edges: Tensor, weight_dissimilar: float) -> Tensor:
        """Eq. 1 on the batch: as many similar as dissimilar pairs, and unlabeled ones."""
        kinds = torch.cat([torch.ones_like(similar), -torch.ones_like(dissimilar)])
        return pair_entropy(torch.cat([similar, dissimilar]), kinds, edges, self.threshold, self.weight_unlabeled)


def some_pairs(labels: Tensor, most: int, random: torch.Generator) -> Pairs:
    """Labeled pairs, at most so many of each kind: a random part of all, or, where these are too many to list, as many
    as `label_pairs` draws; labels (n,), −1 where there is none."""
    known = torch.nonzero(labels >= 0).squeeze(1)
    if len(known) * (len(known) - 1) // 2 > LISTED:
        pairs, same = label_pairs(labels[known], 2 * most, random)
        return Pairs(known[pairs[same]], known[pairs[~same]])
    return Pairs(*(part[torch.randperm(len(part), generator=random)[:most]] for part in labeled_pairs(labels)))


def heat_kernel(squared: Array) -> Array:
    """exp(−d²/2σ²) (p, k) of squared distances to neighbors, σ their median distance."""
    return np.exp(-squared / max(2 * float(np.median(squared)), 1e-12))
