"""The encoder and the backbones that it can use."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any, Literal

import numpy as np
import torch
from PIL import Image
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, model_validator
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d

from udml_core.base.errors import UserError, quoted
from udml_core.data.dataset import TABLE
from udml_core.data.encoder_names import SIGN, is_several, parts_of
from udml_core.data.encoders import hub, pretrained, small, words
from udml_core.data.encoders.body import Body, Preparation
from udml_core.data.encoders.division import divide
from udml_core.data.encoders.pooling import Pooling, pool, rmac_scales
from udml_core.data.encoders.side_by_side import SideBySide
from udml_core.data.encoders.text_folder import PREFIX, check_installed, choose_folder, is_text_model
from udml_core.data.encoders.weights import WeightFile, choose_weights
from udml_core.numerics.refinement.recipe import Whitening

DEFAULT_BACKBONE = "efficientnet-lite0"
SMALLEST, LARGEST = 4, 1024
Precision = Literal["auto", "fp32", "bf16"]
"""Precision of an encoder in training: bfloat16 where that is safe (`auto`: on a GPU only), or float32 throughout."""
PHOTOGRAPH = 160
"""Shorter side, in pixels, from which images count as photographs."""
PIXELS_SIDE = 32
"""Largest side at which raw pixels are compared by default."""


@dataclass(frozen=True)
class Backbone:
    """A backbone that users can choose.

    Attributes:
        title: Name in the app.
        width: Width d of the features; 0 if it depends on the image size.
        build: Builds the network.
        seeded: Whether the network starts from random weights.
        smallest: Smallest image size in pixels that leaves feature maps.
        made_for: Image size in pixels that the network is designed for; 0 for any size.
        seconds_per_megapixel: Time of a forward pass, measured on two CPU cores.
        late_share: Share of the late blocks in the time of a forward pass, measured on one CPU core.
        early_bytes: Bytes of the early blocks' activations in float16, for each pixel of the image.
    """

    title: str
    width: int
    build: Callable[[], Body]
    seeded: bool = False
    smallest: int = SMALLEST
    made_for: int = 0
    seconds_per_megapixel: float = 0.3
    late_share: float = 0.3
    early_bytes: float = 2.0


_NONE, _HALF, _WHITE, _UNIT = (0.0, 0.0, 0.0), (128.0, 128.0, 128.0), (255.0, 255.0, 255.0), (1.0, 1.0, 1.0)

BACKBONES: dict[str, Backbone] = {
    "efficientnet-lite0": Backbone(
        "EfficientNet-Lite0, ImageNet, 1280-d", 1280,
        lambda: Body(pretrained.efficientnet_lite0(), (127.0, 127.0, 127.0), _HALF, False, 1280), smallest=32,
        late_share=0.16, early_bytes=0.875),
    "squeezenet": Backbone(
        "SqueezeNet 1.1, ImageNet, 512-d", 512,
        lambda: Body(pretrained.squeezenet(), (104.0, 116.7, 122.7), (1.0, 1.0, 1.0), True, 512), smallest=15,
        late_share=0.16, early_bytes=3.0),
    "pixels": Backbone("Raw pixels", 0, lambda: Body(nn.Identity(), _NONE, _WHITE, False, 0),
                       seconds_per_megapixel=0.0),
    "cnn": Backbone("Small CNN from scratch, 128-d", 128,
                    lambda: Body(small.small_cnn(), _HALF, _HALF, False, 128), seeded=True,
                    seconds_per_megapixel=0.1, late_share=0.32, early_bytes=16.0),
    "lenet": Backbone("LeNet from scratch, 28×28 gray, 128-d", 128,
                      lambda: Body(small.lenet(), _NONE, _WHITE, False, 128), seeded=True, smallest=28, made_for=28,
                      seconds_per_megapixel=0.2, late_share=0.48, early_bytes=2.04),
    "cifar-quick": Backbone("CIFAR-10's quick network from scratch, 32×32, 64-d", 64,
                            lambda: Body(small.cifar_quick(), _HALF, _HALF, False, 64), seeded=True, smallest=32,
                            made_for=32, seconds_per_megapixel=0.2, late_share=0.26, early_bytes=4.0),
    "resnet18-small": Backbone("ResNet-18 for small images from scratch, 512-d", 512,
                               lambda: Body(small.small_resnet18(), _HALF, _HALF, False, 512), seeded=True,
                               seconds_per_megapixel=12.0, late_share=0.35, early_bytes=32.0),
}


class EncoderSpec(BaseModel):
    """Everything that features depend on besides the images.

    Attributes:
        backbone: A name of BACKBONES, `timm:NAME`, `torchvision:NAME`, `clip:NAME` for a folder of CLIP or SigLIP, or
            `table` for the vectors of a table.
        pooling: Pooling of the feature maps.
        size: Side in pixels of the square that images are resized and cropped to.
        gray: Whether raw pixels are averaged over the channels.
        seed: Seed of random weights.
        weights: File of the weights of a model of timm or torchvision; None to download them; or a folder.
        width: Width of a table's vectors; 0 for images.
        features_version: How models of timm and torchvision give features; `hub.VERSION`, but 1 in a file that does not
            say it. Always 1 for other backbones.
        parts: The encoders that stand side by side; empty for a single one.
        part_weights: The weight of each part.
        whitening: What is whitened where several encoders stand side by side.
        fitted_on: Digest of the training images whose statistics center and whiten the parts; empty before a run is
            planned, and for a single encoder.
        square: Whether a model of timm or torchvision reads the centered square as the other backbones do, in place of
            its own preparation, because encoders side by side read the same pixels.
        block: Side of the blocks of pixels that raw pixels are averaged over; 1 keeps each pixel.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    backbone: str = DEFAULT_BACKBONE
    pooling: Pooling = "mean"
    size: int = Field(default=224, ge=SMALLEST, le=LARGEST)
    gray: bool = False
    seed: int = 0
    weights: WeightFile | None = None
    width: int = Field(default=0, ge=0)
    features_version: int = Field(default=1, ge=1)
    parts: tuple[EncoderSpec, ...] = ()
    part_weights: tuple[float, ...] = ()
    whitening: Whitening = "together"
    fitted_on: str = ""
    square: bool = False
    block: int = Field(default=1, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _set_version(cls, values: Any, info: ValidationInfo) -> Any:
        """Give a new spec the current version; files of version 1 say none."""
        if info.mode == "python" and isinstance(values, dict) and ":" in str(values.get("backbone")):
            return {"features_version": hub.VERSION} | values
        return values

    @property
    def trainable(self) -> bool:
        """Whether a run can train the network; raw pixels and the vectors of a table have no parameters."""
        return self.backbone not in ("pixels", TABLE) and not self.parts

    @property
    def sources(self) -> tuple[EncoderSpec, ...]:
        """The encoders that compute features from images: the parts, or the encoder itself."""
        return self.parts or (self,)

    def fitted(self, images: np.ndarray[Any, Any], fingerprint: str) -> EncoderSpec:
        """Return the same encoder with the statistics of training images; a single encoder has none.

        Args:
            images: Indices (n,) of the training images.
            fingerprint: Fingerprint of their data set.
        """
        if not self.parts:
            return self
        content = fingerprint.encode() + np.ascontiguousarray(images, np.int64).tobytes()
        return self.model_copy(update={"fitted_on": hashlib.sha256(content).hexdigest()[:16]})

    @property
    def of_words(self) -> EncoderSpec | None:
        """The encoder whose features are compared with words: itself or a part; None without CLIP and SigLIP."""
        return next((part for part in self.sources if is_text_model(part.backbone)), None)

    @property
    def named_weights(self) -> WeightFile | None:
        """The file or folder of weights that a user named, for the encoder or for a part."""
        return next((part.weights for part in self.sources if part.weights), None)

    @property
    def unfitted(self) -> EncoderSpec:
        """The same encoder before any statistics."""
        return self.model_copy(update={"fitted_on": ""})

    @property
    def reads_images(self) -> bool:
        """Whether the encoder computes features from images; the features of a table are given."""
        return self.backbone != TABLE

    @property
    def frozen_words(self) -> str:
        """The frozen features in words, such as `the backbone's features`."""
        names = {"pixels": "the pixels themselves", TABLE: "the vectors of the table"}
        return names.get(self.backbone, "the encoders' features" if self.parts else "the backbone's features")

    @property
    def words(self) -> str:
        """The settings in words, such as `squeezenet, mean, 96 px`."""
        return f"{self.backbone}, {self.pooling}, {self.size} px" if self.reads_images else f"table, {self.width}-d"

    @property
    def key(self) -> str:
        """A file name, unique among specs with different features."""
        if not self.reads_images:
            return TABLE
        if self.parts:
            return self._key_of_parts
        parts = [self.backbone.replace(":", "-").replace("/", "-"), self.pooling, str(self.size)]
        parts += ["gray"] if self.gray and self.backbone == "pixels" else []
        parts += [f"seed{self.seed}"] if _is_seeded(self.backbone) else []
        parts += [f"v{hub.VERSION}"] if self.backbone not in BACKBONES else []
        parts += [self.weights.sha256[:16]] if self.weights else []
        parts += ["square"] if self.square else []
        parts += [f"block{self.block}"] if self.block > 1 else []
        return "-".join(parts)

    @property
    def _key_of_parts(self) -> str:
        """The key of encoders side by side; the digest tells parts, weights, whitening and training images apart."""
        content = repr(([part.key for part in self.parts], self.part_weights, self.whitening, self.fitted_on))
        name = self.backbone.replace(":", "-").replace("/", "-")[:80]
        return f"{name}-{self.size}-{hashlib.sha256(content.encode()).hexdigest()[:16]}"


class Encoder(nn.Module):
    """A network from images (b, 3 or 1, s, s), 0–255, to features (b, dimension).

    Args:
        spec: The settings.
        filled: Whether a model of timm or torchvision reads its weights. They are not needed, and may be out of reach,
            if stored weights of a trained encoder follow.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, spec: EncoderSpec, filled: bool = True) -> None:
        super().__init__()
        if spec.reads_images:
            check_backbone(spec.backbone)
        _check_version(spec)
        self.spec = spec
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(spec.seed)
            body = _build(spec, filled)
        self.network = body.network
        self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # twice as fast on a CPU
        self.bgr = body.bgr
        self.preparation = Preparation() if spec.square else body.preparation
        self.register_buffer("mean", torch.tensor(body.mean).view(1, 3, 1, 1), persistent=False)
        self.register_buffer("deviation", torch.tensor(body.deviation).view(1, 3, 1, 1), persistent=False)
        self.dimension = body.dimension or spec.width or _pixels(spec)
        self.eval()

    @property
    def trainable(self) -> bool:
        """Whether the network has parameters."""
        return self.spec.trainable

    def forward(self, images: Tensor) -> Tensor:
        check_reads_images(self.spec, "The embedding of an image")
        rgb = images.expand(-1, 3, -1, -1).to(self.mean.dtype)
        if self.spec.backbone == "pixels":
            values = (rgb / self.deviation).mean(1) if self.spec.gray else rgb / self.deviation
            return (values if self.spec.block == 1 else avg_pool2d(values, self.spec.block)).flatten(1)
        return pool(self.network, self._normalize(rgb), "mean" if self.spec.parts else self.spec.pooling)

    @property
    def joint(self) -> SideBySide:
        """The network of several encoders side by side.

        Raises:
            TypeError: It is a single encoder.
        """
        if not isinstance(self.network, SideBySide):
            raise TypeError(f"{self.spec.backbone} is a single encoder")
        return self.network

    @property
    def part_encoders(self) -> list[Encoder]:
        """The encoders that stand side by side."""
        return [part for part in self.joint.parts if isinstance(part, Encoder)]

    def early(self, images: Tensor) -> Tensor:
        """Return the activations (b, c, h, w) of images after the early blocks."""
        activations: Tensor = divide(self.network)[0](self._normalize(images.expand(-1, 3, -1, -1).to(self.mean.dtype)))
        return activations

    def late(self, activations: Tensor) -> Tensor:
        """Return the features (b, dimension) of the early blocks' activations (b, c, h, w).

        `late(early(images))` equals `forward(images)` if the pooling is the mean.
        """
        maps = activations.to(self.mean.dtype).contiguous(memory_format=torch.channels_last)
        return pool(divide(self.network)[1], maps, "mean")

    def freeze_early(self) -> None:
        """Train no parameter of the early blocks."""
        divide(self.network)[0].requires_grad_(False)

    def _normalize(self, rgb: Tensor) -> Tensor:
        """Return images (b, 3, s, s), 0–255, as the network reads them."""
        ordered = rgb.flip(1) if self.bgr else rgb
        return ((ordered - self.mean) / self.deviation).contiguous(memory_format=torch.channels_last)

    @property
    def needed_side(self) -> int:
        """Pixels of an image's shorter side that `prepare` reads."""
        return self.preparation.resized(self.spec.size)

    def prepare(self, image: Image.Image, side: int | None = None) -> np.ndarray[Any, Any]:
        """Resize and crop an image to a square (3, s, s) uint8, not yet normalized.

        The side s is the encoder's image size by default.
        """
        return np.asarray(self.preparation(image, side or self.spec.size), dtype=np.uint8).transpose(2, 0, 1)


def choose_spec(backbone: str, native_size: int, gray: bool, pooling: Pooling = "mean", size: int | None = None,
                seed: int = 0, weights: str | None = None, whitening: Whitening = "together") -> EncoderSpec:
    """Choose the encoder settings of a data set.

    By default photographs are read at 224 pixels and smaller images at 96; R-MAC starts at 512 (as in the papers) and
    192 pixels. Raw pixels and networks from scratch keep the size of small images, and networks designed for one size
    use it. Models of timm and torchvision round up to a multiple of their patch, or use their own size if they read no
    other.

    Args:
        backbone: Name of the backbone.
        native_size: Typical shorter side of the images in pixels.
        gray: Whether all images are gray.
        pooling: Pooling of the feature maps.
        size: Image size in pixels; chosen as described if None.
        seed: Seed of random weights.
        weights: Path of a file with the weights of a model of timm or torchvision; None to download them.
        whitening: What is whitened where several encoders stand side by side.

    Raises:
        UserError: The backbone is not available, the size or the pooling does not fit it, or the file of the weights
            cannot be read.
    """
    check_backbone(backbone)
    if is_several(backbone):
        return _choose_several(backbone, native_size, gray, pooling, size, seed, weights, whitening)
    if is_text_model(backbone):
        return _choose_text_model(backbone, gray, pooling, size, weights)
    chosen, size = size, size or _default_size(backbone, native_size, pooling)
    smallest = BACKBONES[backbone].smallest if backbone in BACKBONES else SMALLEST
    if not smallest <= size <= LARGEST:
        raise UserError(f"The image size of {backbone} must be between {smallest} and {LARGEST} pixels, got {size}. "
                        "Change the image size.")
    if backbone == "pixels" and pooling != "mean":
        raise UserError(f"Raw pixels have no feature maps, so the pooling must be 'mean', got '{pooling}'. "
                        "Choose pooling 'mean' or another backbone.")
    if pooling == "rmac" and min(rmac_scales(size)) < 32:
        raise UserError(f"R-MAC reads images at {rmac_scales(size)} pixels and needs at least 32, got size {size}. "
                        "Raise the image size to at least 64, or choose pooling 'mean'.")
    if backbone not in BACKBONES:
        size = hub.choose_size(backbone, size, pooling, is_default=chosen is None)
    elif weights is not None:
        raise UserError(f"The option 'weights' applies to models of timm and torchvision, got backbone '{backbone}'. "
                        "Remove it, or choose timm:NAME or torchvision:NAME.")
    return EncoderSpec(backbone=backbone, pooling=pooling, size=size, gray=gray,
                       seed=seed if _is_seeded(backbone) else 0, weights=weights and choose_weights(weights))


def _choose_text_model(backbone: str, gray: bool, pooling: Pooling, size: int | None, weights: str | None
                       ) -> EncoderSpec:
    """Choose the settings of a folder of CLIP or SigLIP, which reads images of its own size by default.

    The weights name the folder, else the backbone does; the spec holds its name alone.
    """
    folder = choose_folder(weights or backbone.removeprefix(PREFIX))
    if pooling != "mean":
        raise UserError(f"CLIP and SigLIP pool their features themselves, so the pooling must be 'mean', got "
                        f"'{pooling}'. Choose pooling 'mean' or another backbone.")
    return EncoderSpec(backbone=f"{PREFIX}{folder.file.name}", size=folder.choose_size(size), gray=gray,
                       weights=folder.file)


def _choose_several(backbone: str, native_size: int, gray: bool, pooling: Pooling, size: int | None, seed: int,
                    weights: str | None, whitening: Whitening) -> EncoderSpec:
    """Choose the settings of encoders side by side, which all read the largest square that any of them chooses.

    It takes the arguments of `choose_spec`. Raw pixels are averaged over blocks, so that at most about 32 pixels a
    side are compared.
    """
    parts = parts_of(backbone)
    hubs = [part.backbone for part in parts if part.backbone not in BACKBONES]
    of_words = [name for name in hubs if is_text_model(name)]
    takers = of_words if weights is not None and Path(weights).expanduser().is_dir() else [
        name for name in hubs if name not in of_words]
    if weights is not None and len(takers) != 1:
        raise UserError(f"The option 'weights' names the file of one model of timm or torchvision, or the folder of "
                        f"one clip:NAME, and {backbone} has {len(takers)} of them. Remove the option, or name "
                        f"{'only one' if takers else 'one'} such model.")
    if size is None:
        networks = [part.backbone for part in parts if part.backbone != "pixels"]
        size = max(_default_size(name, native_size, pooling) if name in BACKBONES else
                   choose_spec(name, native_size, gray, pooling, weights=weights if name in of_words and name in takers
                               else None).size for name in networks)
    chosen = []
    for part in parts:
        is_hub = part.backbone in hubs
        spec = choose_spec(part.backbone, native_size, gray, "mean" if part.backbone == "pixels" else pooling, size,
                           seed, weights if part.backbone in takers else None)
        block = -(-size // PIXELS_SIDE) if part.backbone == "pixels" else 1
        chosen.append(spec.model_copy(update={"square": is_hub, "block": block}))
    backbone = SIGN.join(spec.backbone + (f":{part.weight:g}" if part.weight != 1 else "")
                         for part, spec in zip(parts, chosen, strict=True)) if of_words else backbone
    return EncoderSpec(backbone=backbone, pooling=pooling, size=size, gray=gray, parts=tuple(chosen),
                       part_weights=tuple(part.weight for part in parts), whitening=whitening, features_version=1)


def _default_size(backbone: str, native_size: int, pooling: Pooling) -> int:
    """Return the image size that `choose_spec` describes."""
    photograph = native_size >= PHOTOGRAPH
    if backbone in BACKBONES and BACKBONES[backbone].made_for:
        return BACKBONES[backbone].made_for
    if backbone == "pixels":
        return min(native_size, PIXELS_SIDE)
    if _is_seeded(backbone):
        return min(native_size, 64)
    if pooling == "rmac":
        return 512 if photograph else 192
    return 224 if photograph else 96


def check_backbone(name: str) -> None:
    """Check that a backbone is available.

    Raises:
        UserError: The name is unknown, or its optional package is not installed.
    """
    if name in BACKBONES:
        return
    if is_several(name):
        for part in parts_of(name):
            check_backbone(part.backbone)
        return
    if is_text_model(name):
        check_installed()
        return
    if ":" in name:
        hub.check(name)
        return
    raise UserError(f"The backbone must be one of {', '.join(BACKBONES)}, timm:NAME, torchvision:NAME or clip:FOLDER, "
                    f"or several of them joined by a plus sign, got {quoted(name)}.")


def _check_version(spec: EncoderSpec) -> None:
    """Check that this version gives the features that a spec was written for.

    Raises:
        UserError: It prepares and pools images of this backbone in another way.
    """
    if ":" in spec.backbone and not spec.parts and spec.features_version != hub.VERSION:
        raise UserError(f"This run used version {spec.features_version} of the features of the backbone "
                        f"'{spec.backbone}', which prepared and pooled images differently than version {hub.VERSION} "
                        "does. Search by an image of the data set, or train again.")


def check_reads_images(spec: EncoderSpec, purpose: str, change: str = "Choose rows of the table") -> None:
    """Check that the features are computed from images.

    Args:
        spec: The encoder.
        purpose: What needs images, as the subject of the message.
        change: What a user can do instead.

    Raises:
        UserError: They are the vectors of a table.
    """
    if not spec.reads_images:
        raise UserError(f"{purpose} needs a backbone that reads images, and this data set is a table of embeddings. "
                        f"{change}, or open the folder of the images as a data set.")


def check_compiler(device: str) -> None:
    """Check that `torch.compile` can work on a device.

    Raises:
        UserError: A GPU lacks the package triton, or the CPU lacks a C++ compiler.
    """
    if device.startswith("cuda"):
        works, needed = find_spec("triton") is not None, "the package triton"
    else:
        works, needed = any(which(name) for name in (os.environ.get("CXX", ""), "g++", "clang++") if name), (
            "a C++ compiler (g++ or clang++)")
    if not works:
        raise UserError(f"The option 'compile' needs {needed} on the device '{device}'. Install it, or leave the "
                        "option off.")


def check_trainable(spec: EncoderSpec) -> None:
    """Reject a backbone without parameters.

    Raises:
        UserError: The encoder has nothing to train.
    """
    if spec.parts:
        raise UserError(f"Several encoders side by side are not trained, got '{spec.backbone}'. Set the field 'trains' "
                        "to 'head', or choose a single backbone.")
    if not spec.trainable:
        raise UserError(f"The backbone '{spec.backbone}' has nothing to train. Set the field 'trains' to 'head', or "
                        "choose another backbone.")


def check_divisible(spec: EncoderSpec) -> None:
    """Check that the last blocks of a backbone can be trained alone.

    Raises:
        UserError: The pooling reads images at several scales, or the network is not a known sequence of blocks.
    """
    if spec.pooling != "mean":
        raise UserError(f"Only the whole encoder or the head can be trained with the pooling '{spec.pooling}', which "
                        "reads images at several scales. Set the field 'trains' to 'head' or 'all', or choose pooling "
                        "'mean'.")
    if spec.backbone.startswith("timm:"):
        raise UserError(f"The last blocks of '{spec.backbone}' cannot be trained alone, because models of timm do not "
                        "list their blocks. Set the field 'trains' to 'head' or 'all', or choose another backbone.")


def image_seconds(spec: EncoderSpec) -> float:
    """Estimate the seconds to read and encode an image on two CPU cores."""
    if not spec.reads_images:
        return 0.0
    if spec.parts:
        return sum(image_seconds(part) for part in spec.parts)
    rate = BACKBONES[spec.backbone].seconds_per_megapixel if spec.backbone in BACKBONES else 1.0
    scales = rmac_scales(spec.size) if spec.pooling == "rmac" else (spec.size,)
    return 0.0005 + rate * sum(side**2 for side in scales) / 1e6


def late_share(spec: EncoderSpec) -> float:
    """Estimate the share of the late blocks in the time of a forward pass; other models count as the default."""
    return BACKBONES[spec.backbone].late_share if spec.backbone in BACKBONES else Backbone.late_share


def activation_bytes(spec: EncoderSpec) -> float:
    """Estimate the bytes of an image's stored activations after the early blocks."""
    per_pixel = BACKBONES[spec.backbone].early_bytes if spec.backbone in BACKBONES else Backbone.early_bytes
    return per_pixel * spec.size**2


def feature_width(spec: EncoderSpec) -> int | None:
    """Return the width d of the features; None for models of timm and torchvision.

    The width of those models is known only after loading.
    """
    if not spec.reads_images:
        return spec.width
    if spec.parts:
        widths = [feature_width(part) for part in spec.parts]
        return None if None in widths else sum(filter(None, widths))
    if spec.backbone not in BACKBONES:
        return None
    return BACKBONES[spec.backbone].width or _pixels(spec)


def needs_batches(spec: EncoderSpec) -> bool:
    """Return whether the network has batch normalization and random weights.

    Its running statistics are not learned yet, so training must normalize by the statistics of each batch.
    """
    if not _is_seeded(spec.backbone):
        return False
    with torch.device("meta"):  # layers without weights
        layers = _build(spec).network.modules()
    return any(isinstance(layer, nn.modules.batchnorm._BatchNorm) for layer in layers)


def _pixels(spec: EncoderSpec) -> int:
    return (spec.size // spec.block)**2 * (1 if spec.gray else 3)


def _is_seeded(name: str) -> bool:
    return name in BACKBONES and BACKBONES[name].seeded


def _build(spec: EncoderSpec, filled: bool = True) -> Body:
    if spec.backbone == TABLE:
        return Body(nn.Identity(), _NONE, _WHITE, False, 0)
    if spec.parts:
        encoders = [Encoder(part, filled) for part in spec.parts]
        width = sum(encoder.dimension for encoder in encoders)
        return Body(SideBySide(encoders, width), _NONE, _UNIT, False, width)
    if spec.backbone in BACKBONES:
        return BACKBONES[spec.backbone].build()
    if spec.weights and is_text_model(spec.backbone):
        return words.load_images(spec.weights, filled)
    return hub.load(spec.backbone, spec.size, spec.pooling, spec.weights, filled)
