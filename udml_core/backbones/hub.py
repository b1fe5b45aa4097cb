"""Models of timm and torchvision by name.

Both packages are optional and imported only on use. The weights are downloaded when a model is used for the first time.
"""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from udml_core.errors import UserError, quoted
from udml_core.paths import is_exposed

Triple = tuple[float, float, float]
IMAGENET_MEAN: Triple = (123.675, 116.28, 103.53)
IMAGENET_DEVIATION: Triple = (58.395, 57.12, 57.375)
LIBRARIES = ("timm", "torchvision")


def check(name: str) -> None:
    """Check that the library of a backbone `LIBRARY:NAME` is installed.

    Raises:
        UserError: The library is unknown or not installed.
    """
    library, _, model = name.partition(":")
    if library not in LIBRARIES or not model:
        raise UserError(f"A backbone with a colon must be timm:NAME or torchvision:NAME, got {quoted(name)}. "
                        "Correct the name.")
    if is_exposed() and not re.fullmatch(r"[\w.-]+", model):  # timm also reads local-dir:PATH and hf-hub:OWNER/NAME
        raise UserError(f"On this server a model must be named by letters, digits, dots and hyphens, got "
                        f"{quoted(model)}. Choose another backbone.")
    if find_spec(library) is None:
        raise UserError(f"The backbone '{name}' needs the package {library}, which is not installed. "
                        f"Install it with `.venv/bin/pip install {library}`, or choose another backbone.")


def load(name: str) -> tuple[nn.Module, Triple, Triple, int]:
    """Load a network up to its last feature maps.

    Returns:
        The network, the mean and the deviation of each channel on the scale 0–255, and the number of feature maps.

    Raises:
        UserError: The library does not know the model, or its weights could not be downloaded.
    """
    library, _, model = name.partition(":")
    try:
        return _from_timm(model) if library == "timm" else _from_torchvision(model)
    except Exception as error:  # both libraries pass on any exception of their network code
        raise UserError(f"The backbone '{name}' could not be loaded: {error}. Its weights are downloaded on first "
                        "use: check the name and the connection, or choose another backbone.") from error


class _Maps(nn.Module):
    """The feature maps of a timm model.

    The tokens of a transformer count as one row of pixels.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        maps: Tensor = self.model.forward_features(images)
        if maps.ndim == 3:
            return maps.mT[:, :, None]
        return maps


def _from_timm(model: str) -> tuple[nn.Module, Triple, Triple, int]:
    network = import_module("timm").create_model(model, pretrained=True, num_classes=0)
    config = network.pretrained_cfg
    mean, deviation = (tuple(255.0 * value for value in config[part]) for part in ("mean", "std"))
    return _Maps(network), mean, deviation, int(network.num_features)


def _from_torchvision(model: str) -> tuple[nn.Module, Triple, Triple, int]:
    models = import_module("torchvision.models")
    network = models.get_model(model, weights="DEFAULT")
    children = list(network.children())
    while children and isinstance(children[-1], nn.AdaptiveAvgPool2d | nn.Linear | nn.Dropout):
        children.pop()
    if isinstance(children[-1], nn.Sequential) and any(isinstance(part, nn.Linear) for part in children[-1]):
        children = [part for part in children[:-1] if not isinstance(part, nn.AdaptiveAvgPool2d)]
    body = nn.Sequential(*children).eval()
    with torch.no_grad():
        width = body(torch.zeros(1, 3, 224, 224)).shape[1]
    return body, IMAGENET_MEAN, IMAGENET_DEVIATION, int(width)
