"""The division of a network into early blocks, which can stay frozen, and late blocks.

Frozen early blocks need to see every image once only: training then continues from their stored activations.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Protocol, runtime_checkable

from torch import nn

from udml_core.base.errors import UserError

LATE_SHARE = 0.5
"""Least share of the parameters in the late blocks of a network that does not state its own division."""


@runtime_checkable
class Divisible(Protocol):
    """A network that lists its blocks in the order of computation."""

    first_late: int
    """Number of the first late block."""

    def blocks(self) -> list[nn.Module]:
        """Return modules whose composition is the network."""


def divide(network: nn.Module) -> tuple[nn.Sequential, nn.Sequential]:
    """Return the early and the late blocks of a network, which share its parameters.

    A network that does not state its division is divided before the shortest end with half of the parameters.

    Raises:
        UserError: The network is not a sequence of blocks.
    """
    if isinstance(network, Divisible):
        blocks, first = network.blocks(), network.first_late
    else:
        blocks = _flatten(network)
        if len(blocks) < 2:
            raise UserError(f"The network {type(network).__name__} is not a sequence of blocks, so its last blocks "
                            "cannot be trained alone. Set the field 'trains' to 'head' or 'all', or choose another "
                            "backbone.")
        counts = [sum(parameter.numel() for parameter in block.parameters()) for block in reversed(blocks)]
        late = next(number for number, count in enumerate(accumulate(counts), 1) if count >= LATE_SHARE * sum(counts))
        first = len(blocks) - late
    return nn.Sequential(*blocks[:first]), nn.Sequential(*blocks[first:])


def _flatten(network: nn.Module) -> list[nn.Module]:
    """Return the modules of nested sequences in the order of computation."""
    if isinstance(network, nn.Sequential) and type(network).forward is nn.Sequential.forward:
        return [block for part in network for block in _flatten(part)]
    return [network]
