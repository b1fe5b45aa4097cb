"""Triplet and angular loss on the labeled images alone.

These references show what unlabeled images contribute.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from udml_core.base.declaration import Shown
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Card, Epoch, Method, Setting, State
from udml_core.methods.embedder import Embedder
from udml_core.methods.fields import (
    Angle,
    BatchNorm,
    BatchSize,
    Beginning,
    Dimension,
    Epochs,
    LearningRate,
    Momentum,
    Trains,
    WeightDecay,
)
from udml_core.methods.shared.epoch_loop import NetworkLoop
from udml_core.methods.shared.few_labels import SSDML_PAPER
from udml_core.methods.shared.projection import check_projection, first_network
from udml_core.methods.shared.training import Network, rows_at, trained_parameters, whole_inputs
from udml_core.numerics.losses.angular import angular_loss, triplet_loss
from udml_core.numerics.sampling import cluster_triplets


class LabeledOnly(Method):
    """SGD with random triplets of labeled images.

    It trains a linear head, and optionally the encoder.
    """

    MOST_TRIPLETS: ClassVar[int] = 200_000

    trains: Trains = "head"
    """Train a linear head on frozen features, or the encoder's last blocks or all layers with it."""

    epochs: Epochs = 10
    """Passes over the triplets of the labeled images."""

    batch: BatchSize = 100
    """Triplets in a batch."""

    learning_rate: LearningRate = 0.01
    """Learning rate of SGD on the head and on the encoder."""

    momentum: Momentum = 0.9

    weight_decay: WeightDecay = 0.0
    """Weight decay of SGD; the paper prints none."""

    batch_norm: BatchNorm = "frozen"
    dimension: Dimension = 64

    per_anchor: Annotated[int, Field(ge=1, le=1000), Shown(step=1, high=100, label="Triplets per labeled image")] = 20
    """Triplets drawn for each labeled image in each epoch."""

    beginning: Beginning = "pca"

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        return 1.0 + (1000 * image_seconds if self.trains_encoder else 0.0)

    def check(self, images: int, width: int | None) -> None:
        check_projection(type(self).__name__, self.dimension, self.beginning, images, width)

    def initial(self, data: TrainingData, setting: Setting) -> Embedder:
        return self._network(data, setting).embedder(setting.encoder)

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        yield from _LabeledLoop(self, data, setting, start).run()

    def _network(self, data: TrainingData, setting: Setting) -> Network:
        return first_network(self, data, setting, self.dimension, self.beginning)

    @abstractmethod
    def _loss(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Return the sum of the losses of a batch's triplets of unit embeddings (t, l)."""


class _LabeledLoop(NetworkLoop[LabeledOnly]):
    """The network, SGD, and the labeled images."""

    def __init__(self, method: LabeledOnly, data: TrainingData, setting: Setting, start: State | None) -> None:
        network = method._network(data, setting)
        named = trained_parameters(network)
        sgd = torch.optim.SGD([parameter for _, parameter in named], lr=method.learning_rate, momentum=method.momentum,
                              weight_decay=method.weight_decay)
        super().__init__(method, data, setting, start, network, sgd, {"network": network}, named)
        self._labeled = torch.nonzero(data.labels >= 0).squeeze(1)
        self._classes = data.labels[self._labeled].unique(return_inverse=True)[1]

    def _batches(self, epoch: int, random: torch.Generator) -> Iterable[Tensor]:
        method = self.method
        triplets = self._labeled[cluster_triplets(self._classes, method.per_anchor, method.MOST_TRIPLETS, random)]
        return triplets[torch.randperm(len(triplets), generator=random)].split(method.batch)

    def _read(self, batch: Tensor) -> Tensor:
        return whole_inputs(self.network.part, self.data, batch.unique())

    def _step(self, batch: Tensor, inputs: Tensor, random: torch.Generator) -> dict[str, float]:
        """Take one step of SGD on triplets (t, 3)."""
        embeddings, local = self.network(inputs), batch.unique(return_inverse=True)[1]
        triplet = (rows_at(embeddings, part) for part in local.to(self.setting.device).unbind(1))
        loss = self.method._loss(*triplet) / len(batch)
        self._descend(loss)
        return {"loss": loss.item()}


class Triplet(LabeledOnly):
    """Triplet loss: Σ [δ²(a,p) − δ²(a,n) + τ]₊.

    F. Schroff, D. Kalenichenko, J. Philbin, CVPR 2015.
    """

    card: ClassVar[Card] = Card(
        name="triplet",
        order=100,
        title="Triplet, labels alone",
        paper=SSDML_PAPER,
        summary=("Compares each labeled image with one of its class and one of another class, and moves the first "
                 "nearer than the second. It uses only the labeled images, so it helps if there are enough labels."),
        idea=("Each labeled image should be closer to an image of its class than to an image of another class, by at "
              "least a margin. Unlabeled images are not used. The gain of another method over this one is the gain "
              "from the unlabeled images."),
        supervision="few",
        promise="may fall",
        source="Paper, table 5: R@1 on CUB is 42.6, against 44.8 for SSDML.")

    main_fields: ClassVar[tuple[str, ...]] = ("margin", "per_anchor", "dimension", "trains", "epochs", "learning_rate")

    margin: Annotated[float, Field(ge=0, le=4), Shown(symbol="τ", step=0.05, high=2)] = 0.2
    """Least difference between the squared distances to the negative and to the positive. The paper gives no value."""

    def _loss(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return triplet_loss(anchor, positive, negative, self.margin)


class Angular(LabeledOnly):
    """Angular loss: Σ [δ²(a,p) − 4tan²α·δ²(n,m)]₊ with m = (a+p)/2.

    J. Wang et al., ICCV 2017.
    """

    card: ClassVar[Card] = Card(
        name="angular",
        order=110,
        title="Angular, labels alone",
        paper=SSDML_PAPER,
        summary=("Looks at triangles of two labeled images of one class and one of another, and moves the third "
                 "image away until its angle is small. It uses only the labeled images, so it helps if there are "
                 "enough labels."),
        idea=("In a triangle of an anchor, a positive and a negative image, the angle at the negative should be small. "
              "Unlabeled images are not used. The gain of another method over this one is the gain from the unlabeled "
              "images."),
        supervision="few",
        promise="may fall",
        source="Paper, table 5: R@1 on CUB is 41.4, against 44.8 for SSDML.")

    main_fields: ClassVar[tuple[str, ...]] = ("alpha", "per_anchor", "dimension", "trains", "epochs", "learning_rate")

    alpha: Angle = 45.0
    """Upper bound on half the angle at the negative."""

    def _loss(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return angular_loss(anchor, positive, negative, self.alpha)
