"""What the methods share that learn from few labels: the protocol of SSDML's Algorithm 1.

U. K. Dutta, M. Harandi, C. Chandra Sekhar, "Semi-Supervised Metric Learning: A Deep Resurrection".
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import cross_entropy

from udml_core.backbones import EncoderSpec
from udml_core.data.training import TrainingData
from udml_core.declaration import Shown
from udml_core.errors import UserError
from udml_core.methods.base import Epoch, Method, Setting, State
from udml_core.methods.shared.projection import check_batch_norm, check_trainable
from udml_core.methods.shared.training import EncoderInTraining, SGDRates
from udml_core.sampling import generator

PAPER = "U. K. Dutta, M. Harandi, C. Chandra Sekhar: Semi-Supervised Metric Learning: A Deep Resurrection."


class FewLabels(Method):
    """A metric on the features and, by SGD, the encoder below it, from few labels."""


    trains: Literal["head", "encoder"] = "head"
    """Only the metric on frozen features, or the encoder with it."""

    epochs: Annotated[int, Field(ge=1, le=1000), Shown(step=1, high=200)] = 10
    """Passes. With SSDML's partitions the paper takes at most 50, and keeps the best."""

    batch: Annotated[int, Field(ge=2, le=10_000), Shown(step=10, high=500)] = 100
    """Triplets or pairs in a batch."""

    learning_rate: Annotated[float, Field(gt=0, le=10), Shown(symbol="η", low=1e-6, high=0.1, logarithmic=True)] = 1e-4
    """Step of SGD on the encoder."""

    momentum: Annotated[float, Field(ge=0, lt=1), Shown(step=0.05)] = 0.9
    """Momentum of SGD."""

    weight_decay: Annotated[float, Field(ge=0, le=1), Shown(low=1e-6, high=0.01, logarithmic=True)] = 0.0
    """Weight decay of SGD; the paper prints none."""

    batch_norm: Literal["frozen", "batch"] = "frozen"
    """Whether batch normalization keeps its statistics or follows the batches; from scratch it must follow."""

    def check_encoder(self, encoder: EncoderSpec) -> None:
        if self.trains_encoder:
            check_trainable(encoder)
        check_batch_norm(self, self.batch_norm, encoder)

    @property
    def trains_encoder(self) -> bool:
        return self.trains == "encoder"

    @abstractmethod
    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]: ...

    def _network(self, data: TrainingData, setting: Setting, start: State | None) -> EncoderInTraining:
        if self.trains_encoder:
            check_trainable(setting.encoder.spec)
        rates = SGDRates(self.learning_rate, self.momentum, self.weight_decay)
        return EncoderInTraining(data, setting, rates if self.trains_encoder else None, self.batch_norm == "batch",
                                 start)


class Partitioned(FewLabels):
    """Methods that see, for some epochs at a time, all labeled images and a random part of the others."""

    partition: Annotated[int, Field(ge=0, le=1_000_000), Shown(symbol="Np", step=1000, high=60_000)] = 9000
    """Unlabeled images of a partition; 0 takes all of them."""

    partition_epochs: Annotated[int, Field(ge=1, le=1000), Shown(step=1, high=50)] = 10
    """Epochs with one partition, then the next is drawn."""

    def _partitioned(self, images: int) -> int:
        """How many images a partition has at most."""
        return min(images, self.partition) if self.partition else images

    def _begins(self, epoch: int) -> bool:
        """Whether a partition begins with this epoch."""
        return (epoch - 1) % self.partition_epochs == 0

    def _drawn(self, labels: Tensor, setting: Setting, epoch: int) -> Tensor:
        """The partition (p,) that begins with an epoch, as ascending positions of the training half."""
        unlabeled = torch.nonzero(labels < 0).squeeze(1)
        if not 0 < self.partition < len(unlabeled):
            return torch.arange(len(labels))
        random = generator(setting.seed, -epoch)
        chosen = unlabeled[torch.randperm(len(unlabeled), generator=random)[: self.partition]]
        return torch.cat([torch.nonzero(labels >= 0).squeeze(1), chosen]).sort().values


def pretrained(data: TrainingData, setting: Setting, epochs: int, rates: SGDRates, batch: int,
               batch_norm: bool) -> Setting:
    """The setting with its encoder trained to classify the labeled images, by a linear layer and cross-entropy on its
    unit features: how SSDML begins on CIFAR-10."""
    network = EncoderInTraining(data, setting, rates, batch_norm, None)
    labeled = torch.nonzero(data.labels >= 0).squeeze(1)
    classes, of_labeled = data.labels[labeled].unique(return_inverse=True)
    random = generator(setting.seed, 0)
    width = setting.encoder.dimension
    weight = (torch.randn(width, len(classes), generator=random) * width**-0.5).to(setting.device).requires_grad_()
    sgd = torch.optim.SGD([weight], lr=rates.learning_rate, momentum=rates.momentum)
    for _ in range(epochs):
        for rows in torch.randperm(len(labeled), generator=random).split(batch):
            scores = network.features(labeled[rows]) @ weight
            sgd.zero_grad(set_to_none=True)
            network.step(cross_entropy(scores, of_labeled[rows].to(setting.device)))
            sgd.step()
    return replace(setting, encoder=network.snapshot())


def check_neighbors(method: str, n_neighbors: int, images: int) -> None:
    """Raises:
    UserError: a graph of so many neighbors needs more images."""
    if images <= n_neighbors:
        raise UserError(f"{method} needs more training images than n_neighbors, got {images} images and "
                        f"n_neighbors={n_neighbors}. Lower the field 'n_neighbors' or add images.")
