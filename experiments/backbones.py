"""Features of twelve models of timm and torchvision, compared with the libraries' own, and images a second.

    python -m experiments.backbones --out assets/results/backbones.json

The weights are random and read from a file as `--weights` reads it, so nothing is downloaded. Each model reads images
of the size that the app chooses for photographs. The command needs pytest, because it prepares the libraries' models as
the tests do.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

import tests.conftest  # isort: skip  # noqa: F401  (declares what torchvision for CUDA lacks on a CPU)
import numpy as np
import timm
import torch
import torchvision
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor, nn
from torchvision import models
from torchvision.models._api import WeightsEnum

from experiments.recording import provenance, record_parser, write_record
from tests.data.encoders.test_hub import own_torchvision, random_image, randomize
from udml_core.base.arrays import Array
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.inference import embed_pixels

MODELS = {
    "ResNet-50": "timm:resnet50", "ConvNeXt-Tiny": "timm:convnext_tiny",
    "Swin-Tiny": "timm:swin_tiny_patch4_window7_224", "ViT-Small": "timm:vit_small_patch16_224",
    "DINOv2 ViT-Small": "timm:vit_small_patch14_dinov2", "DINOv3 ViT-Small": "timm:vit_small_patch16_dinov3",
    "SigLIP ViT-Base": "timm:vit_base_patch16_siglip_224", "CLIP ViT-Base": "timm:vit_base_patch16_clip_224",
    "EVA-02-Tiny": "timm:eva02_tiny_patch14_224", "MobileNetV4 small": "timm:mobilenetv4_conv_small",
    "GoogLeNet": "torchvision:googlenet", "VGG-16, fc7": "torchvision:vgg16"}
PHOTOGRAPH = 300
"""Shorter side of the images in pixels."""


def library_features(name: str, size: int, images: list[Image.Image], file: Path) -> Array:
    """Write random weights to a file, and return the features (n, d) that the library computes with them."""
    library, _, model = name.partition(":")
    own, transform = (own_timm if library == "timm" else randomized_torchvision)(model, size, file)
    inputs: list[Tensor] = []
    if library == "torchvision":
        last = [part for part in own.modules() if isinstance(part, nn.Linear)][-1]
        last.register_forward_pre_hook(lambda _module, arguments: inputs.append(arguments[0]))
    with torch.inference_mode():
        batch = torch.stack([transform(image) for image in images])
        if library == "timm":
            inputs.append(own.forward_head(own.forward_features(batch), pre_logits=True))
        else:
            own(batch)
    return inputs[0].numpy()


def own_timm(model: str, size: int, file: Path):  # type: ignore[no-untyped-def]
    """Return timm's model for images of a size and its preprocessing."""
    options = {"dynamic_img_size": True} if "_patch" in model else {}
    own = randomize(timm.create_model(model, **options), size)
    save_file({name: value.clone() for name, value in own.state_dict().items()}, file)
    config = timm.data.resolve_model_data_config(own)
    if options and not model.startswith("swin"):
        own.set_input_size(img_size=size)
    return own, timm.data.create_transform(**config | {"input_size": (3, size, size)})


def randomized_torchvision(model: str, size: int, file: Path):  # type: ignore[no-untyped-def]
    """Return torchvision's model and its preprocessing, with random weights in place of its download."""
    options = {"aux_logits": True, "init_weights": False} if model == "googlenet" else {}
    state = dict(randomize(models.get_model(model, weights=None, **options), size).state_dict())
    save_file({name: value.clone() for name, value in state.items()}, file)
    with patch.object(WeightsEnum, "get_state_dict", lambda *_arguments, **_options: dict(state)):
        return own_torchvision(model, size)


def measure(name: str, images: list[Image.Image], root: Path) -> dict[str, float]:
    """Compare the features of a model, and measure the images a second of one batch, after another as a warm-up."""
    file = root / "weights.safetensors"
    size = choose_spec(name, PHOTOGRAPH, False).size
    expected = library_features(name, size, images, file)
    encoder = Encoder(choose_spec(name, PHOTOGRAPH, False, weights=str(file)))
    batch = np.stack([encoder.prepare(image) for image in images])
    embed_pixels(encoder, batch[:1])
    passed, used = time.monotonic(), time.process_time()
    features = embed_pixels(encoder, batch)
    passed, used = time.monotonic() - passed, time.process_time() - used
    cosines = (features * expected).sum(1) / np.linalg.norm(features, axis=1) / np.linalg.norm(expected, axis=1)
    error = np.linalg.norm(features - expected, axis=1).max() / np.linalg.norm(expected[0] - expected[1])
    return {"image size": float(size), "dimensions": float(encoder.dimension),
            "smallest cosine": round(float(cosines.min()), 7),
            "largest error, % of two images' distance": round(100 * float(error), 4),
            "images a second of the processor": round(len(images) / used, 2),
            "images a second passed": round(len(images) / passed, 2)}


def main() -> None:
    parser = record_parser(__doc__)
    parser.add_argument("--images", type=int, default=8, help="images of each model, one batch")
    options = parser.parse_args()
    torch.set_num_threads(1)
    images = [random_image(seed) for seed in range(options.images)]
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["UDML_CACHE"] = str(Path(folder) / "cache")
        for title, name in MODELS.items():
            rows[f"{title} ({name})"] = measure(name, images, Path(folder))
            print(title, json.dumps(rows[f"{title} ({name})"]), flush=True)
    record = provenance("backbones")
    record["versions"] |= {"timm": timm.__version__, "torchvision": torchvision.__version__}
    record |= {"protocol": f"random weights, one batch of {options.images} images, one thread",
               "load": round(os.getloadavg()[0], 1),
               "datasets": {"Features compared with the library's own, on random images": {"rows": rows}}}
    write_record(options.out, record)


if __name__ == "__main__":
    main()
