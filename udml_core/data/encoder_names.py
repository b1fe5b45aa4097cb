"""Names of several encoders side by side, in a file without slow imports: the command line reads it for its help."""

from __future__ import annotations

import re
from dataclasses import dataclass

from udml_core.base.errors import UserError, quoted

SIGN = "+"
"""Joins the names of encoders."""
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
