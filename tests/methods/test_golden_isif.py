"""ISIF's training of the encoder equals its formula, step by step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.methods.golden_instance import (
    FIELDS,
    Model,
    adaptable_softmax,
    all_images,
    assert_same_training,
    double_precision,
    literal_epochs,
    small_images,
)
from tests.tiers import fast_first
from udml_core.methods.isif import ISIF

TAU, ETA = 0.3, 4.0


def printed(rows: Tensor, compared: Tensor, tau: float, eta: float) -> Tensor:
    """Compute the mean loss over second views x̂_i (PSLR eq. 3–5).

    The loss is −log P(i|x̂_i) − η Σ_{j≠i} log(1 − P(j|x̂_i)).
    """
    half = len(rows) // 2
    total = torch.zeros(())
    for i in range(half):
        similar = [torch.exp(compared[k] @ rows[half + i] / tau) for k in range(half)]
        rest = [similar[k] for k in range(half) if k != i]
        denominator = similar[i] + eta * sum(rest)
        total = total + torch.log(similar[i] / denominator)
        total = total + eta * sum(torch.log(1 - value / denominator) for value in rest)
    return -total / half


@pytest.mark.parametrize("change", fast_first([
    {"batch_norm": "batch"}, {"batch_norm": "frozen"}, {"batch_norm": "statistics"},
    {"batch_norm": "batch", "parts": 3}, {"batch_norm": "batch", "one_sided": True},
    {"batch_norm": "batch", "form": "printed"}]), ids=str)
@double_precision()
def test_training_equals_the_literal_loop(change: dict[str, Any]) -> None:
    data, setting = small_images()
    method = ISIF(**FIELDS | {"temperature": TAU, "eta": ETA} | change)
    model = Model.begin(method, data, setting)
    formula = printed if method.form == "printed" else adaptable_softmax

    def loss(rows: Tensor, batch: Tensor, random: torch.Generator) -> Tensor:
        return formula(rows, rows.detach() if method.one_sided else rows, TAU, ETA)

    literal = literal_epochs(model, all_images(data), loss, views=2, by_batch=method.batch_norm == "batch",
                             parts=method.parts)
    assert_same_training(method, data, setting, model, literal)


@pytest.mark.parametrize("batch_norm", ["frozen", "statistics"])
@double_precision()
def test_training_of_the_last_blocks_on_kept_activations_equals_the_literal_loop(batch_norm: str) -> None:
    """The literal loop passes the views through the whole network and changes only its last convolution."""
    data, setting = small_images()
    others = torch.rand(len(data), 2, 3, 16, 16, generator=torch.Generator().manual_seed(4)) * 255
    kept = torch.cat([all_images(data)[:, None], others], dim=1)
    with torch.no_grad():
        activations = setting.encoder.early(kept.flatten(0, 1)).unflatten(0, (len(data), 3))
    method = ISIF(**FIELDS | {"temperature": TAU, "eta": ETA, "trains": "last", "kept_views": 3,
                              "batch_norm": batch_norm})
    data = replace(data, activations=activations.numpy())
    model = Model.begin(method, data, setting)
    literal = literal_epochs(model, all_images(data), lambda rows, _batch, _random: adaptable_softmax(
        rows, rows, TAU, ETA), views=2, by_batch=False, kept=kept)
    assert_same_training(method, data, setting, model, literal)
    late = 4 if batch_norm == "statistics" else 2  # the head and a convolution, or also γ and β
    assert len(model.parameters) == late
