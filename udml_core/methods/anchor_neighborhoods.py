"""AND: anchor neighborhoods, discovered from the most certain to the least certain image.

J. Huang, Q. Dong, S. Gong, X. Zhu, "Unsupervised Deep Learning by Neighbourhood Discovery", ICML 2019. It learns from
images alone: an image and its nearest neighbors in a memory bank are one class. The formulas are numbered here and not
as in the paper:

(1) N(i) = {i} ∪ {the k images with the largest v_iᵀv_j}              anchor neighborhood, v the memory bank
(2) p_ij = exp(v_jᵀx_i/τ) / Σ_n exp(v_nᵀx_i/τ)                        softmax over the bank, x_i the embedding of a view
(3) H(i) = −Σ_j p_ij log p_ij with v_i in place of x_i                 entropy: low where an image has a clear place
(4) in round r of R, counted from 0, the n·r/(R − 1) images of the lowest entropy are anchors
(5) L = −(1/m) [Σ_{i no anchor} log p_ii + Σ_{i anchor} log Σ_{j∈N(i)} p_ij]
(6) v_i ← unit(μ v_i + (1 − μ) x_i) after each step

What the paper leaves open, or what differs from the authors' public code (github.com/Raymond-sci/AND):

- A round has the same share of `epochs` as every other; the paper trains each of its five rounds for 200 epochs. Fewer
  epochs than rounds are as many rounds, so that in the last epoch all images are anchors.
- The bank starts at the initial embeddings and not at random, so that a good start is kept, as in `nce`.
- With `schedule` = "steps" the learning rate starts again in each round and falls after 40, 60 and 80 % of it, as in
  the public code (epochs 80, 120 and 160 of 200). SGD has no Nesterov momentum.
- Neighborhoods and anchors are computed at the start of a round and kept until the next one, as in the public code.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from udml_core.base.declaration import Shown
from udml_core.base.errors import UserError
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Card, Setting
from udml_core.methods.fields import Temperature
from udml_core.methods.shared.distributed import agree
from udml_core.methods.shared.instance import Curves, InstanceMethod, Objective
from udml_core.methods.shared.memory_bank import MemoryBank
from udml_core.methods.shared.training import Network, embed_training_half
from udml_core.numerics.neighbors import nearest

DROPS = (4, 6, 8)
"""Tenths of a round after which the schedule divides the learning rate by 10."""
ROWS = 1024
"""Number of rows of the bank whose similarities to all rows are in memory at a time."""


class AND(InstanceMethod):
    """Instance discrimination that becomes neighborhood discrimination, image by image."""

    card: ClassVar[Card] = Card(
        name="and",
        order=230,
        title="AND",
        paper="J. Huang, Q. Dong, S. Gong, X. Zhu: Unsupervised Deep Learning by Neighbourhood Discovery.",
        summary=("Pairs each image with its most similar image, the surest pairs first, and trains the model to keep "
                 "each pair together and apart from all other images. It needs many images but no labels, and helps "
                 "most when the network itself is trained."),
        idea=("At first, each image is its own class in a memory bank. In later rounds, an image and its nearest "
              "neighbor become one class: first for the images whose neighborhood is most certain, at the end for all "
              "images. A wrong neighbor does less harm this way, because the embedding improves before uncertain "
              "neighborhoods are used."),
        supervision="none",
        promise="may fall",
        source=("PSLR's paper, tables 1 and 6: above NCE on CIFAR-10 and products, with the encoder trained. A linear "
                "head on frozen features starts at PCA and has little to gain."))
    views: ClassVar[int] = 1

    main_fields: ClassVar[tuple[str, ...]] = ("neighbors", "rounds", "temperature", "trains", "epochs",
                                              "learning_rate")

    neighbors: Annotated[int, Field(ge=1, le=100), Shown(symbol="k", step=1, high=10, label="Neighbors of an anchor")
                         ] = 1
    """Nearest images in the memory bank that form a neighborhood with their anchor."""

    rounds: Annotated[int, Field(ge=1, le=100), Shown(symbol="R", step=1, high=10, label="Rounds")] = 5
    """Rounds of the curriculum. The first round has no neighborhoods; then the share of images with a neighborhood
    rises by equal steps to all images. With one round, the method is NPSoftmax."""

    temperature: Temperature = 0.1

    memory: Annotated[float, Field(ge=0, lt=1), Shown(symbol="μ", step=0.05, label="Memory momentum")] = 0.5
    """Share of its old value that an entry of the bank keeps when it is updated."""

    def check(self, images: int, width: int | None) -> None:
        super().check(images, width)
        if self.neighbors >= images:
            raise UserError(f"{type(self).__name__}.neighbors must be below the number of training images {images}, "
                            f"got {self.neighbors}. Lower the field 'neighbors'.")

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        # Each view is compared with the whole bank.
        return super().expected_seconds(images, width, image_seconds) + 3e-10 * images**2 * self.dimension

    @property
    def rounds_trained(self) -> int:
        """The number of rounds, each of at least one epoch."""
        return min(self.rounds, self.epochs)

    def round_of(self, epoch: int) -> int:
        """Return the round of an epoch; epochs count from 1, rounds from 0."""
        return (epoch - 1) * self.rounds_trained // self.epochs

    def anchors(self, epoch: int, images: int) -> int:
        """Return the number of anchors in an epoch (4)."""
        return images * self.round_of(epoch) // max(1, self.rounds_trained - 1)

    def rate(self, epoch: int) -> float:
        if self.schedule != "steps":
            return super().rate(epoch)
        # The share of the round that has passed, times `epochs`; in whole numbers, rounding cannot miss a drop.
        passed = (epoch - 1) * self.rounds_trained % self.epochs
        return self.learning_rate * 0.1 ** sum(10 * passed >= tenths * self.epochs for tenths in DROPS)

    def objective(self, network: Network, data: TrainingData, setting: Setting) -> Objective:
        return _Neighborhoods(self, embed_training_half(network, data, setting.device))


class _Neighborhoods(MemoryBank):
    """The memory bank and the neighborhoods of the current round.

    Attributes:
        epoch: Number of the current epoch ().
        neighbors: The k nearest images of each image (n, k).
        anchored: Whether each image is an anchor (n,).
    """

    epoch: Tensor
    neighbors: Tensor
    anchored: Tensor

    def __init__(self, method: AND, bank: Tensor) -> None:
        super().__init__(bank, method.memory)
        self._method = method
        count, device = len(bank), bank.device
        self.register_buffer("epoch", torch.tensor(0, device=device))
        self.register_buffer("neighbors", torch.zeros(count, method.neighbors, dtype=torch.int64, device=device))
        self.register_buffer("anchored", torch.zeros(count, dtype=torch.bool, device=device))

    def begin(self, network: Network, data: TrainingData) -> None:
        self.epoch += 1
        epoch = int(self.epoch)
        if self._method.round_of(epoch) > self._method.round_of(epoch - 1):  # before the first epoch, it is −1
            self._discover(self._method.anchors(epoch, len(self.bank)))

    def loss(self, instance: Tensor, batch: Tensor, random: torch.Generator) -> tuple[Tensor, Curves]:
        own = batch.to(instance.device)
        value = discovery_loss(instance, self.bank, own, self.neighbors[own], self.anchored[own],
                               self._method.temperature)
        return value, self.agreement(instance, batch) | {"anchors": self.anchored.float().mean()}

    def _discover(self, anchors: int) -> None:
        """Compute the neighborhoods (1) and choose the anchors of lowest entropy (3, 4)."""
        indices = nearest(self.bank.cpu().numpy(), self._method.neighbors)[1]
        self.neighbors.copy_(torch.from_numpy(indices))
        order = entropies(self.bank, self._method.temperature).argsort(stable=True)
        self.anchored.zero_()
        self.anchored[order[:anchors]] = True
        # Rounding differs between devices, and a process must not train on other neighborhoods than the rest.
        agree([self.neighbors, self.anchored])


def entropies(bank: Tensor, temperature: float) -> Tensor:
    """Return H (n,), the entropy of the softmax of each entry of the bank over all entries (3).

    Args:
        bank: v (n, l), unit rows.
        temperature: τ.
    """
    parts = []
    for rows in bank.split(ROWS):
        log_probabilities = (rows @ bank.mT / temperature).log_softmax(1)
        parts.append(-(log_probabilities.exp() * log_probabilities).sum(1))
    return torch.cat(parts)


def discovery_loss(instance: Tensor, bank: Tensor, own: Tensor, neighbors: Tensor, anchored: Tensor,
                   temperature: float) -> Tensor:
    """Compute L (5), the mean of −log Σ_j p_ij over j = i, and over i's neighbors if i is an anchor.

    Args:
        instance: x (m, l), unit rows.
        bank: v (n, l), unit rows.
        own: (m,) int64, the bank row of each image.
        neighbors: (m, k) int64, the bank rows of each image's neighbors.
        anchored: (m,) bool, whether an image is an anchor.
        temperature: τ.
    """
    similarities = instance @ bank.mT / temperature
    # Logarithms of sums, because e^{1/τ} overflows float32 for a small τ; −∞ removes a neighbor from the sum.
    near = similarities.gather(1, neighbors).masked_fill(~anchored[:, None], -torch.inf)
    members = torch.cat([similarities.gather(1, own[:, None]), near], dim=1)
    return (similarities.logsumexp(1) - members.logsumexp(1)).mean()
