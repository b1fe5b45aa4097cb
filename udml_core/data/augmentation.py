"""Random views of prepared images: a whole batch at once, on the images' device."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

ASPECT = 4 / 3


@dataclass(frozen=True)
class Augmentation:
    """A random crop, resized to the whole, and a flip in half of the cases.

    smallest: least share of the area that a crop keeps; its sides differ by at most a third.
    """

    smallest: float = 0.16
    flip: bool = True

    def __call__(self, images: Tensor, random: torch.Generator) -> Tensor:
        """Views (b, c, s, s) float32, 0–255, of images (b, c, s, s), one each.

        The draws come from a generator on the CPU, so they are the same on every device.
        """
        draws = torch.rand(len(images), 5, generator=random)
        area = self.smallest + (1 - self.smallest) * draws[:, 0]
        stretch = torch.exp((2 * draws[:, 1] - 1) * math.log(ASPECT) / 2)
        width, height = ((area.sqrt() * side).clamp(max=1) for side in (stretch, 1 / stretch))
        mirror = torch.where((draws[:, 4] < 0.5) & self.flip, -1.0, 1.0)
        place = torch.zeros(len(images), 2, 3)
        place[:, 0, 0], place[:, 0, 2] = mirror * width, (2 * draws[:, 2] - 1) * (1 - width)
        place[:, 1, 1], place[:, 1, 2] = height, (2 * draws[:, 3] - 1) * (1 - height)
        pixels = images.float()
        grid = affine_grid(place.to(images.device), list(images.shape), align_corners=False)
        return grid_sample(pixels, grid, padding_mode="reflection", align_corners=False)
