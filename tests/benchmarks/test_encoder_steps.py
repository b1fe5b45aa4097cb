"""An epoch that trains the encoder costs at most 1.25 times the bare passes that its algorithm needs.

Passes are logged during the second epoch, because the first one contains the preparation. They are compared with the
number that the algorithm needs, and repeated without the method.
Processor time does not depend on the load of the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from udml_core.backbones import Encoder, choose_spec
from udml_core.data import catalog
from udml_core.data.features import features_of, pixels_of
from udml_core.data.training import TrainingData
from udml_core.methods import Setting, find_method
from udml_core.sampling import generator

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(1800)]

IMAGES, BATCH, LIMIT = 200, 100, 1.25
Pass = tuple[int, bool]
"""Number of images of a pass, and whether it has a backward pass."""
FIELDS: dict[str, dict[str, Any]] = {
    "plm": {"trains": "all", "batch": BATCH},
    "srpml": {"batch": BATCH, "n_neighbors": 20, "epsilon": 0.5},
    "ssdml": {"trains": "all", "batch": BATCH, "n_neighbors": 2, "partition": 0},
    "pslr": {"trains": "all", "batch": BATCH}}
NEEDED: dict[str, Callable[[list[int]], bool]] = {
    # Student and teacher read two views of every image, and the neighbors need every image once.
    "plm": lambda counts: counts == [2 * IMAGES, 3 * IMAGES],
    "srpml": lambda counts: counts[0] <= 2 * IMAGES and counts[1] == 0,
    # A triplet has three images, and the graph of a partition is kept for ten epochs.
    "ssdml": lambda counts: counts[0] <= 3 * IMAGES and counts[1] == 0,
    # The uncertainties that an epoch stores need every image once.
    "pslr": lambda counts: counts == [2 * IMAGES, IMAGES]}


def first_images() -> tuple[TrainingData, Setting]:
    """Return photographs of clothes at 96 pixels, a tenth of them labeled, and EfficientNet-Lite0."""
    dataset = catalog.load("fashion-mini")
    encoder = Encoder(choose_spec("efficientnet-lite0", dataset.native_size, dataset.gray))
    rows = torch.from_numpy(np.array(features_of(dataset, encoder)[:IMAGES]))
    assert dataset.labels is not None
    labels = torch.from_numpy(dataset.labels[:IMAGES].copy())
    labels[torch.randperm(IMAGES, generator=generator(0, 0))[IMAGES // 5:]] = -1
    pixels = np.array(pixels_of(dataset, encoder)[:IMAGES])
    return TrainingData(rows, pixels, given_labels=labels), Setting(0, torch.device("cpu"), encoder)


def repeat(passes: list[Pass], data: TrainingData, encoder: Encoder) -> None:
    """Take the same passes of the encoder without a method."""
    for count, backward in passes:
        with torch.set_grad_enabled(backward):
            features = encoder(data.images(torch.arange(count) % IMAGES))
            if backward:
                encoder.zero_grad(set_to_none=True)
                features.sum().backward()


@pytest.mark.parametrize("name", FIELDS)
def test_an_epoch_costs_little_more_than_the_passes_it_needs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data, setting = first_images()
    passes: list[Pass] = []
    forward = Encoder.forward

    def logged(encoder: Encoder, images: Tensor) -> Tensor:
        passes.append((len(images), torch.is_grad_enabled()))
        return forward(encoder, images)

    method = find_method(name).make({"epochs": 2, "dimension": 64, "learning_rate": 1e-5} | FIELDS[name])
    repeat([(BATCH, True)], data, setting.encoder)  # the first pass is slower
    monkeypatch.setattr(Encoder, "forward", logged)
    epochs = method.fit(data, setting)
    next(epochs)
    passes.clear()
    began = process_time()
    next(epochs)
    spent = process_time() - began
    monkeypatch.setattr(Encoder, "forward", forward)
    began = process_time()
    repeat(passes, data, setting.encoder)
    bare = process_time() - began
    counts = [sum(count for count, trains in passes if trains == backward) for backward in (True, False)]
    print(f"{name}: {spent:.1f} s, bare {bare:.1f} s, ratio {spent / bare:.2f}, images {counts}")
    assert NEEDED[name](counts), counts
    assert spent <= LIMIT * bare
