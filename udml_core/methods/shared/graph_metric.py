"""The base of the baselines that learn a metric from pairs and a graph.

The pairs are labeled; the graph joins nearest neighbors.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from udml_core.base.arrays import Array
from udml_core.base.declaration import Shown
from udml_core.data.training import TrainingData
from udml_core.methods.base import Epoch, Method, Setting, State
from udml_core.methods.fields import (
    BatchNorm,
    BatchSize,
    Epochs,
    GraphNeighbors,
    LearningRate,
    Momentum,
    Partition,
    PartitionEpochs,
    Trains,
    WeightDecay,
)
from udml_core.methods.shared.few_labels import Partitions, check_neighbors, encoder_in_training
from udml_core.methods.shared.pair_metric import LearnedMetric, WeightedGraph, alternate, alternation_seconds
from udml_core.methods.shared.training import SGDRates
from udml_core.numerics.losses.mahalanobis import Report
from udml_core.numerics.neighbors import nearest

PairWeight = Annotated[float, Field(ge=0, le=1000)]


class GraphMetric(Method):
    """A metric that keeps neighbors close and separates dissimilar pairs.

    With frozen features there is nothing to alternate with, and M is learned once. The effective rank shows no collapse
    for these methods, because M itself changes it with every partition.
    """

    rank_shows_collapse: ClassVar[bool] = False
    main_fields: ClassVar[tuple[str, ...]] = ("n_neighbors", "weight_edges", "trains", "epochs", "batch",
                                              "learning_rate")

    trains: Trains = "head"
    """Train only the metric on frozen features, or the encoder's last blocks or all layers with it."""

    epochs: Epochs = 10
    """Passes over the partition, if the encoder is trained. The paper takes at most 50 and keeps the best."""

    batch: BatchSize = 100
    """Pairs of each kind in a batch."""

    learning_rate: LearningRate = 1e-4
    """Learning rate of SGD on the encoder."""

    momentum: Momentum = 0.9
    """Momentum of SGD."""

    weight_decay: WeightDecay = 0.0
    """Weight decay of SGD; the paper prints none."""

    batch_norm: BatchNorm = "frozen"
    """Freeze batch normalization as pretrained, freeze only its statistics, or use each batch's statistics. From
    scratch, use 'batch'."""

    partition: Partition = 9000
    """Unlabeled images in a partition; 0 takes all of them."""

    partition_epochs: PartitionEpochs = 10
    """Epochs with one partition before the next is drawn."""

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

    @property
    def epochs_planned(self) -> int:
        return self.epochs if self.trains_encoder else 1

    @property
    def partitions(self) -> Partitions:
        """The partitions' size and length."""
        return Partitions(self.partition, self.partition_epochs)

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        return alternation_seconds(self.trains_encoder, self.partitions.most_images(images), width, image_seconds)

    def check(self, images: int, width: int | None) -> None:
        check_neighbors(type(self).__name__, self.n_neighbors, images)

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        self.check(*data.features.shape)
        rates = SGDRates(self.learning_rate, self.momentum, self.weight_decay)
        network = encoder_in_training(self, data, setting, rates, self.batch_norm, start)
        yield from alternate(self, network, self.partitions, self.epochs_planned, self.batch, data, setting, start)

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

    @abstractmethod
    def learn_metric(self, graph: WeightedGraph, random: torch.Generator, report: Report) -> LearnedMetric:
        """Learn M on a partition's features."""
