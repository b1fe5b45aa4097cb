"""NCE and NPSoftmax: every image is its own class in a memory bank.

Z. Wu, Y. Xiong, S. X. Yu, D. Lin, "Unsupervised Feature Learning via Non-Parametric Instance Discrimination", CVPR
2018. Departures from the public code: the bank starts at the initial embeddings and not at random, so that a good start
is kept; the noise is drawn once for a batch and not for every image; the normalizer Z is estimated on every batch. The
public code keeps the estimate of its first batch. From scratch the embeddings change so much in the first steps that
this Z is soon many times too small, and the noise then keeps them away from their own entries of the bank. In issue 23
of CMC's public code (github.com/HobbitLong/CMC), K. He calls a single estimate problematic if the bank is not random.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from udml_core.base.declaration import Shown
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Card, Setting
from udml_core.methods.fields import Temperature
from udml_core.methods.shared.instance import Curves, InstanceMethod, Objective
from udml_core.methods.shared.memory_bank import MemoryBank
from udml_core.methods.shared.training import Network, embed_training_half
from udml_core.numerics.losses.instance_discrimination import contrast, log_normalizer, nce_loss, softmax_loss


class NCE(InstanceMethod):
    """Instance discrimination against a memory bank of all embeddings.

    With h = p/(p + q/n) and p(i) = exp(v_iᵀf/τ)/Z: −log h(i) − Σ_noise log(1 − h(j)). Z is estimated on every batch.
    """

    card: ClassVar[Card] = Card(
        name="nce",
        order=190,
        title="NCE",
        paper=("Z. Wu, Y. Xiong, S. X. Yu, D. Lin: Unsupervised Feature Learning via Non-Parametric Instance "
               "Discrimination."),
        summary=("Treats each image as a class of its own and trains the model to recognize it from a randomly "
                 "changed copy, beside a random sample of other images. It needs no labels, and helps most when the "
                 "network itself is trained."),
        idea=("Each image is its own class, and the network learns to recognize an image from a random view. A memory "
              "bank stores the last embedding of every image. Noise-contrastive estimation compares a view with a "
              "sample of the bank instead of the whole bank."),
        supervision="none",
        promise="may fall",
        source="PSLR's paper, tables 3–5: no gain on birds, some gain on cars and products.")
    views: ClassVar[int] = 1

    main_fields: ClassVar[tuple[str, ...]] = ("temperature", "noise", "dimension", "trains", "epochs", "learning_rate")

    temperature: Temperature = 0.07

    softmax: Annotated[Literal["nce", "full"], Shown(label="Softmax estimate")] = "nce"
    """Estimate the softmax by contrast with noise, or compute it over the whole bank (NPSoftmax)."""

    noise: Annotated[int, Field(ge=1, le=100_000), Shown(symbol="q", step=1, high=8192, label="Noise samples")] = 4096
    """Entries of the bank that a batch is compared with, if the softmax is estimated."""

    memory: Annotated[float, Field(ge=0, lt=1), Shown(step=0.05, label="Memory momentum")] = 0.5
    """Share of its old value that an entry of the bank keeps when it is updated."""

    normalizer_memory: Annotated[float, Field(ge=0, le=1), Shown(step=0.01, label="Normalizer momentum")] = 0.0
    """Share of its old value that log Z keeps in each batch, if the softmax is estimated. At 0, Z is estimated on each
    batch; at 1, Z stays at the estimate of the first batch, as in the public code."""

    def objective(self, network: Network, data: TrainingData, setting: Setting) -> Objective:
        return _Memory(self, embed_training_half(network, data, setting.device))


class _Memory(MemoryBank):
    """The memory bank and the normalizer.

    Attributes:
        log_z: log Z (), infinite before the first batch.
    """

    log_z: Tensor

    def __init__(self, method: NCE, bank: Tensor) -> None:
        super().__init__(bank, method.memory)
        self._method = method
        self.register_buffer("log_z", torch.tensor(torch.inf, device=bank.device))

    def loss(self, instance: Tensor, batch: Tensor, random: torch.Generator) -> tuple[Tensor, Curves]:
        method, own = self._method, batch.to(instance.device)
        curves = self.agreement(instance, batch)
        if method.softmax == "full":
            return softmax_loss(instance, self.bank, own, method.temperature), curves
        noise = torch.randint(len(self.bank), (method.noise,), generator=random).to(instance.device)
        contrasts = contrast(instance, self.bank, own, noise, method.temperature)
        estimate = log_normalizer(contrasts, len(self.bank))
        # If Z lags behind similarities that rise, Σ_noise h(j) exceeds 1 and the repulsion outweighs the attraction.
        kept = 0.0 if self.log_z.isinf() else method.normalizer_memory
        self.log_z.copy_(estimate if kept == 0 else self.log_z.lerp(estimate, 1 - kept))
        return nce_loss(contrasts, self.log_z, len(self.bank)), curves | {"log normalizer": self.log_z.clone()}
