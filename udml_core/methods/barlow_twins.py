"""Barlow Twins: each dimension agrees in two views, and different dimensions are not correlated.

J. Zbontar, L. Jing, I. Misra, Y. LeCun, S. Deny, "Barlow Twins: Self-Supervised Learning via Redundancy Reduction",
ICML 2021. Equation numbers are that paper's. It learns from images alone.

With two random views A and B of each of N images, representations h = f(view) and projections z = g(h):
- C_ij = Σ_b z^A_bi z^B_bj / (√Σ_b (z^A_bi)² √Σ_b (z^B_bj)²), the correlation of dimension i of the first views with
  dimension j of the second (eq. 2); each dimension of z has mean 0 over the batch.
- L = Σ_i (1 − C_ii)² + λ Σ_i Σ_{j≠i} C_ij² (eq. 1). The first sum makes the embedding invariant to the change of view,
  the second reduces the redundancy between its dimensions. There are no negatives.
- g has three linear layers; the first two are followed by batch normalization and ReLU. It is discarded after training.

Left open, and decided here:
- h is the embedding unit(unit(f)·W), the same as in every other method, so that all embeddings have the same size. The
  paper's h is the encoder's pooled output itself.
- g has 512 dimensions in place of 8,192. The linear layers have no bias, as in the authors' code.
- SGD with momentum in place of LARS, no warm-up, and the loss is divided by the dimension of z, so that the learning
  rate does not depend on it; the authors' code multiplies the loss by a constant.
- Both views follow the same distribution, without blur and solarization; the paper changes them with different
  probabilities. Without `colors`, views are crops and flips.
"""

from __future__ import annotations

import math
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from udml_core.base.declaration import Shown
from udml_core.data.augmentation import DISTORTIONS, Augmentation
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Card, Setting
from udml_core.methods.shared.contrastive import HiddenWidth, ProjectedWidth
from udml_core.methods.shared.instance import Curves, InstanceMethod, Objective, measure_alignment
from udml_core.methods.shared.training import Network
from udml_core.numerics.losses.redundancy import redundancy_reduction, standardized
from udml_core.numerics.sampling import generator


class BarlowTwins(InstanceMethod):
    """Redundancy reduction on projections of two random views."""

    card: ClassVar[Card] = Card(
        name="barlow",
        order=290,
        title="Barlow Twins",
        paper=("J. Zbontar, L. Jing, I. Misra, Y. LeCun, S. Deny: Barlow Twins: Self-Supervised Learning via "
               "Redundancy Reduction."),
        summary=("Compares two randomly changed copies of each image and adjusts the model so that both get the same "
                 "description, without any number in it repeating another. It needs no labels, and helps most when "
                 "the network itself is trained for a long time."),
        idea=("Each dimension should have the same value in two random views of an image, and different dimensions "
              "should not be correlated over a batch. The correlations are measured behind a projection head, which is "
              "discarded after training. Negatives are not needed."),
        supervision="none",
        promise="may fall",
        source=("The paper trains a ResNet-50 on ImageNet from scratch for 1,000 epochs. A head on frozen features "
                "starts at PCA and has little to gain."))

    colored: ClassVar[Augmentation] = DISTORTIONS
    main_fields: ClassVar[tuple[str, ...]] = ("redundancy", "projected", "dimension", "trains", "epochs",
                                              "learning_rate")

    redundancy: Annotated[float, Field(ge=0, le=1), Shown(symbol="λ", low=1e-4, high=0.1, logarithmic=True,
                                                          label="Weight of redundancy")] = 0.005
    """Weight of the correlations of different dimensions (eq. 1)."""

    hidden: HiddenWidth = 512
    """Width of the projection head's two hidden layers. The paper uses 8,192."""

    projected: ProjectedWidth = 512
    """Dimension of the projections that the loss compares. The paper uses 8,192."""

    def objective(self, network: Network, data: TrainingData, setting: Setting) -> Objective:
        return _Correlation(self, setting.seed).to(setting.device)


class _Correlation(Objective):
    """The projection head g."""

    def __init__(self, method: BarlowTwins, seed: int) -> None:
        super().__init__()
        self._redundancy = method.redundancy
        self.projector = _Projector(method.dimension, method.hidden, method.projected, seed)

    def loss(self, instance: Tensor, batch: Tensor, random: torch.Generator) -> tuple[Tensor, Curves]:
        first, second = map(self.projector, instance.chunk(2))
        loss = redundancy_reduction(first, second, self._redundancy) / first.shape[1]
        return loss, measure_alignment(instance)


class _Projector(nn.Module):
    """The head g: z = ReLU(N(ReLU(N(x·W1))·W2))·W3 with batch normalization N.

    Attributes:
        first: W1 (l, h).
        second: W2 (h, h).
        third: W3 (h, p).
        scales: Learned scales of both normalizations (2, h).
        shifts: Learned shifts of both normalizations (2, h).
    """

    def __init__(self, width: int, hidden: int, projected: int, seed: int) -> None:
        """Draw random weights, uniform within ±1/√(inputs); scales begin at 1 and shifts at 0.

        Args:
            width: Dimension l of the embedding.
            hidden: Width h of the two hidden layers.
            projected: Dimension p of z.
            seed: Seed of the weights.
        """
        super().__init__()
        random = generator(seed, 0)
        self.first, self.second, self.third = (
            nn.Parameter((2 * torch.rand(*shape, generator=random) - 1) / math.sqrt(shape[0]))
            for shape in ((width, hidden), (hidden, hidden), (hidden, projected)))
        self.scales = nn.Parameter(torch.ones(2, hidden))
        self.shifts = nn.Parameter(torch.zeros(2, hidden))

    def forward(self, rows: Tensor) -> Tensor:
        """Return z (m, p) of the embeddings (m, l) of one view of each image."""
        for weight, scale, shift in zip((self.first, self.second), self.scales, self.shifts, strict=True):
            rows = (standardized(rows @ weight) * scale + shift).relu()
        return rows @ self.third
