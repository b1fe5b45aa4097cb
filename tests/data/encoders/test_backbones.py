"""Encoders: shapes of features, quality of ImageNet weights, rejected settings."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.base.unpickling import read_pickled_arrays
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import (
    BACKBONES,
    Encoder,
    EncoderSpec,
    Pooling,
    check_backbone,
    choose_spec,
    feature_width,
    hub,
)
from udml_core.data.encoders.small import small_resnet18
from udml_core.data.inference import embed_pixels
from udml_core.data.sources.image_folder import Folder
from udml_core.numerics.evaluation import map_at_r, recall_at_k

BIRDS = "birds100"


def random_image(side: int = 64, seed: int = 0) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=np.uint8))


@pytest.mark.parametrize(("name", "pooling", "size", "gray", "width"), [
    ("efficientnet-lite0", "mean", 64, False, 1280),
    ("efficientnet-lite0", "rmac", 96, False, 1280),
    ("squeezenet", "mean", 64, False, 512),
    ("squeezenet", "rmac", 96, True, 512),
    ("cnn", "mean", 8, True, 128),
    ("resnet18-small", "mean", 32, False, 512),
    ("lenet", "mean", 28, True, 128),
    ("cifar-quick", "mean", 32, False, 64),
    ("pixels", "mean", 8, True, 64),
    ("pixels", "mean", 8, False, 192),
])
def test_features_have_the_announced_width(
        name: str, pooling: Pooling, size: int, gray: bool, width: int) -> None:
    spec = EncoderSpec(backbone=name, pooling=pooling, size=size, gray=gray)
    encoder = Encoder(spec)
    pixels = np.stack([encoder.prepare(random_image(seed=seed)) for seed in range(3)])
    assert pixels.shape == (3, 3, size, size)
    assert pixels.dtype == np.uint8
    features = embed_pixels(encoder, pixels)
    assert features.shape == (3, width)
    assert encoder.dimension == feature_width(spec) == width
    np.testing.assert_allclose(features, embed_pixels(Encoder(spec), pixels), rtol=1e-6)
    # The features of an image must not depend on the other images of its batch.
    np.testing.assert_allclose(embed_pixels(encoder, pixels[:1])[0], features[0], rtol=1e-3, atol=1e-4)
    assert not encoder.training
    assert encoder.trainable == (name != "pixels")


def test_frozen_features_are_named_after_their_source() -> None:
    assert [EncoderSpec(backbone=name).frozen_words for name in ("squeezenet", "pixels", "table")] == [
        "the backbone's features", "the pixels themselves", "the vectors of the table"]


def test_raw_pixels_are_scaled_to_1_and_gray_pixels_are_the_channel_mean() -> None:
    pixels = np.arange(3 * 4 * 4, dtype=np.uint8).reshape(1, 3, 4, 4)
    colored, gray = (Encoder(EncoderSpec(backbone="pixels", size=4, gray=flag)) for flag in (False, True))
    np.testing.assert_allclose(embed_pixels(colored, pixels), pixels.reshape(1, -1) / 255, rtol=1e-6)
    np.testing.assert_allclose(embed_pixels(gray, pixels), pixels.mean(1).reshape(1, -1) / 255, rtol=1e-6)


@pytest.mark.parametrize("name", ["efficientnet-lite0", "squeezenet", "cnn", "lenet", "cifar-quick", "pixels"])
def test_a_gray_image_gives_the_features_of_three_equal_channels(name: str) -> None:
    encoder = Encoder(EncoderSpec(backbone=name, size=32, gray=True))
    gray = np.random.default_rng(0).integers(0, 256, (2, 1, 32, 32), dtype=np.uint8)
    np.testing.assert_allclose(embed_pixels(encoder, gray), embed_pixels(encoder, gray.repeat(3, 1)), rtol=1e-6)


def test_convolutions_receive_images_and_weights_in_channels_last_layout() -> None:
    encoder = Encoder(choose_spec("cnn", 16, False))
    convolutions = [module for module in encoder.modules() if isinstance(module, nn.Conv2d)]
    channels_last: list[bool] = []
    for convolution in convolutions:
        convolution.register_forward_pre_hook(lambda module, inputs: channels_last.extend(
            tensor.is_contiguous(memory_format=torch.channels_last) for tensor in (*inputs, module.weight)))
    encoder(torch.rand(2, 3, 16, 16))
    assert channels_last == 2 * len(convolutions) * [True]


def test_squeezenet_receives_bgr_channels_minus_its_mean() -> None:
    """Check the input of the network for a constant image near the mean."""
    encoder = Encoder(EncoderSpec(backbone="squeezenet", size=16))
    inputs: list[torch.Tensor] = []
    encoder.network = _Recorder(inputs)
    near_mean = torch.tensor([123.0, 117.0, 104.0]).view(1, 3, 1, 1).expand(1, 3, 16, 16)
    encoder(near_mean)
    assert inputs[0][0, :, 0, 0].tolist() == pytest.approx([0.0, 0.3, 0.3], abs=1e-4)


class _Recorder(nn.Module):
    def __init__(self, inputs: list[torch.Tensor]) -> None:
        super().__init__()
        self.inputs = inputs

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.inputs.append(images)
        return images


def test_a_wide_image_is_cropped_without_distortion() -> None:
    """The outer thirds of the image are red.

    The network receives the blue square in the middle.
    """
    wide = np.zeros((30, 90, 3), np.uint8)
    wide[:, :30] = wide[:, 60:] = (255, 0, 0)
    wide[:, 30:60] = (0, 0, 255)
    prepared = Encoder(EncoderSpec(backbone="pixels", size=10)).prepare(Image.fromarray(wide))
    inside = prepared[:, :, 1:-1]  # resampling blurs the borders
    assert inside[2].min() == 255
    assert inside[0].max() == 0


def sample(dataset: Dataset, per_class: int, classes: int) -> tuple[list[int], Array]:
    assert dataset.labels is not None
    indices = np.concatenate([dataset.members(label)[:per_class] for label in range(classes)])
    return indices.tolist(), dataset.labels[indices]


def quality(encoder: Encoder, dataset: Dataset, indices: list[int], labels: Array) -> tuple[float, float]:
    """Return R@1 and MAP@R among some images."""
    pixels = np.stack([encoder.prepare(dataset.images[index]) for index in indices])
    blocks = (pixels[start : start + 64] for start in range(0, len(pixels), 64))
    features = np.concatenate([embed_pixels(encoder, block) for block in blocks])
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    return recall_at_k(unit, labels)[1], map_at_r(unit, labels)[0]


def randomize_weights(encoder: Encoder) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for module in encoder.network.modules():
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["efficientnet-lite0", "squeezenet"])
def test_imagenet_weights_retrieve_clothes_far_better_than_random_weights(name: str) -> None:
    """200 images at 96 pixels.

    Measured MAP@R: 37.5 and 24.5 (Lite0), 36.0 and 17.2 (SqueezeNet).
    """
    dataset = catalog.load("fashion-mini")
    indices, labels = sample(dataset, 20, 10)
    encoder = Encoder(EncoderSpec(backbone=name, size=96))
    real = quality(encoder, dataset, indices, labels)
    randomize_weights(encoder)
    random = quality(encoder, dataset, indices, labels)
    assert real[0] > random[0] + 0.1
    assert real[1] > 1.4 * random[1]


@pytest.fixture(scope="module")
def birds(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """The first 6 photographs of the first 30 species.

    Loading the whole data set takes much longer.
    """
    source = catalog.find(BIRDS)
    if source.missing():
        pytest.skip(str(source.missing()))
    assert isinstance(source, Folder)
    folder = tmp_path_factory.mktemp("birds")
    for species in sorted(path for path in source.path.iterdir() if path.is_dir())[:30]:
        (folder / species.name).mkdir()
        for photograph in sorted(species.iterdir())[:6]:
            (folder / species.name / photograph.name).symlink_to(photograph)
    return catalog.load(str(folder))


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(("name", "least"), [("efficientnet-lite0", 0.5), ("squeezenet", 0.2)])
def test_imagenet_weights_recognize_birds_and_random_weights_do_not(
        name: str, least: float, birds: Dataset) -> None:
    """30 species with 6 photographs each at 112 pixels.

    Measured R@1: 64 and 9 % (Lite0), 48 and 7 % (SqueezeNet).
    """
    indices, labels = sample(birds, 6, 30)
    encoder = Encoder(EncoderSpec(backbone=name, size=112))
    assert quality(encoder, birds, indices, labels)[0] > least
    randomize_weights(encoder)
    assert quality(encoder, birds, indices, labels)[0] < least / 2


def test_random_weights_depend_on_the_seed_and_keep_the_global_random_state() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first, same, other = (Encoder(EncoderSpec(backbone="cnn", size=8, seed=seed)) for seed in (1, 1, 2))
    assert torch.equal(torch.rand(3), expected)
    weights = [next(encoder.network.parameters()) for encoder in (first, same, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert first.spec.key != other.spec.key


@pytest.mark.parametrize(("backbone", "native", "pooling", "size"), [
    ("efficientnet-lite0", 500, "mean", 224), ("efficientnet-lite0", 28, "mean", 96),
    ("squeezenet", 500, "rmac", 512), ("squeezenet", 28, "rmac", 192),
    ("pixels", 500, "mean", 32), ("pixels", 8, "mean", 8), ("cnn", 500, "mean", 64), ("cnn", 28, "mean", 28),
    ("lenet", 500, "mean", 28), ("cifar-quick", 28, "mean", 32)])
def test_the_default_image_size_follows_backbone_pooling_and_native_size(
        backbone: str, native: int, pooling: Pooling, size: int) -> None:
    assert choose_spec(backbone, native, True, pooling).size == size


@pytest.mark.parametrize(("arguments", "message"), [
    (("nothing", 28, True), "The backbone must be one of efficientnet-lite0, .*got 'nothing'"),
    (("pixels", 28, True, "rmac"), "Raw pixels have no feature maps"),
    (("squeezenet", 28, True, "rmac", 40), r"needs at least 32, got size 40"),
    (("squeezenet", 28, True, "mean", 2), r"between 15 and 1024 pixels, got 2"),
    (("squeezenet", 28, True, "mean", 5000), r"between 15 and 1024 pixels, got 5000"),
    (("pixels", 28, True, "mean", 3), r"between 4 and 1024 pixels, got 3"),
])
def test_an_impossible_spec_is_rejected(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        choose_spec(*arguments)


def test_specs_with_different_features_have_different_keys() -> None:
    specs = [EncoderSpec(backbone=name, pooling=pooling, size=size, gray=gray, seed=seed)  # type: ignore[arg-type]
             for name in BACKBONES for pooling in ("mean", "rmac") for size in (32, 64) for gray in (False, True)
             for seed in (0, 1)]
    keys = {}
    for spec in specs:
        relevant = (spec.backbone, spec.pooling, spec.size, spec.gray and spec.backbone == "pixels",
                    spec.seed if BACKBONES[spec.backbone].seeded else 0)
        assert keys.setdefault(spec.key, relevant) == relevant
        assert not {"/", ":"} & {*EncoderSpec(backbone="timm:hub/model").key}
    assert len(keys) == len({*keys.values()})


class _Shell:
    """An object whose pickle calls os.system."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch /tmp/udml-was-here",)


@pytest.mark.parametrize("content", [
    pickle.dumps(_Shell()),
    pickle.dumps({"conv1": [np.zeros(2), _Shell()]}),
    b"cbuiltins\neval\n(S'1+1'\ntR.",
    b"cnumpy.testing._private.utils\nrunstring\n.",
    b"cnumpy\nload\n.",
])
def test_reading_pickled_arrays_rejects_everything_else(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "weights.pkl").write_bytes(content)
    with pytest.raises(pickle.UnpicklingError, match="only arrays, numbers and text, but names"):
        read_pickled_arrays(tmp_path / "weights.pkl")


@pytest.mark.parametrize("name", ["timm:vit_small_patch14_dinov2", "torchvision:googlenet"])
def test_a_missing_library_is_named_with_the_install_command(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "find_spec", lambda _name: None)
    library = name.partition(":")[0]
    with pytest.raises(UserError, match=rf"needs the package {library}, which is not installed.*pip install {library}"):
        check_backbone(name)


@pytest.mark.parametrize("name", ["keras:x", "timm:", ":", ":x"])
def test_a_malformed_library_name_is_rejected_with_the_expected_form(name: str) -> None:
    with pytest.raises(UserError, match="must be timm:NAME or torchvision:NAME"):
        check_backbone(name)


def test_the_small_resnet18_has_the_papers_layers_with_a_3_by_3_stem_and_no_max_pool() -> None:
    """Table 1 of the paper gives the parameters.

    The network has a stem, eight blocks and three 1×1 shortcuts.
    """
    body = small_resnet18()
    def block(inputs: int, outputs: int) -> int:
        shortcut = inputs * outputs + 2 * outputs if inputs != outputs else 0
        return 9 * inputs * outputs + 9 * outputs**2 + 4 * outputs + shortcut
    widths = (64, 128, 256, 512)
    expected = 27 * 64 + 2 * 64 + sum(block(inputs, outputs) + block(outputs, outputs)
                                      for inputs, outputs in zip((64, *widths), widths, strict=False))
    assert sum(weight.numel() for weight in body.parameters()) == expected == 11_176_512 - 9_408 + 27 * 64
    assert body(torch.zeros(2, 3, 32, 32)).shape == (2, 512, 4, 4)


def test_networks_from_scratch_use_their_seed_and_keep_the_size_of_small_images() -> None:
    specs = [choose_spec("resnet18-small", 32, False, seed=seed) for seed in (0, 0, 1)]
    assert [spec.size for spec in specs] == [32] * 3
    assert specs[0].key != specs[2].key
    weights = [next(Encoder(spec).network.parameters()) for spec in specs]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_ssdml_networks_have_the_papers_layers_and_end_in_maps_of_one_pixel() -> None:
    for name, size, layers in (("lenet", 28, [(20, 1, 5), (50, 20, 5), (500, 50, 4), (128, 500, 1)]),
                               ("cifar-quick", 32, [(32, 3, 5), (32, 32, 5), (64, 32, 5), (64, 64, 4)])):
        network = Encoder(EncoderSpec(backbone=name, size=size)).network
        assert network(torch.zeros(1, 3, size, size)).shape[2:] == (1, 1)
        kernels = [tuple(weight.shape[:3]) for weight in network.parameters() if weight.ndim == 4]
        assert kernels == layers
        with pytest.raises(UserError, match=f"must be between {size} and 1024 pixels, got {size - 1}"):
            choose_spec(name, 28, True, size=size - 1)
