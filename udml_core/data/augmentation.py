"""Random views of prepared images, a whole batch at a time on their device."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

ASPECT = 4 / 3
LUMINANCE = (0.299, 0.587, 0.114)
WHITE = 255.0
MARGIN, WIDE_MARGIN = 1.15, 2.0
"""Least side of the crop source as a multiple of the views' side; the wide margin is for crops below half the area.

A crop of 16 % of the area has .4 of the side, so from twice the side it is enlarged 1.25 times at most, in place of 2.5
times. The papers crop 227 of 256 pixels, which is a factor of 1.13.
"""
TRIES = 10
"""Crops drawn for each image. The first crop that fits into the image is used, or the whole image if none fits."""
CROP_DRAWS, COLOR_DRAWS = 2 * TRIES + 3, 9
"""Random numbers for the crop and flip of an image, and for its change of color."""
VERSION = 3
"""Increase this number when a seed gives other views than before, so that cached features of old views are not used."""


@dataclass(frozen=True)
class Jitter:
    """Ranges of the random color changes.

    Attributes:
        brightness: x of a factor drawn from [1 − x, 1 + x].
        contrast: x of a factor drawn from [1 − x, 1 + x].
        saturation: x of a factor drawn from [1 − x, 1 + x].
        hue: x of a rotation drawn from [−x, x], in turns of the color circle.
    """

    brightness: float = 0.4
    contrast: float = 0.4
    saturation: float = 0.4
    hue: float = 0.4


@dataclass(frozen=True)
class Augmentation:
    """A random crop resized to the full image, a color change, and a flip.

    Half of the views are flipped horizontally. Crops follow torchvision's RandomResizedCrop, without its rounding to
    whole pixels. The order of the color changes is drawn once for a batch; the papers draw it for each image.

    Attributes:
        smallest: Smallest share of the image area that a crop keeps; its aspect ratio is between 3/4 and 4/3.
        flip: Whether half of the views are flipped.
        gray: Share of the views that are converted to gray.
        jitter: Ranges of the color changes; None keeps the colors.
    """

    smallest: float = 0.16
    flip: bool = True
    gray: float = 0.0
    jitter: Jitter | None = None

    def __call__(self, images: Tensor, random: torch.Generator, size: int | None = None) -> Tensor:
        """Return a random view (b, c, size, size) float32, 0–255, of each image (b, c, s, s).

        The views keep the images' side s by default.
        """
        return self.apply(images, self.draw(len(images), random), size)

    def views(self, images: Tensor, random: torch.Generator, size: int, count: int) -> list[Tensor]:
        """Return `count` random views (b, c, size, size) of each image (b, c, s, s)."""
        return [self(images, random, size) for _ in range(count)]

    def source_side(self, size: int, available: int) -> int:
        """Return the side of the images that views are cropped from, in pixels.

        Args:
            size: Side of the views.
            available: Shorter side of the files, which are not enlarged beyond the views' side.
        """
        wanted = math.ceil((WIDE_MARGIN if self.smallest < 0.5 else MARGIN) * size)
        return min(wanted, max(size, available))

    def draw(self, count: int, random: torch.Generator) -> Tensor:
        """Draw the random numbers of `count` images' views, (count, draws) in [0, 1).

        Each image has a row. The generator is on the CPU, so every device gets the same draws. A process that handles
        part of a batch draws for the whole batch.
        """
        draws = torch.rand(count, CROP_DRAWS, generator=random)
        if not self.gray and self.jitter is None:
            return draws
        colors = torch.rand(count, COLOR_DRAWS, generator=random)
        colors[:, -4:] = colors[:1, -4:]
        return torch.cat([draws, colors], dim=1)

    def apply(self, images: Tensor, draws: Tensor, size: int | None = None) -> Tensor:
        """Return the views (b, c, size, size) of images (b, c, s, s) that follow from `draws` (b, draws)."""
        views = self._crop(images.float(), draws, size or images.shape[-1])
        if self.gray and images.shape[1] == 3:
            is_gray = (draws[:, CROP_DRAWS] < self.gray).view(-1, 1, 1, 1).to(images.device)
            views = torch.where(is_gray, luminance(views), views)
        return views if self.jitter is None else self._change_colors(views, draws[:, CROP_DRAWS + 1 :], self.jitter)

    def sides(self, draws: Tensor) -> tuple[Tensor, Tensor]:
        """Return the crops' width and height (b,) from `draws`, as shares of the side.

        The area and the logarithm of the aspect ratio are uniform over their ranges.
        """
        area = self.smallest + (1 - self.smallest) * draws[:, :TRIES]
        stretch = torch.exp((2 * draws[:, TRIES : 2 * TRIES] - 1) * math.log(ASPECT) / 2)
        tries = torch.stack([area.sqrt() * stretch, area.sqrt() / stretch])
        fits = (tries <= 1).all(0)
        first = fits.int().argmax(1, keepdim=True)
        width, height = tries.gather(2, first.expand(2, -1, -1)).squeeze(2).where(fits.any(1), 1.0)
        return width, height

    def _crop(self, pixels: Tensor, draws: Tensor, size: int) -> Tensor:
        """Resize a crop of each image to a square, and flip it if that was drawn."""
        transform = self._transform(draws).to(pixels.device)
        grid = affine_grid(transform, [*pixels.shape[:2], size, size], align_corners=False)
        return grid_sample(pixels, grid, padding_mode="reflection", align_corners=False)

    def _transform(self, draws: Tensor) -> Tensor:
        """Return the affine maps (b, 2, 3) from places in the views to places in the images, both from −1 to 1."""
        width, height = self.sides(draws)
        across, down, mirrored = draws[:, 2 * TRIES : CROP_DRAWS].unbind(1)
        mirror = torch.where((mirrored < 0.5) & self.flip, -1.0, 1.0)
        transform = torch.zeros(len(draws), 2, 3)
        transform[:, 0, 0], transform[:, 0, 2] = mirror * width, (2 * across - 1) * (1 - width)
        transform[:, 1, 1], transform[:, 1, 2] = height, (2 * down - 1) * (1 - height)
        return transform

    def _change_colors(self, views: Tensor, draws: Tensor, jitter: Jitter) -> Tensor:
        changes = {"brightness": change_brightness, "contrast": change_contrast, "saturation": change_saturation,
                   "hue": shift_hue}
        if views.shape[1] == 1:
            changes = {name: changes[name] for name in ("brightness", "contrast")}
        names = list(changes)
        for position in draws[0, 4 : 4 + len(names)].argsort().tolist():
            name = names[position]
            offset = (2 * draws[:, position] - 1) * getattr(jitter, name)
            amount = offset if name == "hue" else 1 + offset
            views = changes[name](views, amount.view(-1, 1, 1, 1).to(views.device))
        return views


@dataclass(frozen=True)
class TiltedAugmentation(Augmentation):
    """An augmentation that also rotates each crop about its center by a random angle.

    Attributes:
        degrees: Largest angle, to either side.
    """

    degrees: float = 20.0

    def draw(self, count: int, random: torch.Generator) -> Tensor:
        """Draw the random numbers of `Augmentation.draw` and one for the angle, in the last column."""
        return torch.cat([super().draw(count, random), torch.rand(count, 1, generator=random)], dim=1)

    def _transform(self, draws: Tensor) -> Tensor:
        transform = super()._transform(draws)
        angle = (2 * draws[:, -1] - 1) * math.radians(self.degrees)
        cosine, sine = angle.cos(), angle.sin()
        rotation = torch.stack([torch.stack([cosine, -sine], dim=1), torch.stack([sine, cosine], dim=1)], dim=1)
        transform[:, :, :2] = rotation @ transform[:, :, :2]
        return transform


@dataclass(frozen=True)
class QuarterTurns(Augmentation):
    """An augmentation of which each view is followed by its rotations by 90°, 180° and 270°."""

    def views(self, images: Tensor, random: torch.Generator, size: int, count: int) -> list[Tensor]:
        """Return `count` views (b, c, size, size) of each image: random views in their four rotations."""
        upright = super().views(images, random, size, -(-count // 4))
        return [turned for view in upright for turned in quarter_turns(view)][:count]


def quarter_turns(views: Tensor) -> list[Tensor]:
    """Return square views (b, c, s, s) rotated counterclockwise by 0°, 90°, 180° and 270°."""
    return [torch.rot90(views, turns, (2, 3)) for turns in range(4)]


def luminance(images: Tensor) -> Tensor:
    """Return the luminance 0.299 R + 0.587 G + 0.114 B of images, (b, 1, s, s).

    Images (b, 1, s, s) of one channel stay the same.
    """
    if images.shape[1] == 1:
        return images
    weights = torch.tensor(LUMINANCE, dtype=images.dtype, device=images.device).view(1, 3, 1, 1)
    return (images * weights).sum(1, keepdim=True)


def change_brightness(images: Tensor, factor: Tensor) -> Tensor:
    """Multiply images (b, c, s, s), 0–255, by factors (b, 1, 1, 1); 0 gives black."""
    return (images * factor).clamp(0, WHITE)


def change_contrast(images: Tensor, factor: Tensor) -> Tensor:
    """Scale the distance to the image's mean luminance by factors (b, 1, 1, 1).

    A factor of 0 gives uniform gray.
    """
    return _blend(images, luminance(images).mean((1, 2, 3), keepdim=True), factor)


def change_saturation(images: Tensor, factor: Tensor) -> Tensor:
    """Scale the distance to each pixel's luminance by factors (b, 1, 1, 1).

    A factor of 0 gives a gray image.
    """
    return _blend(images, luminance(images), factor)


def shift_hue(images: Tensor, shift: Tensor) -> Tensor:
    """Rotate the hue of images (b, 3, s, s), 0–255, by turns (b, 1, 1, 1).

    Saturation and value stay the same. The HSV formula is f(n) = v − (v − min) · max(0, min(k, 4 − k, 1)) with k = (n +
    6h) mod 6 and n = 5, 3, 1 for red, green, blue.
    """
    red, green, blue = images.split(1, 1)
    largest, smallest = images.amax(1, keepdim=True), images.amin(1, keepdim=True)
    spread = largest - smallest
    divisor = torch.where(spread > 0, spread, 1)
    hue = torch.where(largest == red, (green - blue) / divisor, torch.where(
        largest == green, 2 + (blue - red) / divisor, 4 + (red - green) / divisor)) + 6 * shift
    offsets = torch.tensor([5.0, 3.0, 1.0], device=images.device).view(1, 3, 1, 1)
    step = offsets + hue.remainder(6)
    step = torch.where(step >= 6, step - 6, step)
    return largest - spread * torch.minimum(step, 4 - step).clamp(0, 1)


def _blend(images: Tensor, other: Tensor, factor: Tensor) -> Tensor:
    return (factor * images + (1 - factor) * other).clamp(0, WHITE)


CROPS = Augmentation()
"""Crops of at least 16 % of the area and flips, used by PLM and by heads on features of random views."""
COLORS = Augmentation(smallest=0.2, gray=0.2, jitter=Jitter())
"""Augmentation of PSLR and ISIF on small images: crops of at least 20 %, a fifth gray, color changes and flips."""
DISTORTIONS = Augmentation(smallest=0.08, gray=0.2, jitter=Jitter(hue=0.1))
"""Augmentation of SimCLR on small images: crops of at least 8 %, flips, a fifth gray, and its color changes of strength
0.5, which it leaves out in a fifth of the views."""
TRANSFORMATIONS = TiltedAugmentation(smallest=0.5, flip=False, jitter=Jitter(hue=0.1))
"""Augmentation of Exemplar: crops of at least half the area, rotations by up to 20°, and color changes."""
