"""NCE and NPSoftmax train the encoder by their formulas, step by step."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from tests.methods.golden_instance import (
    BATCH,
    FIELDS,
    IMAGES,
    Model,
    all_images,
    assert_same_training,
    double_precision,
    literal_epochs,
    small_images,
    unit,
)
from udml_core.methods.nce import NCE

TAU, NOISE, MEMORY, NORMALIZER = 0.3, 7, 0.8, 0.6


@pytest.mark.parametrize("batch_norm", ["batch", "frozen", "statistics"])
@pytest.mark.parametrize("softmax", ["nce", "full"])
@double_precision()
def test_training_equals_the_literal_loop(softmax: str, batch_norm: str) -> None:
    assert_equals_the_literal_loop(softmax, batch_norm, NORMALIZER)


@pytest.mark.parametrize("kept", [0.0, 1.0])
@double_precision()
def test_the_normalizer_can_be_that_of_each_batch_or_of_the_first(kept: float) -> None:
    assert_equals_the_literal_loop("nce", "batch", kept)


def assert_equals_the_literal_loop(softmax: str, batch_norm: str, kept: float) -> None:
    data, setting = small_images()
    method = NCE.make(FIELDS | {"temperature": TAU, "noise": NOISE, "memory": MEMORY, "softmax": softmax,
                                "batch_norm": batch_norm, "normalizer_memory": kept})
    model, images = Model.begin(method, data, setting), all_images(data)
    bank = model.embed(images, by_batch=False)
    z = torch.tensor(math.inf)

    def contrast_with_noise(x: Tensor, batch: Tensor, random: torch.Generator) -> Tensor:
        """Compute NCE's mean loss over the batch.

        The loss is −log h(i) − Σ_noise log(1 − h(j)) with h = p/(p + q/n).
        """
        nonlocal z
        noise = torch.randint(IMAGES, (NOISE,), generator=random)
        own = torch.exp((bank[batch] * x).sum(1) / TAU)
        others = torch.exp(x @ bank[noise].mT / TAU)
        of_batch = IMAGES * (own.sum() + others.sum()).detach() / (BATCH * (1 + NOISE))
        # Z = n · mean over the first batch; then log Z is a running mean.
        z = of_batch if z.isinf() else z**kept * of_batch ** (1 - kept)
        share = NOISE / IMAGES
        own_h, other_h = own / z / (own / z + share), others / z / (others / z + share)
        return -(torch.log(own_h).sum() + torch.log(1 - other_h).sum()) / BATCH

    def whole_softmax(x: Tensor, batch: Tensor, random: torch.Generator) -> Tensor:
        """Compute the mean over the batch of −log(e^{v_iᵀf/τ} / Σ_j e^{v_jᵀf/τ})."""
        similar = torch.exp(x @ bank.mT / TAU)
        return -torch.log(similar[range(BATCH), batch] / similar.sum(1)).sum() / BATCH

    def remember(x: Tensor, batch: Tensor) -> None:
        for row, image in zip(x, batch.tolist(), strict=True):
            bank[image] = unit((MEMORY * bank[image] + (1 - MEMORY) * row)[None])[0]

    literal = literal_epochs(model, images, contrast_with_noise if softmax == "nce" else whole_softmax, views=1,
                             by_batch=batch_norm == "batch", remember=remember)
    assert_same_training(method, data, setting, model, literal,
                         lambda: {"objective.bank": bank, "objective.log_z": z.log()})
