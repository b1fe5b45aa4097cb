"""What an encoder is built from: a network, the normalization of its input, and the preparation of images."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from PIL import Image, ImageOps
from torch import nn

Triple = tuple[float, float, float]
Crop = Literal["fit", "center", "squash"]
ROUNDING = 1e-9
"""Keeps 224 / (224 / 232) at 232 before it is rounded down."""


@dataclass(frozen=True)
class Preparation:
    """How an image becomes a square.

    Attributes:
        crop: `fit` crops the largest square, then resizes it. `center` resizes the shorter side, then crops the center,
            as timm and torchvision do. `squash` resizes both sides without keeping their ratio, then crops.
        share: Share of the resized shorter side that the crop keeps; not used by `fit`.
        interpolation: Interpolation of the resizing.
    """

    crop: Crop = "fit"
    share: float = 1.0
    interpolation: Image.Resampling = Image.Resampling.BICUBIC

    @property
    def key(self) -> str:
        """A part of a file name, unique among preparations; empty for the default."""
        return "" if self == Preparation() else f"-{self.crop}{self.share:.4f}-{self.interpolation.name.lower()}"

    def __call__(self, image: Image.Image, side: int) -> Image.Image:
        """Return the image as a square of some side in pixels."""
        if self.crop == "fit":
            return image if image.size == (side, side) else ImageOps.fit(image, (side, side), self.interpolation)
        shorter, resized = min(image.size), self.resized(side)
        width, height = (resized, resized) if self.crop == "squash" else (
            int(resized * length / shorter) for length in image.size)
        if image.size != (width, height):
            image = image.resize((width, height), self.interpolation)
        left, top = round((width - side) / 2), round((height - side) / 2)
        return image.crop((left, top, left + side, top + side))

    def resized(self, side: int) -> int:
        """Return the shorter side in pixels before the crop to a square of some side."""
        return side if self.crop == "fit" else math.floor(side / self.share + ROUNDING)

    def describe(self, side: int) -> str:
        """Return the steps from an image to a square of some side in words."""
        name, resized = f"Pillow's {self.interpolation.name.lower()} filter", self.resized(side)
        if self.crop == "fit":
            return f"crop the centered square and resize it to {side} × {side} pixels with {name}"
        what = "the shorter side" if self.crop == "center" else "both sides"
        return f"resize {what} to {resized} pixels with {name} and crop the centered {side} × {side} pixels"


@dataclass(frozen=True)
class Body:
    """A network from images to feature maps, with the normalization of its input.

    Attributes:
        network: Maps normalized images (b, 3, s, s) to feature maps (b, d, h, w).
        mean: Value subtracted from each channel, on the scale 0–255.
        deviation: Value that each channel is divided by, on the scale 0–255.
        bgr: Whether the network reads the channels in the order blue, green, red.
        dimension: Number of feature maps d; 0 if it depends on the image size.
        preparation: How images become squares.
    """

    network: nn.Module
    mean: Triple
    deviation: Triple
    bgr: bool
    dimension: int
    preparation: Preparation = Preparation()
