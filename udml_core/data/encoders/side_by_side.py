"""Several encoders side by side: one network whose last step is a fixed affine map.

Each part gives a vector of unit length. The map centers, whitens and weights them by statistics of the training images,
which `data/side_by_side.py` computes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

STATISTICS = ("network.offset", "network.weight")
"""Names of an encoder's tensors that come from training images and are found in no file of weights."""


class SideBySide(nn.Module):
    """The features of several encoders in one vector, and the affine map that makes them comparable.

    Attributes:
        parts: The encoders.
        offset: Offset (d,) before the map; not a number until the map is known.
        weight: The map (d, l).
    """

    offset: Tensor
    weight: Tensor

    def __init__(self, parts: Sequence[nn.Module], width: int) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.register_buffer("offset", torch.full((width,), torch.nan))
        self.register_buffer("weight", torch.zeros(width, width))

    @property
    def is_fitted(self) -> bool:
        """Whether the map is known."""
        return not bool(self.offset.isnan().any())

    def fill(self, offset: Tensor, weight: Tensor) -> None:
        """Set the map."""
        self.offset.copy_(offset)
        self.weight.copy_(weight)

    def join(self, features: Sequence[Tensor]) -> Tensor:
        """Return the vectors (b, l) of the parts' features, each (b, d_i)."""
        return (torch.cat([normalize(rows, dim=-1) for rows in features], -1) - self.offset) @ self.weight

    def forward(self, images: Tensor) -> Tensor:
        return self.join([part(images) for part in self.parts])[:, :, None, None]
