"""The training protocol for few labels: partitions and pretraining.

U. K. Dutta, M. Harandi, C. Chandra Sekhar, "Semi-Supervised Metric Learning: A Deep Resurrection", Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from udml_core.base.errors import UserError
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Setting
from udml_core.methods.fields import BatchNorm, Part
from udml_core.methods.shared.distributed import average_gradients
from udml_core.methods.shared.training import EncoderInTraining, SGDRates
from udml_core.numerics.sampling import generator

SSDML_PAPER = "U. K. Dutta, M. Harandi, C. Chandra Sekhar: Semi-Supervised Metric Learning: A Deep Resurrection."


@dataclass(frozen=True)
class Partitions:
    """The parts of the training half that a method sees for some epochs each.

    A partition holds all labeled images and a random sample of the unlabeled ones. The paper introduces partitions
    because propagating the labels through the graph takes memory and time that grow faster than the number of images.

    Attributes:
        size: Number of unlabeled images in a partition; 0 for all of them.
        epochs: Number of epochs with one partition before the next is drawn.
    """

    size: int
    epochs: int

    def most_images(self, images: int) -> int:
        """Return the approximate number of images in a partition.

        `images` is the number of training images.
        """
        return min(images, self.size) if self.size else images

    def begin_with(self, epoch: int) -> bool:
        """Return whether a new partition begins with this epoch, counted from 1."""
        return (epoch - 1) % self.epochs == 0

    def draw(self, labels: Tensor, seed: int, epoch: int) -> Tensor:
        """Draw the partition that begins with an epoch.

        Args:
            labels: Labels (n,), −1 where unlabeled.
            seed: Seed of the run.
            epoch: Number of the epoch, from 1.

        Returns:
            Ascending positions (p,) in the training half.
        """
        unlabeled = torch.nonzero(labels < 0).squeeze(1)
        if not 0 < self.size < len(unlabeled):
            return torch.arange(len(labels))
        # The negative epoch number gives a random stream that no epoch's batches use.
        random = generator(seed, -epoch)
        sample = unlabeled[torch.randperm(len(unlabeled), generator=random)[: self.size]]
        return torch.cat([torch.nonzero(labels >= 0).squeeze(1), sample]).sort().values


def pretrain_encoder(data: TrainingData, setting: Setting, epochs: int, rates: SGDRates, batch: int,
                     batch_norm: BatchNorm, part: Part = "all") -> Setting:
    """Train the encoder to classify the labeled images.

    SSDML does so before its first epoch on CIFAR-10.

    A linear layer without bias on the unit features is trained with cross-entropy and then discarded.

    Args:
        data: Training half with few labels.
        setting: Seed, device and encoder; its encoder is not changed.
        epochs: Passes over the labeled images.
        rates: Rates of SGD; the weight decay applies to the encoder only.
        batch: Images in a batch.
        batch_norm: What batch normalization keeps and what it trains.
        part: The trained part of the encoder, `last` or `all`.

    Returns:
        The setting with the trained encoder.
    """
    network = EncoderInTraining(data, setting, rates, batch_norm, None, part)
    labeled = torch.nonzero(data.labels >= 0).squeeze(1)
    classes, targets = data.labels[labeled].unique(return_inverse=True)
    random = generator(setting.seed, 0)
    width = setting.encoder.dimension
    weight = (torch.randn(width, len(classes), generator=random) * width**-0.5).to(setting.device).requires_grad_()
    sgd = torch.optim.SGD([weight], lr=rates.learning_rate, momentum=rates.momentum)
    for _ in range(epochs):
        for rows in torch.randperm(len(labeled), generator=random).split(batch):
            scores = network.features(labeled[rows]) @ weight
            sgd.zero_grad(set_to_none=True)
            network.step(cross_entropy(scores, targets[rows].to(setting.device)))
            average_gradients([weight])
            sgd.step()
    return replace(setting, encoder=network.snapshot())


def check_neighbors(method: str, n_neighbors: int, images: int) -> None:
    """Reject a graph with as many neighbors as there are images, or more.

    Raises:
        UserError: The message names the field and both numbers.
    """
    if images <= n_neighbors:
        raise UserError(f"{method} needs more training images than n_neighbors, got {images} images and "
                        f"n_neighbors={n_neighbors}. Lower the field 'n_neighbors' or add images.")
