"""SupCon: views of the same class agree behind a projection head.

P. Khosla, P. Teterwak, C. Wang, A. Sarna, Y. Tian, P. Isola, A. Maschinot, C. Liu, D. Krishnan, "Supervised
Contrastive Learning", NeurIPS 2020. Equation and section numbers are that paper's. It learns from images and the labels
of all training images, and is the supervised counterpart of SimCLR.

With two random views of each of N images, unit representations r = Enc(view) and unit projections z = Proj(r), the
other views A(i) of view i, and P(i) ⊂ A(i) of its class (section 3):
- L_out = Σ_i −(1/|P(i)|) Σ_{p∈P(i)} log(e^{z_i·z_p/τ} / Σ_{a∈A(i)} e^{z_i·z_a/τ}) (eq. 2), the loss of the paper.
- L_in = Σ_i −log((1/|P(i)|) Σ_{p∈P(i)} e^{z_i·z_p/τ} / Σ_{a∈A(i)} e^{z_i·z_a/τ}) (eq. 3), which is at most L_out and
  which the paper finds worse.
- Without labels, P(i) is the other view of i's image, and both are SimCLR's NT-Xent (eq. 1).
- Proj is discarded after training.

Left open, and decided here:
- The sums over the 2N views are divided by 2N, so that the learning rate does not depend on the batch. The paper also
  multiplies the loss by τ (section 4.5), which is a learning rate τ times as large.
- r is the embedding unit(unit(f)·W), the same as in every other method; the paper's r has the encoder's 2,048
  dimensions. Proj has no bias.
- An image without a label is a class of its own.
- SGD with momentum, which the paper finds best on CIFAR-10, without warm-up. Color changes are SimCLR's in place of
  AutoAugment, which was chosen with labels of ImageNet.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from torch import Tensor

from udml_core.base.declaration import Shown
from udml_core.data.augmentation import DISTORTIONS, Augmentation
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Card, Setting
from udml_core.methods.fields import Temperature
from udml_core.methods.shared.contrastive import HiddenWidth, ProjectedWidth, ProjectionHead, ProjectionKind
from udml_core.methods.shared.instance import Curves, InstanceMethod, Objective, measure_alignment
from udml_core.methods.shared.training import Network
from udml_core.numerics.losses.contrastive import Sum, supervised_contrastive


class SupCon(InstanceMethod):
    """Contrast of all views of a class with all other views of a batch."""

    card: ClassVar[Card] = Card(
        name="supcon",
        order=280,
        title="SupCon",
        paper="P. Khosla et al.: Supervised Contrastive Learning.",
        summary=("Pulls randomly changed copies of images of one class together and pushes all other classes away. "
                 "It needs the label of every training image and large batches, and helps for the classes it was "
                 "trained on."),
        idea=("All views of images of one class should be more similar to each other than to views of other classes in "
              "the batch. The views are compared behind a small projection head, which is discarded after training. "
              "The gain over SimCLR, which has the same loss without labels, is the gain from the labels."),
        supervision="all",
        promise="may fall",
        source=("Paper, table 2: 96.0 % accuracy on CIFAR-10 against 93.6 % for SimCLR, for classes seen in training. "
                "Labels of the training classes need not help classes that are not among them."))

    colored: ClassVar[Augmentation] = DISTORTIONS
    main_fields: ClassVar[tuple[str, ...]] = ("temperature", "form", "projection", "dimension", "trains", "epochs")

    temperature: Temperature = 0.1
    """Temperature of the softmax; lower values concentrate on the most similar views."""

    form: Annotated[Sum, Shown(label="Sum over positives")] = "out"
    """Average the logarithms of the positives' shares (eq. 2), or take the logarithm of their average (eq. 3)."""

    projection: ProjectionKind = "mlp"

    hidden: HiddenWidth = 2048
    """Width of the projection head's hidden layer."""

    projected: ProjectedWidth = 128

    def objective(self, network: Network, data: TrainingData, setting: Setting) -> Objective:
        return _ClassContrast(self, data.labels, setting.seed).to(setting.device)


class _ClassContrast(Objective):
    """The projection head Proj."""

    def __init__(self, method: SupCon, labels: Tensor, seed: int) -> None:
        super().__init__()
        self._method = method
        own = -1 - torch.arange(len(labels))
        self._labels = torch.where(labels < 0, own, labels)
        self.projector = ProjectionHead(method.projection, method.dimension, method.hidden, method.projected, seed)

    def loss(self, instance: Tensor, batch: Tensor, random: torch.Generator) -> tuple[Tensor, Curves]:
        method, labels = self._method, self._labels[batch].repeat(2).to(instance.device)
        value = supervised_contrastive(self.projector(instance), labels, method.temperature, method.form)
        return value, measure_alignment(instance)
