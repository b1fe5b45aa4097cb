"""Several encoders side by side: one network whose last step is a fixed affine map.

Each part gives a vector of unit length. The map centers, whitens and weights them by statistics of the training images,
which `data/side_by_side.py` computes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from udml_core.base.errors import UserError, quoted

SIGN = "+"
"""Joins the names of encoders."""
STATISTICS = ("network.offset", "network.weight")
"""Names of an encoder's tensors that come from training images and are found in no file of weights."""
SMALLEST_WEIGHT, LARGEST_WEIGHT = 0.01, 100.0


@dataclass(frozen=True)
class Part:
    """One of several encoders.

    Attributes:
        backbone: Its name.
        weight: Factor of its features, whose mean squared length is otherwise that of the other parts.
    """

    backbone: str
    weight: float = 1.0


def is_several(name: str) -> bool:
    """Return whether a backbone is several encoders, such as `efficientnet-lite0+squeezenet`."""
    return SIGN in name


def parts_of(name: str) -> tuple[Part, ...]:
    """Return the encoders of a backbone's name, such as `efficientnet-lite0+squeezenet:0.7`.

    Raises:
        UserError: A name is empty or stands twice, or a weight is out of range.
    """
    parts = tuple(_read_part(text) for text in name.split(SIGN)) if is_several(name) else (Part(name),)
    names = [part.backbone for part in parts]
    if not all(names):
        raise UserError("Encoders are joined by a plus sign, such as efficientnet-lite0+squeezenet; got "
                        f"{quoted(name)}. Name an encoder on both sides of each plus sign.")
    if len(set(names)) < len(names):
        raise UserError(f"Each encoder can stand beside the others once, got {quoted(name)}. Remove the second one, or "
                        "give the first a weight, such as squeezenet:0.7.")
    for part in parts:
        if not SMALLEST_WEIGHT <= part.weight <= LARGEST_WEIGHT:
            raise UserError(f"The weight of an encoder must be between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}, got "
                            f"{part.weight:g} for {quoted(part.backbone)}. Change the weight.")
    return parts


def encoders_in(*backbones: str) -> frozenset[str]:
    """Return the names of all encoders in backbones, without weights: these took part, so they cannot judge."""
    return frozenset(part.backbone for name in backbones for part in parts_of(name))


def _read_part(text: str) -> Part:
    """Read a name with an optional weight; the colon of `timm:NAME` is part of the name."""
    match = re.fullmatch(r"(.*):(\d*\.?\d+)", text.strip())
    return Part(match[1].strip(), float(match[2])) if match else Part(text.strip())


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
