"""The graph of nearest neighbors that four baselines learn a metric from, beside labeled pairs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from udml_core.base.arrays import Array
from udml_core.base.declaration import Options, Shown
from udml_core.methods.fields import GraphNeighbors
from udml_core.methods.shared.few_labels import check_neighbors
from udml_core.methods.shared.pair_metric import WeightedGraph
from udml_core.numerics.neighbors import nearest

PairWeight = Annotated[float, Field(ge=0, le=1000)]


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
