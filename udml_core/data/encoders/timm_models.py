"""Models of timm, with timm's own preprocessing and pooled features."""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn

from udml_core.base.errors import UserError
from udml_core.data.encoders.body import Body, Crop, Preparation, Triple
from udml_core.data.encoders.pooling import Pooling
from udml_core.data.encoders.weights import WeightFile, fill, fits, read_weights

timm: Any = import_module("timm")  # without types, as where it is not installed
SIZE_OPTIONS = {"dynamic_img_size": True, "img_size": None}
"""Options of models with position embeddings or windows, for other image sizes than their own. The first keeps the
stored weights and adapts them to each image; the second, whose value is a size, builds the network for one size."""


def names() -> list[str]:
    """List the models."""
    return list(timm.list_models())


def own_size(model: str) -> int:
    """Return the image size in pixels that a model was trained for."""
    config = timm.get_pretrained_cfg(model, allow_unregistered=False)
    return int(config.input_size[-1]) if config else 224  # of a model that only another hub describes


def step(network: nn.Module) -> int:
    """Return the side of the patches that images are divided into; 1 without patches."""
    return int(getattr(getattr(network, "patch_embed", None), "patch_size", (1,))[0])


def outline(model: str, size: int) -> nn.Module:
    """Build a network for images of a size, with random weights and without its classifier."""
    network: nn.Module = timm.create_model(model, num_classes=0, **_size_options(model, size))
    return network


def build(name: str, size: int, pooling: Pooling, weights: WeightFile | None, filled: bool = True) -> Body:
    """Build a network with weights from a file, or downloaded, or random if it is not to be filled.

    Raises:
        UserError: The file does not fit the network.
    """
    model = name.partition(":")[2]
    network: Any = timm.create_model(model, pretrained=filled and weights is None, num_classes=0,
                                     **_size_options(model, size))
    if filled and weights:
        _fill(network, read_weights(weights), name, weights.name)
    config = timm.data.resolve_model_data_config(network)
    mean, deviation = (_scaled(config[part]) for part in ("mean", "std"))
    crop: Crop = "squash" if config["crop_mode"] == "squash" else "center"
    preparation = Preparation(crop, config["crop_pct"], Image.Resampling.__members__.get(
        config["interpolation"].upper(), Image.Resampling.BICUBIC))
    return Body(_Features(network) if pooling == "mean" else _Maps(network), mean, deviation, False, 0, preparation)


def source(model: str) -> str:
    """Return where the weights of a model can be downloaded by hand."""
    config = timm.get_pretrained_cfg(model, allow_unregistered=False)
    return (f"(model.safetensors from https://huggingface.co/{config.hf_hub_id}; a gated model needs an account that "
            "accepted its license)")


def _size_options(model: str, size: int) -> dict[str, Any]:
    option = _size_option(model)
    return {option: SIZE_OPTIONS[option] or size} if option else {}


@lru_cache(maxsize=256)
def _size_option(model: str) -> str:
    """Return the option by which a model reads images of any size; empty if it needs none."""
    if ":" not in model and not timm.get_pretrained_cfg(model, allow_unregistered=False).fixed_input_size:
        return ""
    for option, value in SIZE_OPTIONS.items():
        with torch.device("meta"), suppress(TypeError):  # an unexpected keyword
            timm.create_model(model, num_classes=0, **{option: value or own_size(model)})
            return option
    return ""


def _fill(network: Any, tensors: dict[str, Tensor], name: str, source: str) -> None:
    """Copy tensors into a network; files of other projects are converted as timm does for its downloads."""
    classifier = network.pretrained_cfg.get("classifier") or ()
    ignored = (classifier,) if isinstance(classifier, str) else tuple(classifier)
    convert = getattr(sys.modules[type(network).__module__], "checkpoint_filter_fn", None)
    if convert is not None and not fits(network, tensors, ignored):
        with suppress(Exception):  # of a file of another network; the message names the difference
            tensors = convert(dict(tensors), network)
    fill(network, tensors, name, source, ignored)


def _scaled(values: tuple[float, ...]) -> Triple:
    red, green, blue = (255.0 * value for value in values)
    return red, green, blue


class _Features(nn.Module):
    """The pooled features of a timm model, before its classifier, as maps (b, d, 1, 1)."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.model.forward_head(self.model.forward_features(images), pre_logits=True)
        return features[:, :, None, None]


class _Maps(nn.Module):
    """The last feature maps (b, d, h, w) of a timm model; a transformer's patches without its other tokens."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        maps: Tensor = self.model.forward_features(images)
        if maps.ndim == 3:
            patches = maps[:, getattr(self.model, "num_prefix_tokens", 0):]
            side = math.isqrt(patches.shape[1])
            if side**2 != patches.shape[1]:
                raise UserError(f"R-MAC pools square feature maps, and {type(self.model).__name__} has "
                                f"{patches.shape[1]} patches. Choose pooling 'mean' or another backbone.")
            return patches.mT.unflatten(2, (side, side))
        is_last = getattr(self.model, "output_fmt", "NCHW") == "NHWC"
        return maps.movedim(3, 1) if is_last else maps
