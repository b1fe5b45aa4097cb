"""Barlow Twins trains the encoder and the projection head by its formulas, step by step."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.methods.golden_instance import (
    FIELDS,
    SEED,
    WIDTH,
    Model,
    all_images,
    assert_same_training,
    double_precision,
    literal_epochs,
    small_images,
)
from udml_core.data.augmentation import CROPS, DISTORTIONS
from udml_core.methods.barlow_twins import BarlowTwins
from udml_core.numerics.sampling import generator

LAMBDA, HIDDEN, PROJECTED = 0.02, 9, 7
HEAD = FIELDS | {"redundancy": LAMBDA, "hidden": HIDDEN, "projected": PROJECTED}


def normalize(x: Tensor) -> Tensor:
    """Compute (x − mean)/√(variance + 1e-5) of each column."""
    mean = x.sum(0) / len(x)
    return (x - mean) / torch.sqrt(((x - mean) ** 2).sum(0) / len(x) + 1e-5)


def project(parts: dict[str, Tensor], x: Tensor) -> Tensor:
    """Compute three layers; the first two have batch normalization and ReLU."""
    for layer, name in enumerate(("first", "second")):
        x = torch.clamp(normalize(x @ parts[name]) * parts["scales"][layer] + parts["shifts"][layer], min=0)
    return x @ parts["third"]


def redundancy(first: Tensor, second: Tensor) -> Tensor:
    """Compute eq. 1 entry by entry, divided by the dimension."""
    a, b = normalize(first), normalize(second)
    total = torch.zeros(())
    for i in range(PROJECTED):
        for j in range(PROJECTED):
            c = (a[:, i] * b[:, j]).sum() / len(a)
            total = total + ((1 - c) ** 2 if i == j else LAMBDA * c**2)
    return total / PROJECTED


@pytest.mark.parametrize("change", [{"batch_norm": "batch"}, {"batch_norm": "frozen"},
                                    {"batch_norm": "statistics", "parts": 2}], ids=str)
@double_precision()
def test_barlow_twins_equals_the_literal_loop(change: dict[str, Any]) -> None:
    method = BarlowTwins(**HEAD | change)
    data, setting = small_images()
    model, random = Model.begin(method, data, setting), generator(SEED, 0)
    for name, inputs, outputs in (("first", WIDTH, HIDDEN), ("second", HIDDEN, HIDDEN), ("third", HIDDEN, PROJECTED)):
        weight = (2 * torch.rand(inputs, outputs, generator=random) - 1) / inputs**0.5
        model.parameters[f"objective.projector.{name}"] = weight
    model.parameters["objective.projector.scales"] = torch.ones(2, HIDDEN)
    model.parameters["objective.projector.shifts"] = torch.zeros(2, HIDDEN)

    def loss(rows: Tensor, batch: Tensor, random: torch.Generator) -> Tensor:
        parts = {name.removeprefix("objective.projector."): value for name, value in model.parameters.items()}
        return redundancy(*(project(parts, view) for view in (rows[: len(batch)], rows[len(batch) :])))

    literal = literal_epochs(model, all_images(data), loss, views=2, by_batch=method.batch_norm == "batch",
                             parts=method.parts)
    assert_same_training(method, data, setting, model, literal)


def test_colors_choose_the_augmentation() -> None:
    assert BarlowTwins.make({"colors": True}).augmentation == DISTORTIONS
    assert BarlowTwins.make({}).augmentation == CROPS
