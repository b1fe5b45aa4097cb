"""Costs of a training step of PSLR, ISIF and NCE.

The costs are relative to the encoder alone and to the input pipeline.

    python -m experiments.instance_costs --backbone resnet18-small --size 32 --batch 128 \\
        --out assets/results/instance-costs.json

`step` draws the views and runs the encoder, the loss, the backward pass and SGD. `bare` runs the encoder's forward and
backward pass on as many prepared views, with the same precision and normalization. `input` only reads images and draws
views. Input and step are also compared in views per second.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from experiments.recording import provenance, record_parser, write_record
from tests.benchmarks.measure import medians
from udml_core.data.encoders import Encoder, EncoderSpec
from udml_core.data.training_data import training_data
from udml_core.methods import Setting, find_method
from udml_core.methods.shared.instance import InstanceLoop, InstanceMethod
from udml_core.methods.shared.training import random_views
from udml_core.numerics.sampling import generator

FIELDS: dict[str, Any] = {"trains": "all", "batch_norm": "batch", "colors": True, "beginning": "random",
                          "learning_rate": 1e-4}
METHODS: dict[str, dict[str, Any]] = {"pslr": {"eta": 100.0}, "isif": {}, "nce": {}}


def costs(name: str, backbone: str, size: int, batch: int, device: str, repetitions: int = 5) -> dict[str, float]:
    """Measure the costs of a step and of its parts.

    The costs are the median seconds of a step and of the bare encoder, and the views per second of input and step.
    """
    encoder = Encoder(EncoderSpec(backbone=backbone, size=size)).to(device)
    images = 4 * batch
    pixels = torch.randint(0, 256, (images, 3, size, size), dtype=torch.uint8, generator=generator(0, 0)).numpy()
    features = torch.rand(images, encoder.dimension, generator=generator(0, 1)).numpy()
    method = find_method(name).make(FIELDS | METHODS[name] | {"batch": batch})
    assert isinstance(method, InstanceMethod)
    data = training_data(features, None, torch.arange(images).numpy(), "none", pixels)
    training = InstanceLoop(method, data, Setting(0, torch.device(device), encoder), None)
    training.network.train()
    random, rows = generator(0, 2), torch.arange(batch)
    read = training._read(rows).to(device)
    prepared = draw_views(training, read, random)

    def synchronized(call: Callable[[], Any]) -> Callable[[], None]:
        def measured() -> None:
            call()
            if device != "cpu":
                torch.cuda.synchronize()
        return measured

    def bare() -> None:
        assert training.network.encoder is not None
        training.network.zero_grad(set_to_none=True)
        with torch.autocast(prepared.device.type, torch.bfloat16, enabled=prepared.is_cuda):
            out = training.network.encoder(prepared)
        out.float().sum().backward()

    calls = {"step": lambda: training._step(rows, read, random), "bare": bare,
             "input": lambda: draw_views(training, training._read(rows).to(device), random)}
    for call in calls.values():
        call()
    seconds = medians(repetitions, **{key: synchronized(call) for key, call in calls.items()})
    return {"step_seconds": seconds["step"], "bare_seconds": seconds["bare"],
            "ratio": seconds["step"] / seconds["bare"], "delivered_per_second": len(prepared) / seconds["input"],
            "taken_per_second": len(prepared) / seconds["step"]}


def draw_views(training: InstanceLoop, read: Tensor, random: torch.Generator) -> Tensor:
    return random_views(read, training.method.views, random, training.method.augmentation)


def main() -> None:
    parser = record_parser(__doc__)
    parser.add_argument("--backbone", default="resnet18-small")
    parser.add_argument("--size", type=int, default=32, help="image size in pixels")
    parser.add_argument("--batch", type=int, default=128, help="images in a batch")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    rows = {}
    for name in METHODS:
        rows[find_method(name).card.title] = costs(name, options.backbone, options.size, options.batch, options.device)
        print(name, json.dumps(rows[find_method(name).card.title]), flush=True)
    title = f"Batches of {options.batch} images of {options.size} pixels, {options.backbone}"
    record = provenance("instance_costs") | {
        "protocol": "medians of 5; views per second; a step uses two views of each image (NCE one)",
        "datasets": {title: {"rows": rows}}}
    write_record(options.out, record)


if __name__ == "__main__":
    main()
