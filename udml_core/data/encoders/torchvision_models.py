"""Models of torchvision, with torchvision's own preprocessing and features.

The features are the input of a model's last linear layer, such as fc7 of VGG-16 and the class token of a transformer.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn
from torchvision import models
from torchvision.models.vision_transformer import VisionTransformer, interpolate_embeddings

from udml_core.base.errors import UserError
from udml_core.data.encoders.body import Body, Preparation
from udml_core.data.encoders.pooling import Pooling
from udml_core.data.encoders.weights import WeightFile, fill, read_weights

AUXILIARY = ("aux1", "aux2", "AuxLogits")
"""Classifiers of GoogLeNet and Inception that only training uses."""
INCEPTION = {"transform_input": True, "aux_logits": False, "init_weights": False}
"""Options of GoogLeNet and Inception: their weights expect images in the range −1 to 1."""
SEQUENCES = (models.ResNet, models.GoogLeNet, models.Inception3, models.ShuffleNetV2, models.RegNet, models.MNASNet)
"""Networks whose children are computed one after the other."""
AFTER_MAPS = ("avgpool", "dropout", "fc", "classifier")
"""The children of these networks after the last feature maps."""


def names() -> list[str]:
    """List the models that classify images."""
    return [str(name) for name in models.list_models(models)]


def own_size(model: str) -> int:
    """Return the image size in pixels that a model was trained for."""
    return int(_preprocessing(model).crop_size[0])


def step(network: nn.Module) -> int:
    """Return the side of the patches that images are divided into; 1 without patches."""
    return int(getattr(network, "patch_size", 1))


def outline(model: str, size: int) -> nn.Module:
    """Build a network for images of a size, with random weights."""
    network: nn.Module = models.get_model(model, weights=None, **_options(model, size))
    return network


def build(name: str, size: int, pooling: Pooling, weights: WeightFile | None, filled: bool = True) -> Body:
    """Build a network with weights from a file, or downloaded, or random if it is not to be filled.

    Raises:
        UserError: The file does not fit the network, or the network has no feature maps for R-MAC.
    """
    model = name.partition(":")[2]
    network = outline(model, size)
    last = _last_linear(network)
    network.set_submodule(last or "classifier", nn.Identity() if last else nn.AdaptiveAvgPool2d(1))
    if filled:
        tensors = read_weights(weights) if weights else models.get_model(model, weights="DEFAULT").state_dict()
        if isinstance(network, VisionTransformer) and "encoder.pos_embedding" in tensors:
            tensors = interpolate_embeddings(size, network.patch_size, tensors)
        fill(network, tensors, name, weights.name if weights else "DEFAULT", (*AUXILIARY, last or "classifier"))
    config = _preprocessing(model)
    mean, deviation = ((255 * red, 255 * green, 255 * blue) for red, green, blue in (config.mean, config.std))
    preparation = Preparation("center", config.crop_size[0] / config.resize_size[0],
                              Image.Resampling[config.interpolation.name])
    return Body(_divisible(network, pooling), mean, deviation, False, 0, preparation)


def source(model: str) -> str:
    """Return where the weights of a model can be downloaded by hand."""
    return (f"({models.get_model_weights(model).DEFAULT.url}; convert it: `python -c \"import torch, safetensors.torch "
            "as s; s.save_file(torch.load('FILE.pth', weights_only=True), 'FILE.safetensors')\"`)")


def _preprocessing(model: str) -> Any:
    return models.get_model_weights(model).DEFAULT.transforms()


def _options(model: str, size: int) -> dict[str, Any]:
    """Return the options by which a model is built for images of a size."""
    return _candidates(size)[_kind(model)]


def _candidates(size: int) -> tuple[dict[str, Any], ...]:
    """Return the options of vision transformers, of MaxViT, of GoogLeNet and Inception, and of other models."""
    return {"image_size": size}, {"input_size": (size, size)}, INCEPTION, {}


@lru_cache(maxsize=256)
def _kind(model: str) -> int:
    """Return which options a model accepts."""
    for kind, options in enumerate(_candidates(own_size(model))):
        with torch.device("meta"), suppress(TypeError):  # an unexpected keyword
            models.get_model(model, weights=None, **options)
            return kind
    raise TypeError(f"torchvision cannot build {model} without options")


def _last_linear(network: nn.Module) -> str:
    """Return the name of the last linear layer; empty for SqueezeNet, which classifies by a convolution."""
    return next((name for name, part in reversed(list(network.named_modules())) if isinstance(part, nn.Linear)), "")


def _divisible(network: Any, pooling: Pooling) -> nn.Module:
    """Return a network up to its features as maps (b, d, 1, 1), or up to its feature maps for R-MAC.

    It is a sequence of blocks if the network is one, so that its last blocks can be trained alone.
    """
    if isinstance(network, SEQUENCES):
        parts = [part for name, part in network.named_children() if name not in AFTER_MAPS]
        if getattr(network, "transform_input", False):
            parts.insert(0, _Transform())
        return nn.Sequential(*parts, *([nn.AdaptiveAvgPool2d(1)] if pooling == "mean" else []))
    features = getattr(network, "features", None)
    if pooling == "mean" and features is None:
        return _Features(network)
    if features is None:
        raise UserError(f"R-MAC pools feature maps, and {type(network).__name__} of torchvision has none. Choose "
                        "pooling 'mean' or another backbone.")
    if pooling == "mean":
        network.features = nn.Identity()
        return nn.Sequential(features, network, nn.Unflatten(1, (-1, 1, 1)))
    if hasattr(network, "permute"):  # Swin computes in the layout (b, h, w, d)
        return nn.Sequential(features, network.norm, network.permute)
    return nn.Sequential(features)


class _Features(nn.Module):
    """The features of a network without its last layer, as maps (b, d, 1, 1)."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.model(images)
        return features[:, :, None, None]


class _Transform(nn.Module):
    """Images normalized with ImageNet's mean and deviation, in the range −1 to 1 of GoogLeNet and Inception."""

    scale: Tensor
    shift: Tensor

    def __init__(self) -> None:
        super().__init__()
        mean, deviation = (torch.tensor(values).view(1, 3, 1, 1) for values in ((0.485, 0.456, 0.406),
                                                                               (0.229, 0.224, 0.225)))
        self.register_buffer("scale", deviation / 0.5, persistent=False)
        self.register_buffer("shift", (mean - 0.5) / 0.5, persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        return images * self.scale + self.shift
