"""A memory bank: the last embedding of every training image, shared by NCE and AND."""

from __future__ import annotations

from torch import Tensor

from udml_core.methods.embedder import unit
from udml_core.methods.shared.instance import Curves, Objective


class MemoryBank(Objective):
    """An objective that compares views with a memory bank.

    Attributes:
        bank: Unit rows v (n, l), one for each training image.
        kept: Share of its old value that an entry keeps when it is updated.
    """

    bank: Tensor

    def __init__(self, bank: Tensor, kept: float) -> None:
        super().__init__()
        self.kept = kept
        self.register_buffer("bank", bank)

    def remember(self, instance: Tensor, batch: Tensor) -> None:
        own = batch.to(instance.device)
        self.bank[own] = unit(self.kept * self.bank[own] + (1 - self.kept) * instance)

    def agreement(self, instance: Tensor, batch: Tensor) -> Curves:
        """Return the mean similarity of views and entries, and of any two views."""
        own, rows = batch.to(instance.device), instance.detach()
        return {"similarity to the memory": (rows * self.bank[own]).sum(1).mean(),
                "mean similarity": rows.mean(0).square().sum()}
