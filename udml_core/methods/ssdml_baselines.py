"""Four semi-supervised baselines of SSDML.

They learn a Mahalanobis metric from labeled pairs and a neighbor graph.

LRML, ISDML, APLLR and APIT, made deep as in SSDML's paper by Algorithm 1 (see `shared.pair_metric`). Their own papers
state no objective for a network, so the network minimizes LRML's objective with the metric fixed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from udml_core.base.arrays import Array
from udml_core.base.declaration import Options, Shown
from udml_core.methods.base import Card
from udml_core.methods.fields import GraphNeighbors, WalkProbability
from udml_core.methods.shared.few_labels import SSDML_PAPER, check_neighbors
from udml_core.methods.shared.pair_metric import (
    MOST_PAIRS,
    LearnedMetric,
    PairMetric,
    WeightedGraph,
    divide_by_density,
    heat_kernel,
    some_pairs,
)
from udml_core.numerics.graph import propagate_affinities
from udml_core.numerics.losses.mahalanobis import (
    Bounds,
    Report,
    close_metric,
    information_theoretic_prior,
    laplacian_metric,
    likelihood_ratio_prior,
    scatter,
)
from udml_core.numerics.neighbors import nearest

PairWeight = Annotated[float, Field(ge=0, le=1000)]
ITML_PAIRS = 500
"""Largest number of labeled pairs of each kind for ITML, which visits the pairs one by one."""


class GraphMetric(Options, ABC):
    """The graph and the loss of a metric that keeps neighbors close and separates dissimilar pairs."""

    main_fields: ClassVar[tuple[str, ...]] = ("n_neighbors", "weight_edges", "trains", "epochs", "batch",
                                              "learning_rate")

    n_neighbors: GraphNeighbors = 10
    """Neighbors of each image in the graph."""

    weight_similar: Annotated[PairWeight,
                              Shown(symbol="γs", step=0.1, high=10, label="Weight of similar pairs")] = 1.0
    """Weight of the mean squared distance of similar labeled pairs, which decreases."""

    weight_dissimilar: Annotated[PairWeight,
                                 Shown(symbol="γd", step=0.1, high=10, label="Weight of dissimilar pairs")] = 1.0
    """Weight of the mean squared distance of dissimilar labeled pairs, which increases."""

    weight_edges: Annotated[PairWeight, Shown(symbol="β", step=0.1, high=10, label="Weight of edges")] = 1.0
    """Weight of the mean squared distance along the graph's edges, which decreases."""

    def check(self, images: int, width: int | None) -> None:
        check_neighbors(type(self).__name__, self.n_neighbors, images)

    def build_graph(self, features: Tensor, labels: Tensor, random: torch.Generator) -> WeightedGraph:
        """Connect each point with its k nearest neighbors; see `PairMetric.build_graph`."""
        squared, neighbors = nearest(features.numpy(), min(self.n_neighbors, len(features) - 1))
        weights = self.edge_weights(squared.astype(np.float64), neighbors, labels.numpy())
        return WeightedGraph(features, labels, torch.from_numpy(neighbors), torch.from_numpy(weights))

    def network_loss(self, similar: Tensor, dissimilar: Tensor, edges: Tensor, weight_dissimilar: float) -> Tensor:
        """Return LRML's objective with M fixed, estimated on a batch.

        It is γs·mean δ²_S − γd·mean δ²_D + β·ΣWδ²/ΣW.

        The objectives of APLLR and APIT contain the edges alone, and a single point minimizes them. They therefore get
        the terms of the labels too; set the weights to 0 to remove these terms.
        """
        return (self.weight_similar * similar.mean() - weight_dissimilar * dissimilar.mean()
                + self.weight_edges * edges.mean())

    @abstractmethod
    def edge_weights(self, squared: Array, neighbors: Array, labels: Array) -> Array:
        """Return the weights (p, k) of the edges, at least 0.

        Args:
            squared: Squared distances (p, k) to the neighbors.
            neighbors: Neighbors (p, k), as row numbers.
            labels: Labels (p,), −1 where unlabeled.
        """


class LRML(GraphMetric, PairMetric):
    """Laplacian regularized metric learning (S. Hoi, W. Liu, S. Chang, TOMM 2010).

    min γs·tr(MS) − γd·tr(MD) + β·tr(MR) over M ⪰ 0, log|M| ≥ 0, where S, D and R are the mean outer products over
    similar pairs, dissimilar pairs and edges. The edges' weights are exp(−d²/2σ²).
    """

    card: ClassVar[Card] = Card(
        name="lrml",
        order=50,
        title="Deep-LRML",
        paper=SSDML_PAPER,
        summary=("Pulls labeled images of a class together, pushes different classes apart, and keeps neighboring "
                 "unlabeled images close. It is quick, and helps if neighbors mostly share a class."),
        idea=("Pull labeled images of one class together, push labeled images of different classes apart, and keep "
              "neighbors in a graph close. The best metric for these three goals has a closed form. If pushing apart "
              "outweighs the rest, no best metric exists, and its weight is halved until one does."),
        supervision="few",
        promise="may fall",
        source="Paper, table 1: R@1 rises over Initial on every data set, but NMI falls on CIFAR-10.")

    def edge_weights(self, squared: Array, neighbors: Array, labels: Array) -> Array:
        return heat_kernel(squared)

    def learn_metric(self, graph: WeightedGraph, random: torch.Generator, report: Report) -> LearnedMetric:
        return _laplacian(self, graph, random)


class ISDML(GraphMetric, PairMetric):
    """Intrinsic semi-supervised distance metric learning, approximated.

    S. Ying et al., "Manifold Preserving: An Intrinsic Approach for Semisupervised Distance Metric Learning", 2017.

    The exact objective was not found. SSDML's paper describes it as LRML that takes the density around each image into
    account. Here the affinities are W_ij/√(ρ_iρ_j), where ρ_i is the mean affinity of image i to its neighbors [?].
    """

    card: ClassVar[Card] = Card(
        name="isdml",
        order=70,
        title="Deep-ISDML (approximated)",
        paper=SSDML_PAPER,
        summary=("Works like LRML, but lets images in sparse regions count as much as images in crowded regions. It "
                 "is quick, and helps if some kinds of images are much rarer than others."),
        idea=("This is LRML with one change: each edge of the graph is divided by the density around its two images. "
              "Neighbors in sparse regions then count as much as neighbors in dense regions. The original objective "
              "was not available, so the method is an approximation."),
        supervision="few",
        promise="may fall",
        source="Paper, table 1: R@1 rises over Initial on every data set, but NMI falls on CIFAR-10.")

    def edge_weights(self, squared: Array, neighbors: Array, labels: Array) -> Array:
        return divide_by_density(heat_kernel(squared), neighbors)

    def learn_metric(self, graph: WeightedGraph, random: torch.Generator, report: Report) -> LearnedMetric:
        return _laplacian(self, graph, random)


class APLLR(GraphMetric, PairMetric):
    """Affinity propagation with a log-likelihood ratio prior.

    U. Dutta, C. Chandra Sekhar 2018.

    M = (M0⁻¹ + βR)⁻¹, where R comes from propagated affinities and the prior M0 is KISSME's (Σ_S⁻¹ − Σ_D⁻¹) [?].
    """

    card: ClassVar[Card] = Card(
        name="apllr",
        order=80,
        title="Deep-APLLR",
        paper=SSDML_PAPER,
        summary=("Learns distances from a few labels, passes the labels on to neighboring images, and adjusts the "
                 "distances to the result. It is mainly a baseline: with few labels its first distances are "
                 "unreliable, and the result is often poor."),
        idea=("Compare two Gaussians, of differences within classes and of differences between classes, to get a first "
              "metric. Then spread the labels along a neighbor graph and adapt the metric to the result. With few "
              "labels the first metric is nearly singular, and the embedding is poor."),
        supervision="few",
        promise="may fall",
        source="Paper, table 1: R@1 is below Initial on every data set.")

    gamma: WalkProbability = 0.99

    def edge_weights(self, squared: Array, neighbors: Array, labels: Array) -> Array:
        return _propagated(neighbors, labels, self.gamma)

    def learn_metric(self, graph: WeightedGraph, random: torch.Generator, report: Report) -> LearnedMetric:
        pairs = some_pairs(graph.labels, MOST_PAIRS, random)
        prior, rank = likelihood_ratio_prior(*(scatter(graph.features, part) for part in pairs))
        metric = close_metric(prior, graph.scatter(), self.weight_edges)
        return LearnedMetric(metric, self.weight_dissimilar, {"prior rank": float(rank)})


class APIT(GraphMetric, PairMetric):
    """Affinity propagation with an information-theoretic prior.

    U. Dutta, C. Chandra Sekhar 2018.

    M = (M0⁻¹ + βR)⁻¹, where R comes from propagated affinities and the prior M0 is ITML's metric [?].
    """

    card: ClassVar[Card] = Card(
        name="apit",
        order=90,
        title="Deep-APIT",
        paper=SSDML_PAPER,
        summary=("Changes the distances just enough to agree with a few labels, passes the labels on to neighboring "
                 "images, and repeats. It is more careful than APLLR, and helps only if the passed-on labels are "
                 "mostly right."),
        idea=("Find the metric closest to the Euclidean one that keeps similar labeled pairs below a bound and "
              "dissimilar ones above another. Then spread the labels along a neighbor graph and adapt the metric to "
              "the result. The first metric changes only where labeled pairs violate a bound, so it is less extreme "
              "than APLLR's."),
        supervision="few",
        promise="may fall",
        source="Paper, table 1: R@1 falls on Fashion-MNIST and CIFAR-10 and rises on MNIST.")

    gamma: WalkProbability = 0.99

    slack: Annotated[float, Field(gt=0, le=1000),
                     Shown(low=0.01, high=100, logarithmic=True, label="Penalty of violated bounds")] = 1.0
    """Penalty for violating the bound of a pair, γ in ITML's paper. Larger values enforce the bounds strictly."""

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        return super().expected_seconds(images, width, image_seconds) + 2e-8 * ITML_PAIRS * width**2

    def edge_weights(self, squared: Array, neighbors: Array, labels: Array) -> Array:
        return _propagated(neighbors, labels, self.gamma)

    def learn_metric(self, graph: WeightedGraph, random: torch.Generator, report: Report) -> LearnedMetric:
        pairs = some_pairs(graph.labels, ITML_PAIRS, random)
        squared = [(graph.features[part[:, 0]] - graph.features[part[:, 1]]).square().sum(1) for part in pairs]
        # ITML's authors take the 5th and the 95th percentile of the distances as bounds.
        quantiles = torch.tensor([0.05, 0.95], dtype=torch.float64)
        low, high = torch.cat(squared).quantile(quantiles).clamp_min(1e-6).tolist()
        prior = information_theoretic_prior(graph.features, pairs, Bounds(low, high), self.slack, report=report)
        return LearnedMetric(close_metric(prior, graph.scatter(), self.weight_edges), self.weight_dissimilar)


def _laplacian(method: GraphMetric, graph: WeightedGraph, random: torch.Generator) -> LearnedMetric:
    """Return LRML's closed-form metric for the graph's weights."""
    similar, dissimilar = (scatter(graph.features, part) for part in some_pairs(graph.labels, MOST_PAIRS, random))
    metric, used = laplacian_metric(similar, dissimilar, graph.scatter(), method.weight_similar,
                                    method.weight_dissimilar, method.weight_edges)
    return LearnedMetric(metric, used, {"dissimilar weight": used})


def _propagated(neighbors: Array, labels: Array, gamma: float) -> Array:
    """Return propagated affinities (p, k), at least 0.

    Negative affinities, between images of different classes, become 0.
    """
    return propagate_affinities(neighbors, labels, gamma).clip(0)
