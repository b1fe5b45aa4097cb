"""Costs of an epoch that trains the whole encoder.

The costs are relative to the bare passes that the algorithm needs.

    python -m experiments.encoder_costs --out assets/results/encoder-costs.json

The passes of the encoder are logged during the second epoch, because the first one contains the preparation, and then
repeated without the method, in the same process. Processor time does not depend on the load of the machine. The data
are 200 photographs of clothes at 96 pixels, a fifth of them labeled, and EfficientNet-Lite0; batches have 100 images.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from time import process_time
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor

from experiments.recording import provenance, record_parser, write_record
from udml_core.data import catalog
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.features import features_of, pixels_of
from udml_core.data.training_data import TrainingData
from udml_core.methods import Setting, find_method
from udml_core.numerics.sampling import generator

IMAGES, BATCH = 200, 100
FIELDS: dict[str, dict[str, Any]] = {
    "plm": {"trains": "all"}, "srpml": {"n_neighbors": 20, "epsilon": 0.5},
    "ssdml": {"trains": "all", "n_neighbors": 2, "partition": 0}, "pslr": {"trains": "all"},
    "isif": {"trains": "all"}, "nce": {"trains": "all"}, "triplet": {"trains": "all", "per_anchor": 5}}
Pass = tuple[int, bool]
"""Number of images of a pass, and whether it has a backward pass."""


def first_images() -> tuple[TrainingData, Setting]:
    """Return photographs of clothes, a fifth of them labeled, and EfficientNet-Lite0."""
    dataset = catalog.load("fashion-mini")
    encoder = Encoder(choose_spec("efficientnet-lite0", dataset.native_size, dataset.gray))
    rows = torch.from_numpy(np.array(features_of(dataset, encoder)[:IMAGES]))
    assert dataset.labels is not None
    labels = torch.from_numpy(dataset.labels[:IMAGES].copy())
    labels[torch.randperm(IMAGES, generator=generator(0, 0))[IMAGES // 5:]] = -1
    pixels = np.array(pixels_of(dataset, encoder)[:IMAGES])
    return TrainingData(rows, pixels, given_labels=labels), Setting(0, torch.device("cpu"), encoder)


def costs(name: str) -> dict[str, float]:
    """Measure the second epoch of a method.

    Returns:
        Processor seconds of the epoch and of the bare passes, their ratio, and the number of images with a backward
        pass and without.
    """
    data, setting = first_images()
    common = {"epochs": 2, "batch": BATCH, "dimension": 64, "learning_rate": 1e-5}
    method = find_method(name).make(common | FIELDS[name])
    repeat([(BATCH, True)], data, setting.encoder)  # the first pass is slower
    with logged_passes() as passes:
        epochs = method.fit(data, setting)
        next(epochs)
        passes.clear()
        began = process_time()
        next(epochs)
        spent = process_time() - began
    began = process_time()
    repeat(passes, data, setting.encoder)
    bare = process_time() - began
    trained, read = (sum(count for count, trains in passes if trains == backward) for backward in (True, False))
    return {"ratio": spent / bare, "seconds of the epoch": spent, "seconds of the bare passes": bare,
            "images trained": trained, "images read": read}


@contextmanager
def logged_passes() -> Iterator[list[Pass]]:
    """Log every pass of an encoder."""
    passes: list[Pass] = []
    forward = Encoder.forward

    def logged(encoder: Encoder, images: Tensor) -> Tensor:
        passes.append((len(images), torch.is_grad_enabled()))
        return forward(encoder, images)

    with mock.patch.object(Encoder, "forward", logged):
        yield passes


def repeat(passes: list[Pass], data: TrainingData, encoder: Encoder) -> None:
    """Take the same passes of the encoder without a method."""
    for count, backward in passes:
        with torch.set_grad_enabled(backward):
            features = encoder(data.images(torch.arange(count) % IMAGES))
            if backward:
                encoder.zero_grad(set_to_none=True)
                features.sum().backward()


def main() -> None:
    parser = record_parser(__doc__)
    options = parser.parse_args()
    rows = {}
    for name in FIELDS:
        title = find_method(name).card.title
        rows[title] = costs(name)
        print(title, json.dumps(rows[title]), flush=True)
    record = provenance("encoder_costs") | {
        "protocol": f"processor time of the second epoch of {IMAGES} images in batches of {BATCH}, relative to the "
                    "same passes of the encoder without the method",
        "datasets": {"EfficientNet-Lite0 at 96 pixels, all blocks": {"rows": rows}}}
    write_record(options.out, record)


if __name__ == "__main__":
    main()
