"""Random views of prepared images: a whole batch at once, on the images' device."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

ASPECT = 4 / 3
LUMINANCE = (0.299, 0.587, 0.114)
WHITE = 255.0
TRIES = 10
"""Crops drawn for an image, of which it gets the first that lies within it; the whole image where none does."""
PLACE_DRAWS, COLOR_DRAWS = 2 * TRIES + 3, 9
"""Numbers that an image's crop and flip, and its change of color, are made from."""
VERSION = 2
"""Raised where a seed gives other views than before, so that features kept of those are not taken for these."""


@dataclass(frozen=True)
class Jitter:
    """How far colors are changed, each by a factor in [1 − x, 1 + x], the hue by a part of the circle in [−x, x]."""

    brightness: float = 0.4
    contrast: float = 0.4
    saturation: float = 0.4
    hue: float = 0.4


@dataclass(frozen=True)
class Augmentation:
    """A random crop, resized to the whole, a change of color, and a flip in half of the cases.

    Crops are those of torchvision's RandomResizedCrop, but for its rounding to whole pixels. smallest: least share of
    the area that a crop keeps; its sides differ by at most a third. gray: the share of views
    that lose their color. jitter: None leaves colors as they are; the order of the four changes is drawn for a batch,
    where the papers' is drawn for an image.
    """

    smallest: float = 0.16
    flip: bool = True
    gray: float = 0.0
    jitter: Jitter | None = None

    def __call__(self, images: Tensor, random: torch.Generator) -> Tensor:
        """Views (b, c, s, s) float32, 0–255, of images (b, c, s, s), one each."""
        return self.apply(images, self.draw(len(images), random))

    def draw(self, count: int, random: torch.Generator) -> Tensor:
        """What the views of `count` images are made with, (count, draws) in [0, 1): a row an image.

        The draws come from a generator on the CPU, so they are the same on every device; and a process that works on a
        part of a batch draws for the whole of it.
        """
        draws = torch.rand(count, PLACE_DRAWS, generator=random)
        if not self.gray and self.jitter is None:
            return draws
        colors = torch.rand(count, COLOR_DRAWS, generator=random)
        colors[:, -4:] = colors[:1, -4:]
        return torch.cat([draws, colors], dim=1)

    def apply(self, images: Tensor, draws: Tensor) -> Tensor:
        """The views (b, c, s, s) that `draws` (b, draws) stand for."""
        views = self._placed(images.float(), draws)
        if self.gray and images.shape[1] == 3:
            lost = (draws[:, PLACE_DRAWS] < self.gray).view(-1, 1, 1, 1).to(images.device)
            views = torch.where(lost, luminance(views), views)
        return views if self.jitter is None else self._jittered(views, draws[:, PLACE_DRAWS + 1 :], self.jitter)

    def sides(self, draws: Tensor) -> tuple[Tensor, Tensor]:
        """Width and height of the crops that `draws` (b, draws) stand for, (b,) each, as shares of the image's: the
        area is even over its range, and the logarithm of the aspect too."""
        area = self.smallest + (1 - self.smallest) * draws[:, :TRIES]
        stretch = torch.exp((2 * draws[:, TRIES : 2 * TRIES] - 1) * math.log(ASPECT) / 2)
        tries = torch.stack([area.sqrt() * stretch, area.sqrt() / stretch])
        fits = (tries <= 1).all(0)
        first = fits.int().argmax(1, keepdim=True)
        width, height = tries.gather(2, first.expand(2, -1, -1)).squeeze(2).where(fits.any(1), 1.0)
        return width, height

    def _placed(self, pixels: Tensor, draws: Tensor) -> Tensor:
        """The crop, resized to the whole and flipped where that was drawn."""
        width, height = self.sides(draws)
        across, down, mirrored = draws[:, 2 * TRIES : PLACE_DRAWS].unbind(1)
        mirror = torch.where((mirrored < 0.5) & self.flip, -1.0, 1.0)
        place = torch.zeros(len(pixels), 2, 3)
        place[:, 0, 0], place[:, 0, 2] = mirror * width, (2 * across - 1) * (1 - width)
        place[:, 1, 1], place[:, 1, 2] = height, (2 * down - 1) * (1 - height)
        grid = affine_grid(place.to(pixels.device), list(pixels.shape), align_corners=False)
        return grid_sample(pixels, grid, padding_mode="reflection", align_corners=False)

    def _jittered(self, views: Tensor, draws: Tensor, jitter: Jitter) -> Tensor:
        changes = {"brightness": brighter, "contrast": contrasted, "saturation": saturated, "hue": hue_shifted}
        if views.shape[1] == 1:
            changes = {name: changes[name] for name in ("brightness", "contrast")}
        names = list(changes)
        for position in draws[0, 4 : 4 + len(names)].argsort().tolist():
            name = names[position]
            away = (2 * draws[:, position] - 1) * getattr(jitter, name)
            amount = away if name == "hue" else 1 + away
            views = changes[name](views, amount.view(-1, 1, 1, 1).to(views.device))
        return views


def luminance(images: Tensor) -> Tensor:
    """0.299 R + 0.587 G + 0.114 B of images (b, 3, s, s), (b, 1, s, s); the image itself where it has one channel."""
    if images.shape[1] == 1:
        return images
    weights = torch.tensor(LUMINANCE, dtype=images.dtype, device=images.device).view(1, 3, 1, 1)
    return (images * weights).sum(1, keepdim=True)


def brighter(images: Tensor, factor: Tensor) -> Tensor:
    """Images (b, c, s, s), 0–255, times factors (b, 1, 1, 1): 0 is black."""
    return (images * factor).clamp(0, WHITE)


def contrasted(images: Tensor, factor: Tensor) -> Tensor:
    """Away from the image's mean luminance, by factors (b, 1, 1, 1): 0 is an even gray."""
    return _blended(images, luminance(images).mean((1, 2, 3), keepdim=True), factor)


def saturated(images: Tensor, factor: Tensor) -> Tensor:
    """Away from each pixel's luminance, by factors (b, 1, 1, 1): 0 is gray."""
    return _blended(images, luminance(images), factor)


def hue_shifted(images: Tensor, shift: Tensor) -> Tensor:
    """Images (b, 3, s, s), 0–255, with the hue moved by parts of the circle (b, 1, 1, 1); saturation and value stay.

    HSV's f(n) = v − (v − least) · max(0, min(k, 4 − k, 1)), k = (n + 6h) mod 6, n = 5, 3, 1 for red, green, blue.
    """
    red, green, blue = images.split(1, 1)
    most, least = images.amax(1, keepdim=True), images.amin(1, keepdim=True)
    spread = most - least
    divisor = torch.where(spread > 0, spread, 1)
    hue = torch.where(most == red, (green - blue) / divisor, torch.where(
        most == green, 2 + (blue - red) / divisor, 4 + (red - green) / divisor)) + 6 * shift
    offsets = torch.tensor([5.0, 3.0, 1.0], device=images.device).view(1, 3, 1, 1)
    step = offsets + hue.remainder(6)
    step = torch.where(step >= 6, step - 6, step)
    return most - spread * torch.minimum(step, 4 - step).clamp(0, 1)


def _blended(images: Tensor, other: Tensor, factor: Tensor) -> Tensor:
    return (factor * images + (1 - factor) * other).clamp(0, WHITE)


CROPS = Augmentation()
"""Crops of at least .16 of the area and flips: of PLM, and of heads on the features of random views."""
COLORS = Augmentation(smallest=0.2, gray=0.2, jitter=Jitter())
"""PSLR's and ISIF's on small images: crops of at least .2, a fifth in gray, all colors changed, flips."""
