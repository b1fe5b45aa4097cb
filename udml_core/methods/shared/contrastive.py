"""The projection head of SimCLR and SupCon, which training discards, and the widths of such heads."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from udml_core.base.declaration import Shown
from udml_core.methods.embedder import unit
from udml_core.numerics.sampling import generator

ProjectionKind = Annotated[Literal["mlp", "linear", "none"], Shown(label="Projection head", text=(
    "Compare views behind a hidden layer and a linear layer, behind a linear layer, or compare the embeddings "
    "themselves."))]
HiddenWidth = Annotated[int, Field(ge=1, le=8192), Shown(step=1, high=4096, label="Hidden width")]
ProjectedWidth = Annotated[int, Field(ge=1, le=8192), Shown(
    step=1, high=512, label="Projected dimension", text="Dimension of the projections that the loss compares.")]


class ProjectionHead(nn.Module):
    """The head g between embeddings x and the loss: z = unit(ReLU(x·W1)·W2), unit(x·W2) or x.

    Attributes:
        hidden: W1 (l, h); None unless the head has a hidden layer.
        projection: W2 (h, p), or (l, p) without a hidden layer; None if z is x.
    """

    def __init__(self, kind: Literal["mlp", "linear", "none"], width: int, hidden: int, projected: int,
                 seed: int) -> None:
        """Draw random weights, uniform within ±1/√(inputs).

        Args:
            kind: The layers.
            width: Dimension l of the embedding.
            hidden: Width h of the hidden layer.
            projected: Dimension p of z.
            seed: Seed of the weights.
        """
        super().__init__()
        random = generator(seed, 0)
        self.hidden = _uniform(width, hidden, random) if kind == "mlp" else None
        self.projection = None if kind == "none" else _uniform(hidden if kind == "mlp" else width, projected, random)

    def forward(self, rows: Tensor) -> Tensor:
        """Return z (b, p) of embeddings (b, l)."""
        if self.hidden is not None:
            rows = (rows @ self.hidden).relu()
        return rows if self.projection is None else unit(rows @ self.projection)


def _uniform(inputs: int, outputs: int, random: torch.Generator) -> nn.Parameter:
    return nn.Parameter((2 * torch.rand(inputs, outputs, generator=random) - 1) / math.sqrt(inputs))
