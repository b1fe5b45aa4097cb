"""SimCLR: two views of an image agree behind a projection head.

T. Chen, S. Kornblith, M. Norouzi, G. Hinton, "A Simple Framework for Contrastive Learning of Visual Representations",
ICML 2020. Equation numbers are that paper's. It learns from images alone.

With two random views of each of N images, representations h = f(view) and projections z = g(h):
- z = W2·ReLU(W1·h), compared by cosine similarity.
- ℓ(i, j) = −log(e^{sim(z_i, z_j)/τ} / Σ_{k≠i} e^{sim(z_i, z_k)/τ}) (eq. 1, NT-Xent). The loss is its mean over the 2N
  ordered pairs of an image's two views. There is no memory bank; the other 2(N − 1) views of the batch are negatives.
- g is discarded after training, and h is the representation.

Left open, and decided here:
- h is the embedding unit(unit(f)·W), the same as in every other method, so that all embeddings have the same size. The
  paper's h is the encoder's pooled output itself.
- g has no batch normalization and no bias, as printed; the authors' code adds batch normalization to g.
- SGD with momentum in place of LARS, which the authors need for batches of 4,096 images, and no warm-up.
- Colors change in all views, not in four of five, and views are not blurred, as in the paper's experiments on CIFAR-10.
  Without `colors`, views are crops and flips.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from udml_core.data.augmentation import DISTORTIONS, Augmentation
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Card, Setting
from udml_core.methods.fields import Temperature
from udml_core.methods.shared.contrastive import HiddenWidth, ProjectedWidth, ProjectionHead, ProjectionKind
from udml_core.methods.shared.instance import Curves, InstanceMethod, Objective, measure_alignment
from udml_core.methods.shared.training import Network
from udml_core.numerics.losses.contrastive import nt_xent


class SimCLR(InstanceMethod):
    """NT-Xent on projections of two random views."""

    card: ClassVar[Card] = Card(
        name="simclr",
        order=270,
        title="SimCLR",
        paper=("T. Chen, S. Kornblith, M. Norouzi, G. Hinton: A Simple Framework for Contrastive Learning of Visual "
               "Representations."),
        summary=("Compares two randomly changed copies of each image with all other copies in the batch, and brings "
                 "the matching two together. It needs no labels but large batches, and helps most when the network "
                 "itself is trained for a long time."),
        idea=("Two random views of an image should be more similar to each other than to any other view in the batch. "
              "The views are compared behind a small projection head, which is discarded after training. The embedding "
              "before the head can then keep what the views do not share, such as color."),
        supervision="none",
        promise="may fall",
        source=("The paper trains large encoders from scratch in batches of thousands of images. A head on frozen "
                "features starts at PCA and has little to gain."))

    colored: ClassVar[Augmentation] = DISTORTIONS
    main_fields: ClassVar[tuple[str, ...]] = ("temperature", "projection", "dimension", "trains", "epochs",
                                              "learning_rate")

    temperature: Temperature = 0.5
    """Temperature of the softmax; lower values concentrate on the most similar views. The paper uses 0.5 on CIFAR-10
    and 0.1 on ImageNet."""

    projection: ProjectionKind = "mlp"

    hidden: HiddenWidth = 2048
    """Width of the projection head's hidden layer; the paper uses the width of the encoder's features."""

    projected: ProjectedWidth = 128

    def objective(self, network: Network, data: TrainingData, setting: Setting) -> Objective:
        return _Contrast(self, setting.seed).to(setting.device)


class _Contrast(Objective):
    """The projection head g."""

    def __init__(self, method: SimCLR, seed: int) -> None:
        super().__init__()
        self._temperature = method.temperature
        self.projector = ProjectionHead(method.projection, method.dimension, method.hidden, method.projected, seed)

    def loss(self, instance: Tensor, batch: Tensor, random: torch.Generator) -> tuple[Tensor, Curves]:
        return nt_xent(self.projector(instance), self._temperature), measure_alignment(instance)
