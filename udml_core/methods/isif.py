"""ISIF: an image's views are to be each other's nearest, and all other images far.

M. Ye, X. Zhang, P. C. Yuen, S.-F. Chang, "Unsupervised Embedding Learning via Invariant and Spreading Instance
Feature"; it is PSLR's first loss on instance features with η = 1.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from udml_core.data.training import TrainingData
from udml_core.declaration import Shown
from udml_core.losses.instance_discrimination import Form, instance_loss
from udml_core.methods.base import Card, Setting
from udml_core.methods.shared.instance import Curves, InstanceMethod, Objective, alignment
from udml_core.methods.shared.training import Network


class ISIF(InstanceMethod):
    """Softmax over a batch's instance features, without a memory."""

    card: ClassVar[Card] = Card(
        name="isif",
        title="ISIF",
        paper=("M. Ye, X. Zhang, P. C. Yuen, S.-F. Chang: Unsupervised Embedding Learning via Invariant and Spreading"
               " Instance Feature."),
        idea=("Two random views of an image are to be told as one among all images of a batch, and no other image is "
              "to be taken for it. The softmax runs over the embeddings themselves, so nothing is remembered between "
              "batches. What changes between views is forgotten, and what tells images apart is kept."),
        supervision="none",
        promise="may fall",
        source=("PSLR's paper, tables 3–5: recall@1 rises over Initial on birds, cars and products, with the encoder "
                "trained. A linear head alone, 5 epochs on the embedded Fashion-MNIST: MAP@R 55.5 against 55.9 of "
                "PCA, where it starts."))

    temperature: Annotated[float, Field(gt=0, le=10), Shown(symbol="τ", low=0.02, high=1, logarithmic=True)] = 0.1
    """What similarities are divided by in the softmax."""

    eta: Annotated[float, Field(ge=1, le=10_000), Shown(symbol="η", low=1, high=100, logarithmic=True)] = 1.0
    """How many times the other images count (PSLR eq. 3–5); ISIF itself has 1."""

    form: Form = "both"
    """The softmax over both views in both directions, or from second views to first ones alone, as PSLR prints it."""

    one_sided: bool = False
    """Whether an image learns only as the one that is compared, not as what others are compared with, as in ISIF's
    public code."""

    def objective(self, network: Network, data: TrainingData, setting: Setting) -> Objective:
        return _Spreading(self)


class _Spreading(Objective):
    def __init__(self, method: ISIF) -> None:
        super().__init__()
        self._method = method

    def loss(self, instance: Tensor, batch: Tensor, random: torch.Generator) -> tuple[Tensor, Curves]:
        method = self._method
        value = instance_loss(instance, method.temperature, method.eta, method.form, method.one_sided)
        return value, alignment(instance)
