"""PSLR's training of the encoder equals its equations, step by step."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.methods.golden_instance import (
    BATCH,
    FIELDS,
    SEED,
    WIDTH,
    Model,
    adaptable_softmax,
    all_images,
    assert_same_training,
    double_precision,
    literal_epochs,
    small_images,
)
from udml_core.methods import PSLR
from udml_core.sampling import generator

TAU, ETA, LAMBDA, FIRST_LOG_SIGMA = 0.3, 4.0, 0.7, -3.0


def add_latent_layers(model: Model) -> None:
    """Add W, the decoder and the layer of log σ.

    W and the decoder start uniform within ±1/√l; log σ starts constant.
    """
    random = generator(SEED, 0)
    layer, decoder = ((2 * torch.rand(WIDTH, WIDTH, generator=random) - 1) / math.sqrt(WIDTH) for _ in range(2))
    model.parameters |= {
        "objective.layer": layer,
        "objective.log_sigma.weight": torch.zeros(WIDTH, WIDTH),
        "objective.log_sigma.bias": torch.full((WIDTH,), FIRST_LOG_SIGMA),
        "objective.decoder.weight": decoder,
        "objective.decoder.bias": torch.zeros(WIDTH)}


def huber(difference: Tensor) -> Tensor:
    """Compute h(t) = ½t² if |t| < 1, else |t| − ½."""
    return torch.where(difference.abs() < 1, difference**2 / 2, difference.abs() - 0.5)


@pytest.mark.parametrize("change", [
    {"batch_norm": "batch"}, {"batch_norm": "frozen"}, {"batch_norm": "statistics"},
    {"batch_norm": "batch", "fixed_target": True}, {"batch_norm": "batch", "one_sided": True},
    {"batch_norm": "batch", "structure_edges": "views"}], ids=str)
@double_precision()
def test_training_equals_the_literal_loop(change: dict[str, Any]) -> None:
    data, setting = small_images()
    method = PSLR(**FIELDS | {"temperature": TAU, "eta": ETA, "weight": LAMBDA} | change)
    model = Model.begin(method, data, setting)
    add_latent_layers(model)
    edges = [(row, row) for row in range(2 * BATCH)]  # eq. 11 with A = I
    if method.structure_edges == "views":
        edges += [(row, (row + BATCH) % (2 * BATCH)) for row in range(2 * BATCH)]

    def loss(x: Tensor, batch: Tensor, random: torch.Generator) -> Tensor:
        rows, layers = len(x), model.parameters
        z = (x @ layers["objective.layer"]).clamp_min(0)  # eq. 2 with A = I
        z = z / z.norm(dim=1, keepdim=True).clamp_min(1e-6)
        log_sigma = x @ layers["objective.log_sigma.weight"].mT + layers["objective.log_sigma.bias"]
        noisy = z + log_sigma.exp() * torch.randn(rows, WIDTH, generator=random)  # eq. 6
        decoded = noisy @ layers["objective.decoder.weight"].mT + layers["objective.decoder.bias"]
        softmax = adaptable_softmax(z, z.detach() if method.one_sided else z, TAU, ETA)
        reconstruction = huber((x.detach() if method.fixed_target else x) - decoded).sum() / rows
        structure = sum((1 - torch.sigmoid(noisy[i] @ noisy[j])) ** 2 for i, j in edges) / len(edges)
        divergence = -(1 + 2 * log_sigma - z**2 - log_sigma.exp() ** 2).sum() / (2 * rows)
        return softmax + reconstruction + LAMBDA * structure + LAMBDA * divergence  # eq. 13

    literal = literal_epochs(model, all_images(data), loss, views=2, by_batch=method.batch_norm == "batch")
    assert_same_training(method, data, setting, model, literal)
