"""Triplet and angular loss on the labeled images alone: what the unlabeled ones are worth shows beside them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from udml_core.data.training import TrainingData
from udml_core.declaration import Shown
from udml_core.losses.angular import angular_loss, triplet_loss
from udml_core.methods.base import Card, Epoch, Setting, State, mean_curves
from udml_core.methods.embedder import Embedder
from udml_core.methods.shared.few_labels import FewLabels
from udml_core.methods.shared.projection import Beginning, check_projection, first_network
from udml_core.methods.shared.training import (
    Network,
    follow_batches,
    load_module,
    load_optimizer,
    module_state,
    optimizer_state,
    rows_at,
)
from udml_core.sampling import cluster_triplets, generator


class LabeledOnly(FewLabels):
    """SGD on a linear head, and the encoder below it, over random triplets of labeled images."""


    dimension: Annotated[int, Field(ge=1, le=4096), Shown(symbol="l", step=1, high=512)] = 64
    """Width of the embedding."""

    learning_rate: Annotated[float, Field(gt=0, le=10), Shown(symbol="η", low=1e-6, high=0.1, logarithmic=True)] = 0.01
    """Step of SGD on the head, and on the encoder."""

    per_anchor: Annotated[int, Field(ge=1, le=1000), Shown(step=1, high=100)] = 20
    """Triplets of each labeled image in a pass."""

    beginning: Beginning = "pca"
    """Where the projection starts: the principal components, or a random subspace."""

    MOST_TRIPLETS: ClassVar[int] = 200_000

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        return 1.0 + (1000 * image_seconds if self.trains_encoder else 0.0)

    def check(self, images: int, width: int | None) -> None:
        check_projection(type(self).__name__, self.dimension, self.beginning, images, width)

    def initial(self, data: TrainingData, setting: Setting) -> Embedder:
        return self._head_and_encoder(data, setting).embedder(setting.encoder)

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        network = self._head_and_encoder(data, setting)
        sgd = torch.optim.SGD(network.parameters(), lr=self.learning_rate, momentum=self.momentum,
                              weight_decay=self.weight_decay)
        done = 0
        if start is not None:
            done = int(start["epoch"])
            load_module("network", network, start)
            load_optimizer(sgd, network.named_parameters(), start)
        labeled = torch.nonzero(data.labels >= 0).squeeze(1)
        classes = data.labels[labeled].unique(return_inverse=True)[1]
        for epoch in range(done + 1, self.epochs + 1):
            random = generator(setting.seed, epoch)
            triplets = labeled[cluster_triplets(classes, self.per_anchor, self.MOST_TRIPLETS, random)]
            batches = triplets[torch.randperm(len(triplets), generator=random)].split(self.batch)
            follow_batches(network, self.batch_norm == "batch")
            seen = []
            for position, batch in enumerate(batches):
                images, local = torch.unique(batch, return_inverse=True)
                given = data.features[images] if network.encoder is None else data.images(images)
                embedded = network(given.to(setting.device))
                triplet = (rows_at(embedded, part) for part in local.to(setting.device).unbind(1))
                loss = self._loss(*triplet) / len(batch)
                sgd.zero_grad(set_to_none=True)
                loss.backward()
                sgd.step()
                seen.append({"loss": loss.item()})
                setting.report((position + 1) / len(batches))
            network.eval()
            state = ({"epoch": torch.tensor(epoch)} | module_state("network", network)
                     | optimizer_state(sgd, network.named_parameters()))
            yield Epoch(epoch, mean_curves(seen), network.embedder(setting.encoder), (), state)

    def _head_and_encoder(self, data: TrainingData, setting: Setting) -> Network:
        return first_network(self, data, setting, self.dimension, self.beginning)

    @abstractmethod
    def _loss(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """The sum over a batch's triplets, of unit embeddings (t, l)."""


class Triplet(LabeledOnly):
    """Triplet loss (F. Schroff, D. Kalenichenko, J. Philbin, CVPR 2015)."""

    card: ClassVar[Card] = Card(
        name="triplet",
        title="Triplet, labels alone",
        paper="U. K. Dutta, M. Harandi, C. Chandra Sekhar: Semi-Supervised Metric Learning: A Deep Resurrection.",
        idea=("A labeled image is to be closer to one of its class than to one of another, by a margin. Unlabeled "
              "images are not looked at. What a method gains beyond this it owes to them."),
        supervision="few",
        promise="may fall",
        source="Paper, table 5: 42.6 in recall@1 on CUB, where SSDML has 44.8.")

    margin: Annotated[float, Field(ge=0, le=4), Shown(symbol="τ", step=0.05, high=2)] = 0.2
    """How much farther a negative is to be, in squared distance (the paper does not say)."""

    def _loss(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return triplet_loss(anchor, positive, negative, self.margin)


class Angular(LabeledOnly):
    """Angular loss (J. Wang et al., ICCV 2017)."""

    card: ClassVar[Card] = Card(
        name="angular",
        title="Angular, labels alone",
        paper="U. K. Dutta, M. Harandi, C. Chandra Sekhar: Semi-Supervised Metric Learning: A Deep Resurrection.",
        idea=("A labeled negative is to see anchor and positive under a small angle. Unlabeled images are not looked "
              "at. What a method gains beyond this it owes to them."),
        supervision="few",
        promise="may fall",
        source="Paper, table 5: 41.4 in recall@1 on CUB, where SSDML has 44.8.")

    alpha: Annotated[float, Field(gt=0, lt=90), Shown(symbol="α", unit="°", step=1)] = 45.0
    """Upper bound on the angle at the negative."""

    def _loss(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return angular_loss(anchor, positive, negative, self.alpha)
