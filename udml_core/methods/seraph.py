"""SERAPH: likely labeled pairs and certain unlabeled pairs.

It is a baseline of SSDML.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from udml_core.base.declaration import Shown
from udml_core.methods.base import Card
from udml_core.methods.fields import GraphNeighbors
from udml_core.methods.shared.few_labels import SSDML_PAPER
from udml_core.methods.shared.pair_metric import MOST_PAIRS, LearnedMetric, PairMetric, WeightedGraph, some_pairs
from udml_core.numerics.losses.mahalanobis import Report, entropy_metric, pair_entropy


class SERAPH(PairMetric):
    """Entropy regularized metric learning (G. Niu et al., Neural Computation 2014).

    max Σ_labeled log p(y_ij) + μ Σ_unlabeled Σ_y p log p − λ tr M with p(y) = 1/(1+exp(y(δ²−η))), made deep by SSDML's
    Algorithm 1. Both sums are means here, so that μ does not depend on the numbers of pairs.
    """

    card: ClassVar[Card] = Card(
        name="seraph",
        order=60,
        title="Deep-SERAPH",
        paper=SSDML_PAPER,
        summary=("Looks at a few labeled images and many unlabeled ones, and changes the distances so that each pair "
                 "is clearly similar or clearly different. It helps if the unlabeled images form clear groups, and "
                 "the result depends on the start."),
        idea=("The probability that two images are similar falls with their distance. The metric should make the "
              "labels of labeled pairs likely, and the decision about unlabeled pairs certain in either direction. "
              "Certainty alone is also reached if all images move together, so the result depends on the start."),
        supervision="few",
        promise="may fall",
        source="Paper, table 1: R@1 rises over Initial on every data set.")
    main_fields: ClassVar[tuple[str, ...]] = ("n_neighbors", "threshold", "trains", "epochs", "batch", "learning_rate")

    n_neighbors: GraphNeighbors = 10
    """Number of random images that each image is paired with; these pairs count as unlabeled."""

    threshold: Annotated[float, Field(gt=0, le=100),
                         Shown(symbol="η", step=0.05, high=4, label="Distance threshold")] = 1.0
    """Squared distance at which a pair is similar with probability ½."""

    weight_unlabeled: Annotated[float, Field(ge=0, le=100),
                                Shown(symbol="μ", step=0.1, high=10, label="Weight of unlabeled pairs")] = 1.0
    """Weight of the mean entropy of unlabeled pairs, relative to the mean log-likelihood of labeled pairs."""

    trace: Annotated[float, Field(ge=0, le=100),
                     Shown(symbol="λ", step=0.01, high=1, label="Weight of the trace")] = 0.0
    """Weight of tr M. Larger values give a metric of lower rank."""

    steps: Annotated[int, Field(ge=1, le=1000), Shown(step=1, high=200, label="Projected-gradient steps")] = 50
    """Projected-gradient steps on M in each partition."""

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        size = self.partitions.most_images(images)
        distances = width * min(size * (size + width), 2 * MOST_PAIRS * width)
        step = 1e-10 * distances + 4e-10 * width**3
        return super().expected_seconds(images, width, image_seconds) + self.steps * step

    def build_graph(self, features: Tensor, labels: Tensor, random: torch.Generator) -> WeightedGraph:
        """Pair each point with random others.

        SERAPH's unlabeled pairs are all pairs, not neighbors.
        """
        count = len(features)
        offsets = torch.randint(1, count, (count, self.n_neighbors), generator=random)
        partners = (torch.arange(count)[:, None] + offsets) % count
        return WeightedGraph(features, labels, partners, torch.ones(partners.shape, dtype=torch.float64))

    def learn_metric(self, graph: WeightedGraph, random: torch.Generator, report: Report) -> LearnedMetric:
        """Maximize the objective by projected gradient from the Euclidean metric."""
        pairs = some_pairs(graph.labels, MOST_PAIRS, random)
        rows = torch.arange(len(graph.features)).repeat_interleave(self.n_neighbors)
        unlabeled = torch.stack([rows, graph.neighbors.flatten()], dim=1)
        unlabeled = unlabeled[torch.randperm(len(unlabeled), generator=random)[:MOST_PAIRS]]
        signs = torch.cat([torch.ones(len(pairs.similar)), -torch.ones(len(pairs.dissimilar))]).double()
        start = torch.eye(graph.features.shape[1], dtype=torch.float64)
        metric = entropy_metric(start, graph.features, torch.cat(pairs), signs, unlabeled, self.threshold,
                                self.weight_unlabeled, self.trace, self.steps, report)
        return LearnedMetric(metric, curves={"metric rank": float((torch.linalg.eigvalsh(metric) > 1e-6).sum())})

    def network_loss(self, similar: Tensor, dissimilar: Tensor, edges: Tensor, weight_dissimilar: float) -> Tensor:
        """Return the negative objective on a batch with M fixed.

        `edges` are the unlabeled pairs.
        """
        signs = torch.cat([torch.ones_like(similar), -torch.ones_like(dissimilar)])
        return pair_entropy(torch.cat([similar, dissimilar]), signs, edges, self.threshold, self.weight_unlabeled)
