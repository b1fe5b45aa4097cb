"""The one encoder class, and the names it knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from udml_core.backbones import hub, pretrained, small
from udml_core.backbones.pooling import Pooling, pool, rmac_scales
from udml_core.errors import UserError

SMALLEST, LARGEST = 4, 1024
PHOTOGRAPH = 160
"""Images whose shorter side is at least this many pixels count as photographs."""


@dataclass(frozen=True)
class Body:
    """A network from normalized images to feature maps, and how it wants its images.

    network: (b, 3, s, s) → (b, d, h, w). mean, deviation: subtracted and divided, on the 0–255 scale, one value a
    channel. bgr: the channels' order. dimension: d.
    """

    network: nn.Module
    mean: tuple[float, float, float]
    deviation: tuple[float, float, float]
    bgr: bool
    dimension: int


@dataclass(frozen=True)
class Backbone:
    """An entry of the list that a person chooses from. `seeded` bodies start from random weights; `width` is d,
    0 where it depends on the image size; `smallest` images in pixels leave something of the feature maps; `made_for`
    images of that size, 0 where any will do; the time of a forward pass was measured on two CPU cores."""

    title: str
    width: int
    build: Callable[[], Body]
    seeded: bool = False
    smallest: int = SMALLEST
    made_for: int = 0
    seconds_per_megapixel: float = 0.3


_NONE, _HALF, _WHITE = (0.0, 0.0, 0.0), (128.0, 128.0, 128.0), (255.0, 255.0, 255.0)

BACKBONES: dict[str, Backbone] = {
    "efficientnet-lite0": Backbone(
        "EfficientNet-Lite0, ImageNet, 1280-d", 1280,
        lambda: Body(pretrained.efficientnet_lite0(), (127.0, 127.0, 127.0), _HALF, False, 1280), smallest=32),
    "squeezenet": Backbone(
        "SqueezeNet 1.1, ImageNet, 512-d", 512,
        lambda: Body(pretrained.squeezenet(), (104.0, 116.7, 122.7), (1.0, 1.0, 1.0), True, 512), smallest=15),
    "pixels": Backbone("Raw pixels", 0, lambda: Body(nn.Identity(), _NONE, _WHITE, False, 0),
                       seconds_per_megapixel=0.0),
    "cnn": Backbone("Small CNN from scratch, 128-d", 128,
                    lambda: Body(small.small_cnn(), _HALF, _HALF, False, 128), seeded=True,
                    seconds_per_megapixel=0.1),
    "lenet": Backbone("LeNet from scratch, 28×28 gray, 128-d", 128,
                      lambda: Body(small.lenet(), _NONE, _WHITE, False, 128), seeded=True, smallest=28, made_for=28,
                      seconds_per_megapixel=0.2),
    "cifar-quick": Backbone("CIFAR-10's quick network from scratch, 32×32, 64-d", 64,
                            lambda: Body(small.cifar_quick(), _HALF, _HALF, False, 64), seeded=True, smallest=32,
                            made_for=32, seconds_per_megapixel=0.2),
    "resnet18-small": Backbone("ResNet-18 for small images from scratch, 512-d", 512,
                               lambda: Body(small.small_resnet18(), _HALF, _HALF, False, 512), seeded=True,
                               seconds_per_megapixel=12.0),
}


class EncoderSpec(BaseModel):
    """Everything that features depend on besides the images.

    backbone: a name of BACKBONES, or `timm:NAME` or `torchvision:NAME`. size: pixels of the square that an image is
    resized and cropped to. gray: raw pixels are averaged over the channels. seed: of random weights.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    backbone: str = "efficientnet-lite0"
    pooling: Pooling = "mean"
    size: int = Field(default=224, ge=SMALLEST, le=LARGEST)
    gray: bool = False
    seed: int = 0

    @property
    def trainable(self) -> bool:
        """Whether the network has parameters at all: raw pixels have none."""
        return self.backbone != "pixels"

    @property
    def key(self) -> str:
        """A file name that tells specs apart."""
        parts = [self.backbone.replace(":", "-").replace("/", "-"), self.pooling, str(self.size)]
        parts += ["gray"] if self.gray and self.backbone == "pixels" else []
        parts += [f"seed{self.seed}"] if _is_seeded(self.backbone) else []
        return "-".join(parts)


class Encoder(nn.Module):
    """Images (b, 3, s, s) or (b, 1, s, s), 0–255, to features (b, dimension)."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, spec: EncoderSpec) -> None:
        super().__init__()
        check_backbone(spec.backbone)
        self.spec = spec
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(spec.seed)
            body = _build(spec.backbone)
        self.network = body.network
        self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # twice as fast on a CPU
        self.bgr = body.bgr
        self.register_buffer("mean", torch.tensor(body.mean).view(1, 3, 1, 1), persistent=False)
        self.register_buffer("deviation", torch.tensor(body.deviation).view(1, 3, 1, 1), persistent=False)
        self.dimension = body.dimension or _pixels(spec)
        self.eval()

    @property
    def trainable(self) -> bool:
        """Whether the network has parameters at all."""
        return self.spec.trainable

    def forward(self, images: Tensor) -> Tensor:
        rgb = images.expand(-1, 3, -1, -1).to(self.mean.dtype)
        if self.spec.backbone == "pixels":
            values = (rgb / self.deviation).mean(1) if self.spec.gray else rgb / self.deviation
            return values.flatten(1)
        ordered = rgb.flip(1) if self.bgr else rgb
        normal = ((ordered - self.mean) / self.deviation).contiguous(memory_format=torch.channels_last)
        return pool(self.network, normal, self.spec.pooling)

    def prepare(self, image: Image.Image) -> np.ndarray[Any, Any]:
        """One image as the network wants it, before normalization: uint8 (3, s, s)."""
        side = self.spec.size
        square = image if image.size == (side, side) else ImageOps.fit(image, (side, side), Image.Resampling.BICUBIC)
        return np.asarray(square, dtype=np.uint8).transpose(2, 0, 1)


def choose_spec(backbone: str, native_size: int, gray: bool, pooling: Pooling = "mean", size: int | None = None,
                seed: int = 0) -> EncoderSpec:
    """The spec for a data set whose images measure `native_size` pixels on their shorter side.

    Photographs are read at 224 pixels and smaller images at 96; R-MAC starts at 512 and 192, as the papers' scales do;
    raw pixels and small networks keep small images as they are, and networks made for one size get that.
    """
    check_backbone(backbone)
    photograph = native_size >= PHOTOGRAPH
    if size is None:
        if backbone in BACKBONES and BACKBONES[backbone].made_for:
            size = BACKBONES[backbone].made_for
        elif backbone == "pixels":
            size = min(native_size, 32)
        elif _is_seeded(backbone):
            size = min(native_size, 64)
        elif pooling == "rmac":
            size = 512 if photograph else 192
        else:
            size = 224 if photograph else 96
    smallest = BACKBONES[backbone].smallest if backbone in BACKBONES else SMALLEST
    if not smallest <= size <= LARGEST:
        raise UserError(f"The image size of {backbone} must be between {smallest} and {LARGEST} pixels, got {size}.")
    if backbone == "pixels" and pooling != "mean":
        raise UserError("Raw pixels have no feature maps to pool: R-MAC needs a network. Choose pooling 'mean'.")
    if pooling == "rmac" and min(rmac_scales(size)) < 32:
        raise UserError(f"R-MAC reads the image at {rmac_scales(size)} pixels and needs at least 32, got size {size}.")
    return EncoderSpec(backbone=backbone, pooling=pooling, size=size, gray=gray,
                       seed=seed if _is_seeded(backbone) else 0)


def check_backbone(name: str) -> None:
    """Raises:
    UserError: the name is unknown, or its optional package is missing."""
    if name in BACKBONES:
        return
    if ":" in name:
        hub.check(name)
        return
    raise UserError(f"The backbone must be one of {', '.join(BACKBONES)}, or timm:NAME or torchvision:NAME, "
                    f"got '{name}'.")


def image_seconds(spec: EncoderSpec) -> float:
    """A rough guess of the time to read and encode one image on two CPU cores."""
    rate = BACKBONES[spec.backbone].seconds_per_megapixel if spec.backbone in BACKBONES else 1.0
    scales = rmac_scales(spec.size) if spec.pooling == "rmac" else (spec.size,)
    return 0.0005 + rate * sum(side**2 for side in scales) / 1e6


def feature_width(spec: EncoderSpec) -> int | None:
    """d of the features; None where it is not known before the model is loaded, for those of timm and torchvision."""
    if spec.backbone not in BACKBONES:
        return None
    return BACKBONES[spec.backbone].width or _pixels(spec)


def needs_batches(spec: EncoderSpec) -> bool:
    """Whether the network begins with batch normalization that has learnt no statistics yet, as its weights are random:
    in training it must follow the batches."""
    if not _is_seeded(spec.backbone):
        return False
    with torch.device("meta"):  # the layers alone, without their weights
        layers = _build(spec.backbone).network.modules()
    return any(isinstance(one, nn.modules.batchnorm._BatchNorm) for one in layers)


def _pixels(spec: EncoderSpec) -> int:
    return spec.size**2 * (1 if spec.gray else 3)


def _is_seeded(name: str) -> bool:
    return name in BACKBONES and BACKBONES[name].seeded


def _build(name: str) -> Body:
    if name in BACKBONES:
        return BACKBONES[name].build()
    network, mean, deviation, dimension = hub.load(name)
    return Body(network, mean, deviation, False, dimension)
