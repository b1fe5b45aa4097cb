"""NCE and NPSoftmax: every image is a class of its own, and a memory bank holds the classes.

Z. Wu, Y. Xiong, S. X. Yu, D. Lin, "Unsupervised Feature Learning via Non-Parametric Instance Discrimination", CVPR
2018. The bank starts at the embeddings of the start, where the public code has random ones: a good start is not
unlearnt. The noise is drawn once for a batch, where that code draws it for every image.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from udml_core.data.training import TrainingData
from udml_core.declaration import Shown
from udml_core.losses.instance_discrimination import contrast, log_normalizer, nce_loss, softmax_loss
from udml_core.methods.base import Card, Setting
from udml_core.methods.embedder import unit
from udml_core.methods.shared.instance import Curves, InstanceMethod, Objective
from udml_core.methods.shared.training import Network, embedded


class NCE(InstanceMethod):
    """Instance discrimination against a memory of all embeddings."""

    card: ClassVar[Card] = Card(
        name="nce",
        title="NCE",
        paper=("Z. Wu, Y. Xiong, S. X. Yu, D. Lin: Unsupervised Feature Learning via Non-Parametric Instance "
               "Discrimination."),
        idea=("Each image is a class of its own, and a random view of it is to be told among all. A memory bank holds"
              " what every image looked like when it was last seen. Noise-contrastive estimation compares with some "
              "of the memory instead of the whole."),
        supervision="none",
        promise="may fall",
        source="PSLR's paper, tables 3–5: no gain on birds, some on cars and products.")
    views: ClassVar[int] = 1

    temperature: Annotated[float, Field(gt=0, le=10), Shown(symbol="τ", low=0.02, high=1, logarithmic=True)] = 0.07
    """What similarities are divided by in the softmax."""

    softmax: Literal["nce", "full"] = "nce"
    """Estimated against noise, or over the whole memory (NPSoftmax)."""

    noise: Annotated[int, Field(ge=1, le=100_000), Shown(symbol="q", step=1, high=8192)] = 4096
    """Images of the memory that a batch is compared with, where it is estimated."""

    memory: Annotated[float, Field(ge=0, lt=1), Shown(step=0.05)] = 0.5
    """The share of its former entry that an image's new one keeps."""

    def objective(self, network: Network, data: TrainingData, setting: Setting) -> Objective:
        return _Memory(self, embedded(network, data, setting.device))


class _Memory(Objective):
    """bank (n, l): unit rows, one an image. log_z (): log Z, infinite before the first batch."""

    bank: Tensor
    log_z: Tensor

    def __init__(self, method: NCE, bank: Tensor) -> None:
        super().__init__()
        self._method = method
        self.register_buffer("bank", bank)
        self.register_buffer("log_z", torch.tensor(torch.inf, device=bank.device))

    def loss(self, instance: Tensor, batch: Tensor, random: torch.Generator) -> tuple[Tensor, Curves]:
        method, own = self._method, batch.to(instance.device)
        before = {"similarity to the memory": (instance.detach() * self.bank[own]).sum(1).mean()}
        if method.softmax == "full":
            return softmax_loss(instance, self.bank, own, method.temperature), before
        noise = torch.randint(len(self.bank), (method.noise,), generator=random).to(instance.device)
        contrasts = contrast(instance, self.bank, own, noise, method.temperature)
        if self.log_z.isinf():
            self.log_z.copy_(log_normalizer(contrasts, len(self.bank)))
        return nce_loss(contrasts, self.log_z, len(self.bank)), before

    def remember(self, instance: Tensor, batch: Tensor) -> None:
        own, kept = batch.to(instance.device), self._method.memory
        self.bank[own] = unit(kept * self.bank[own] + (1 - kept) * instance)
