"""The adapter to timm and torchvision, tested with fakes of their interface."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from udml_core.backbones import Encoder, EncoderSpec, choose_spec
from udml_core.data.features import embed_pixels
from udml_core.errors import UserError


def module(name: str, **content: Any) -> ModuleType:
    fake = ModuleType(name)
    fake.__spec__ = ModuleSpec(name, None)
    fake.__dict__.update(content)
    return fake


class Timm(nn.Module):
    """A convolutional model or a transformer with the interface of timm."""

    num_features = 6
    pretrained_cfg: ClassVar = {"mean": (0.5, 0.25, 0.125), "std": (0.5, 0.5, 0.25)}

    def __init__(self, tokens: bool) -> None:
        super().__init__()
        self.tokens = tokens
        self.convolution = nn.Conv2d(3, 6, 4, 4)

    def forward_features(self, images: Tensor) -> Tensor:
        maps: Tensor = self.convolution(images)
        return maps.flatten(2).mT if self.tokens else maps


@pytest.fixture
def timm_calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Calls of a fake timm that knows the models `net` and `tokens`."""
    calls: list[tuple[Any, ...]] = []

    def create_model(name: str, **options: Any) -> nn.Module:
        calls.append((name, options))
        if name not in ("net", "tokens"):
            raise RuntimeError(f"Unknown model ({name})")
        torch.manual_seed(0)
        return Timm(name == "tokens")

    monkeypatch.setitem(sys.modules, "timm", module("timm", create_model=create_model))
    return calls


@pytest.mark.parametrize("model", ["net", "tokens"])
def test_a_timm_model_gives_the_mean_of_its_maps_or_tokens(model: str, timm_calls: list[tuple[Any, ...]]) -> None:
    spec = choose_spec(f"timm:{model}", 28, False, size=16)
    encoder = Encoder(spec)
    assert timm_calls == [(model, {"pretrained": True, "num_classes": 0})]
    assert encoder.dimension == 6
    pixels = np.random.default_rng(0).integers(0, 256, (2, 3, 16, 16), dtype=np.uint8)
    mean, deviation = (torch.tensor(Timm.pretrained_cfg[part]).view(1, 3, 1, 1) for part in ("mean", "std"))
    torch.manual_seed(0)
    with torch.no_grad():
        expected = Timm(False).convolution((torch.from_numpy(pixels) / 255 - mean) / deviation).mean((2, 3))
    np.testing.assert_allclose(embed_pixels(encoder, pixels), expected.numpy(), rtol=1e-4, atol=1e-5)
    assert ":" not in spec.key


@pytest.mark.usefixtures("timm_calls")
def test_an_unknown_model_raises_an_error_with_the_message_of_the_library() -> None:
    with pytest.raises(UserError, match=r"'timm:none' could not be loaded: Unknown model \(none\).*the connection"):
        Encoder(EncoderSpec(backbone="timm:none", size=16))


class _Named(nn.Module):
    def __init__(self, named: dict[str, nn.Module]) -> None:
        super().__init__()
        for name, part in named.items():
            self.add_module(name, part)


VISION: dict[str, Any] = {
    # The last layers of resnet50 and googlenet, and of mobilenet, efficientnet, vgg and alexnet.
    "pooled": lambda: _Named({"conv": nn.Conv2d(3, 5, 3, 2), "avgpool": nn.AdaptiveAvgPool2d(1),
                              "dropout": nn.Dropout(), "fc": nn.Linear(5, 10)}),
    "classified": lambda: _Named({"features": nn.Sequential(nn.Conv2d(3, 5, 3, 2)),
                                  "avgpool": nn.AdaptiveAvgPool2d(1),
                                  "classifier": nn.Sequential(nn.Dropout(), nn.Linear(5, 10))}),
}


@pytest.mark.parametrize("model", VISION)
def test_a_torchvision_model_is_used_without_its_classifier(
        model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def get_model(name: str, weights: str) -> nn.Module:
        assert weights == "DEFAULT"
        return VISION[name]()

    models = module("torchvision.models", get_model=get_model)
    monkeypatch.setitem(sys.modules, "torchvision", module("torchvision", models=models))
    monkeypatch.setitem(sys.modules, "torchvision.models", models)
    encoder = Encoder(EncoderSpec(backbone=f"torchvision:{model}", size=32))
    assert encoder.dimension == 5
    kinds = {type(part) for part in encoder.network.modules()}
    assert nn.Conv2d in kinds
    assert not kinds & {nn.Linear, nn.AdaptiveAvgPool2d}
    assert embed_pixels(encoder, np.zeros((2, 3, 32, 32), np.uint8)).shape == (2, 5)
    with pytest.raises(UserError, match="'torchvision:other' could not be loaded"):
        Encoder(EncoderSpec(backbone="torchvision:other", size=32))
