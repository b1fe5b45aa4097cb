"""Pooling of feature maps to one vector for each image."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, normalize

Pooling = Literal["mean", "rmac"]
LEVELS = 3
OVERLAP = 0.4


def pool(network: nn.Module, images: Tensor, pooling: Pooling) -> Tensor:
    """Encode images and pool their feature maps.

    Args:
        network: Maps images to feature maps (b, d, h, w).
        images: Normalized images (b, 3, s, s).
        pooling: The mean of each map, or R-MAC summed over three scales.

    Returns:
        Features (b, d); of unit length for R-MAC.
    """
    if pooling == "mean":
        return network(images).mean((2, 3))
    scaled = [interpolate(images, size=side, mode="bilinear", antialias=True, align_corners=False)
              for side in rmac_scales(images.shape[-1])]
    return normalize(torch.stack([rmac(network(part)) for part in scaled]).sum(0))


def rmac_scales(size: int) -> tuple[int, int, int]:
    """Return s, s/√2 and s/2, the scales of RPML and SSDML (512, 362, 256)."""
    return size, round(size / math.sqrt(2)), size // 2


def rmac(maps: Tensor) -> Tensor:
    """Compute the regional maximum activations of feature maps (R-MAC).

    The maxima over each region of three grids, and over the whole map, are ℓ2-normalized, summed and ℓ2-normalized
    again. The whitening of the paper is omitted, because it needs training images of its own.

    Args:
        maps: Feature maps (b, d, h, w).

    Returns:
        Unit vectors (b, d).

    References:
        G. Tolias, R. Sicre, H. Jégou, "Particular object retrieval with integral max-pooling of CNN activations",
        ICLR 2016.
    """
    height, width = maps.shape[2:]
    total = normalize(maps.amax((2, 3)))
    for level in range(1, LEVELS + 1):
        side = max(1, 2 * min(height, width) // (level + 1))
        for top in _starts(height, side, level, height > width):
            for left in _starts(width, side, level, width > height):
                total = total + normalize(maps[:, :, top : top + side, left : left + side].amax((2, 3)))
    return normalize(total)


def _starts(length: int, side: int, level: int, longer: bool) -> list[int]:
    """Return evenly spaced starts of squares along a side.

    The shorter side has `level` starts; the longer side has more, to overlap by 40 %.
    """
    count = level
    if longer:
        count = max(level, math.ceil((length - side) / (side * (1 - OVERLAP))) + 1)
    count = min(count, length - side + 1)
    return [round(position * (length - side) / max(1, count - 1)) for position in range(count)]
