"""Models of timm and torchvision give the features that these libraries compute themselves.

Nothing is downloaded: the weights are random, and are handed to the model in place of a file or a download.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
from PIL import Image
from torch import Tensor, nn
from torchvision import models
from torchvision.models._api import WeightsEnum

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.dataset import ArrayImages
from udml_core.data.encoders import Encoder, EncoderSpec, choose_spec, timm_models, torchvision_models
from udml_core.data.encoders.weights import WeightFile
from udml_core.data.features import pixels_of
from udml_core.data.inference import embed_pixels

FILE = WeightFile(name="in-memory.safetensors", sha256=64 * "0")
TIMM = {
    # The smallest model of each family with the smallest image size that tells its maps apart, and its width.
    "resnet50": (64, 2048),
    "convnext_atto": (64, 320),
    "swin_tiny_patch4_window7_224": (64, 768),
    "vit_tiny_patch16_224": (96, 192),
    "vit_small_patch14_dinov2": (56, 384),
    "vit_small_patch14_reg4_dinov2": (56, 384),
    "vit_small_patch16_dinov3": (64, 384),
    "vit_base_patch16_siglip_224": (48, 768),
    "vit_xsmall_patch16_clip_224": (64, 256),
    "eva02_tiny_patch14_224": (56, 192),
    "mobilenetv4_conv_small": (64, 1280),
}
OPTIONS: dict[str, dict[str, bool]] = {name: {"dynamic_img_size": True} for name in TIMM if "_patch" in name}
"""Options of models that read other sizes than their own; apart from Swin's windows, `set_input_size` does the same."""
TORCHVISION = {"resnet18": (64, 512), "googlenet": (64, 1024), "inception_v3": (96, 2048), "vgg16": (32, 4096),
               "swin_t": (64, 768), "vit_b_16": (48, 768), "convnext_tiny": (64, 768), "densenet121": (64, 1024)}


def random_image(seed: int) -> Image.Image:
    """Return a wide image with small colored areas, so that crop and interpolation matter."""
    random = np.random.default_rng(seed).integers(0, 256, (75, 100, 3), dtype=np.uint8)
    return Image.fromarray(random).resize((400, 300), Image.Resampling.BICUBIC)


IMAGES = [random_image(seed) for seed in (0, 1)]


def randomize(model: nn.Module, size: int) -> nn.Module:
    """Give a network random weights that make its features depend on the image, as training does.

    Scales and shifts are drawn, because they start at values that switch parts of a network off. Batch normalization
    gets the statistics of two images.
    """
    random = torch.Generator().manual_seed(1)
    for part in model.eval().modules():
        if isinstance(part, nn.BatchNorm2d):
            part.momentum = 1.0
            part.train()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim <= 1:
                parameter.uniform_(-0.5, 1.0, generator=random)
        if any(isinstance(part, nn.BatchNorm2d) for part in model.modules()):
            model(torch.rand(2, 3, size, size, generator=random))
    return model.eval()


def own_features(model: Any, transform: Callable[[Image.Image], Tensor], pool: Callable[[Tensor], Tensor]) -> Array:
    with torch.no_grad():
        return pool(torch.stack([transform(image) for image in IMAGES])).numpy()


def check_equal(features: Array, expected: Array) -> None:
    """Compare the features of two images; their difference must be reproduced too, as random networks vary little."""
    assert features.shape == expected.shape
    similarity = (features * expected).sum(1) / np.linalg.norm(features, axis=1) / np.linalg.norm(expected, axis=1)
    assert similarity.min() > 0.9999
    error = np.linalg.norm(features - expected, axis=1).max()
    assert error < 0.01 * np.linalg.norm(expected[0] - expected[1])


def features_of_images(encoder: Encoder) -> Array:
    return embed_pixels(encoder, np.stack([encoder.prepare(image) for image in IMAGES]))


@pytest.mark.slow
@pytest.mark.parametrize("model", TIMM)
def test_timm_features_equal_timms_own(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    size, width = TIMM[model]
    library: Any = randomize(timm.create_model(model, **OPTIONS.get(model, {})), size)
    state = {name: value.clone() for name, value in library.state_dict().items()}
    monkeypatch.setattr(timm_models, "read_weights", lambda _file: state)
    encoder = Encoder(EncoderSpec(backbone=f"timm:{model}", size=size, weights=FILE))
    config = timm.data.resolve_model_data_config(library)
    if model in OPTIONS and not model.startswith("swin"):
        library.set_input_size(img_size=size)  # resamples the position embeddings before the images are known
    transform = timm.data.create_transform(**config | {"input_size": (3, size, size)})
    expected = own_features(library, transform, lambda batch: library.forward_head(
        library.forward_features(batch), pre_logits=True))
    assert encoder.dimension == width
    check_equal(features_of_images(encoder), expected)


@pytest.mark.parametrize("model", ["resnet18", *(pytest.param(name, marks=pytest.mark.slow) for name in TORCHVISION
                                                 if name != "resnet18")])
def test_torchvision_features_are_the_input_of_its_last_layer(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library builds a pretrained model from downloaded weights, here random."""
    size, width = TORCHVISION[model]
    options = {"aux_logits": True, "init_weights": False} if model in ("googlenet", "inception_v3") else {}
    state = randomize(models.get_model(model, weights=None, **options), size).state_dict()
    monkeypatch.setattr(WeightsEnum, "get_state_dict", lambda *_arguments, **_options: dict(state))
    encoder = Encoder(EncoderSpec(backbone=f"torchvision:{model}", size=size))
    library, transform = own_torchvision(model, size)
    inputs: list[Tensor] = []
    last = [part for part in library.modules() if isinstance(part, nn.Linear)][-1]
    last.register_forward_pre_hook(lambda _module, arguments: inputs.append(arguments[0]))
    own_features(library, transform, library)
    assert encoder.dimension == width
    features = features_of_images(encoder)
    check_equal(features, inputs[0].numpy())
    if model != "vit_b_16":
        pixels = torch.from_numpy(np.stack([encoder.prepare(image) for image in IMAGES]))
        with torch.no_grad():
            check_equal(encoder.late(encoder.early(pixels)).numpy(), features)


def own_torchvision(model: str, size: int) -> tuple[nn.Module, Callable[[Image.Image], Tensor]]:
    """Return torchvision's pretrained model and its preprocessing for another image size."""
    weights = models.get_model_weights(model).DEFAULT
    library = models.get_model(model, weights=weights)
    if model == "vit_b_16":
        state = models.vision_transformer.interpolate_embeddings(size, 16, library.state_dict())
        library = models.get_model(model, weights=None, image_size=size)
        library.load_state_dict(state)
    transform = weights.transforms()
    transform.resize_size = [transform.resize_size[0] * size // transform.crop_size[0]]
    transform.crop_size = [size]
    return library.eval(), transform


@pytest.mark.slow
@pytest.mark.parametrize(("backbone", "native", "size"), [
    ("timm:vit_small_patch14_dinov2", 300, 224), ("timm:vit_small_patch14_dinov2", 28, 98),
    ("timm:test_vit", 28, 96), ("timm:resnet50", 300, 224), ("timm:hiera_tiny_224", 28, 96),
    ("torchvision:vit_b_16", 28, 96), ("torchvision:maxvit_t", 28, 224)])
def test_the_default_size_is_one_that_the_model_reads(backbone: str, native: int, size: int) -> None:
    assert choose_spec(backbone, native, False).size == size


@pytest.mark.parametrize(("backbone", "options", "message"), [
    ("timm:test_vit", {"size": 100}, r"does not read images of 100 pixels: .*100.* divisible by patch size \(16\). Set "
                                     "the image size to 96 or 112 or 160."),
    ("timm:test_vit", {"pooling": "rmac"}, r"which R-MAC reads at \(\d+, \d+, \d+\): .* Choose pooling 'mean'"),
    ("torchvision:vit_b_16", {"size": 40}, "does not read images of 40 pixels: .* Set the image size to 32 or 48"),
    ("timm:test_vi", {}, "'timm:test_vi' is unknown. Similar names: test_vit"),
    ("timm:test_vit.none", {}, r"'timm:test_vit.none' could not be loaded: Invalid pretrained tag .*Correct the name"),
    ("torchvision:fcn_resnet50", {}, "'torchvision:fcn_resnet50' is unknown"),
])
def test_an_impossible_size_and_an_unknown_model_are_rejected_before_loading(
        backbone: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        choose_spec(backbone, 28, False, **options)


def test_a_size_that_only_the_loaded_network_refuses_is_a_user_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timm_models, "read_weights", lambda _file: timm.create_model("test_vit").state_dict())
    with pytest.raises(UserError, match=r"'timm:test_vit' does not read images of 40 pixels: .*Change the image size"):
        Encoder(EncoderSpec(backbone="timm:test_vit", size=40, weights=FILE))


@pytest.mark.slow
@pytest.mark.parametrize(("library", "model"), [(timm_models, "test_vit"), (timm_models, "test_resnet"),
                                                (timm_models, "swin_tiny_patch4_window7_224"),
                                                (torchvision_models, "swin_t"), (torchvision_models, "resnet18")])
def test_rmac_reads_the_last_feature_maps_in_their_places(
        library: Any, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The maps of the left and of the right half of an image differ from blank maps on their own sides only."""
    torch.manual_seed(0)
    network = library.outline(model, 128).eval()
    monkeypatch.setattr(library, "read_weights", lambda _file: network.state_dict())
    body = library.build(f"x:{model}", 128, "rmac", FILE)
    blank = torch.zeros(1, 3, 128, 128)
    left = blank.clone()
    left[..., :32] = torch.randn(3, 128, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        change = (body.network(left) - body.network(blank)).abs()
    width = 64 if model == "test_vit" else change.shape[1]
    assert change.shape[:2] == (1, width)
    assert change.shape[2] == change.shape[3] >= 4
    columns = change.mean((0, 1, 2))
    assert columns[0] > 1.2 * columns[-1]


@pytest.mark.slow
@pytest.mark.parametrize("model", ["vit_small_patch16_dinov3", "swin_tiny_patch4_window7_224"])
def test_a_model_that_has_encoded_images_can_be_trained(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a network keeps between batches must not have been made without gradients."""
    monkeypatch.setattr(timm_models, "read_weights", lambda _file: timm_models.outline(model, 64).state_dict())
    encoder = Encoder(EncoderSpec(backbone=f"timm:{model}", size=64, weights=FILE))
    features_of_images(encoder)
    encoder.train()(torch.zeros(2, 3, 64, 64)).sum().backward()
    assert all(weight.grad is not None for weight in encoder.parameters())


def test_a_downloaded_timm_model_equals_timms_own(monkeypatch: pytest.MonkeyPatch) -> None:
    state = timm.create_model("test_vit").state_dict()
    monkeypatch.setattr("timm.models._builder.load_state_dict_from_hf", lambda *_arguments, **_options: dict(state))
    library: Any = timm.create_model("test_vit", pretrained=True, num_classes=0).eval()
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(library))
    encoder = Encoder(EncoderSpec(backbone="timm:test_vit", size=160))
    check_equal(features_of_images(encoder), own_features(library, transform, library))


def test_images_prepared_for_two_libraries_are_stored_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path))
    monkeypatch.setattr(timm_models, "read_weights", lambda _file: timm.create_model("test_vit").state_dict())
    digits = catalog.load("digits")
    assert isinstance(digits.images, ArrayImages)
    few = replace(digits, images=ArrayImages(digits.images.pixels[:3]), names=digits.names[:3], labels=None)
    encoders = [Encoder(EncoderSpec(backbone="cnn", size=32)),
                Encoder(EncoderSpec(backbone="timm:test_vit", size=32, weights=FILE))]
    first, second = (pixels_of(few, encoder) for encoder in encoders)
    np.testing.assert_array_equal(second[0], encoders[1].prepare(few.images[0])[:1])
    assert not np.array_equal(first, second)
