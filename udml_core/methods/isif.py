"""ISIF: invariant and spreading instance features.

M. Ye, X. Zhang, P. C. Yuen, S.-F. Chang, "Unsupervised Embedding Learning via Invariant and Spreading Instance
Feature". It is PSLR's first loss on instance features with η = 1.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from torch import Tensor

from udml_core.base.declaration import Shown
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Card, Setting
from udml_core.methods.fields import NegativeWeight, Temperature
from udml_core.methods.shared.instance import Curves, InstanceMethod, Objective, measure_alignment
from udml_core.methods.shared.training import Network
from udml_core.numerics.losses.instance_discrimination import Form, instance_loss


class ISIF(InstanceMethod):
    """Softmax over the instance features of a batch, without a memory bank."""

    card: ClassVar[Card] = Card(
        name="isif",
        order=180,
        title="ISIF",
        paper=("M. Ye, X. Zhang, P. C. Yuen, S.-F. Chang: Unsupervised Embedding Learning via Invariant and Spreading"
               " Instance Feature."),
        summary=("Compares two randomly changed copies of each image, pulls them together and pushes all other "
                 "images of the batch away. It needs no labels, and helps most when the network itself is trained."),
        idea=("Two random views of an image should be nearest to each other among all images of a batch, and all other "
              "images should be far. The softmax compares the embeddings themselves, so no memory between batches is "
              "needed. The embedding becomes invariant to changes between views and keeps differences between images."),
        supervision="none",
        promise="may fall",
        source=("PSLR's paper, tables 3–5: R@1 rises over Initial on birds, cars and products, with the encoder "
                "trained. A linear head on frozen features starts at PCA and has little to gain; see the record "
                "'Methods without labels on Fashion-MNIST' on the page Results."))

    main_fields: ClassVar[tuple[str, ...]] = ("temperature", "eta", "dimension", "trains", "epochs", "learning_rate")

    temperature: Temperature = 0.1

    eta: NegativeWeight = 1.0
    """Weight of the other images in the softmax (PSLR eq. 3–5); ISIF itself uses 1."""

    form: Annotated[Form, Shown(label="Softmax direction")] = "both"
    """Softmax over both views in both directions, or from second to first views only, as PSLR's paper prints it."""

    one_sided: Annotated[bool, Shown(label="One-sided gradient")] = False
    """Stop the gradient of the images that a view is compared with, as in ISIF's public code."""

    def objective(self, network: Network, data: TrainingData, setting: Setting) -> Objective:
        return _InstanceSoftmax(self)


class _InstanceSoftmax(Objective):
    def __init__(self, method: ISIF) -> None:
        super().__init__()
        self._method = method

    def loss(self, instance: Tensor, batch: Tensor, random: torch.Generator) -> tuple[Tensor, Curves]:
        method = self._method
        value = instance_loss(instance, method.temperature, method.eta, method.form, method.one_sided)
        return value, measure_alignment(instance)
