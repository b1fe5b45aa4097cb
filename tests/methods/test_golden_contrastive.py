"""SimCLR and SupCon train the encoder and the projection head by their formulas, step by step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.methods.golden_instance import (
    FIELDS,
    IMAGES,
    SEED,
    WIDTH,
    Model,
    all_images,
    assert_same_training,
    double_precision,
    literal_epochs,
    small_images,
    unit,
)
from udml_core.data.augmentation import CROPS, DISTORTIONS
from udml_core.data.training_data import TrainingData
from udml_core.methods import Setting
from udml_core.methods.shared.instance import InstanceMethod
from udml_core.methods.simclr import SimCLR
from udml_core.methods.supcon import SupCon
from udml_core.numerics.sampling import generator

TAU, HIDDEN, PROJECTED = 0.3, 9, 4
CLASSES = torch.tensor([0, -1, 1, -1, 2, -1, 0, 1, -1, -1, 0, 1])
"""The labels of the images; five have none, so that one of two batches has at least two of these."""
HEAD = FIELDS | {"temperature": TAU, "hidden": HIDDEN, "projected": PROJECTED}


def begin(method: SimCLR | SupCon, data: TrainingData, setting: Setting) -> Model:
    """Copy the encoder and the head, and draw the weights of g within ±1/√(inputs)."""
    model, random = Model.begin(method, data, setting), generator(SEED, 0)
    if method.projection == "mlp":
        model.parameters["objective.projector.hidden"] = (2 * torch.rand(WIDTH, HIDDEN, generator=random) - 1
                                                          ) / WIDTH**0.5
    if method.projection != "none":
        inputs = HIDDEN if method.projection == "mlp" else WIDTH
        model.parameters["objective.projector.projection"] = (2 * torch.rand(inputs, PROJECTED, generator=random) - 1
                                                              ) / inputs**0.5
    return model


def project(model: Model, x: Tensor) -> Tensor:
    """Compute z = unit(W2·ReLU(W1·x)) with the layers that the model has."""
    hidden, projection = (model.parameters.get(f"objective.projector.{name}") for name in ("hidden", "projection"))
    if hidden is not None:
        x = torch.clamp(x @ hidden, min=0)
    return x if projection is None else unit(x @ projection)


def contrast(z: Tensor, labels: list[int], form: str) -> Tensor:
    """Compute the mean over views of eq. 2 or eq. 3 of SupCon."""
    total, views = torch.zeros(()), range(len(z))
    for i in views:
        similar = {a: torch.exp(z[i] @ z[a] / TAU) for a in views if a != i}
        whole = sum(similar.values())
        shares = [similar[p] / whole for p in similar if labels[p] == labels[i]]
        total = total + (sum(map(torch.log, shares)) / len(shares) if form == "out" else
                         torch.log(sum(shares) / len(shares)))
    return -total / len(z)


def check(method: SimCLR | SupCon, data: TrainingData, setting: Setting, classes: Tensor,
          kept: Tensor | None = None) -> None:
    """Compare all epochs with the literal loop, in which two views are positives if their `classes` are equal."""
    model = begin(method, data, setting)

    def loss(rows: Tensor, batch: Tensor, random: torch.Generator) -> Tensor:
        return contrast(project(model, rows), classes[batch].repeat(2).tolist(), getattr(method, "form", "out"))

    literal = literal_epochs(model, all_images(data), loss, views=2, by_batch=method.batch_norm == "batch",
                             parts=method.parts, kept=kept)
    assert_same_training(method, data, setting, model, literal)


@pytest.mark.parametrize("change", [
    {"batch_norm": "batch"}, {"batch_norm": "frozen"}, {"batch_norm": "statistics", "projection": "linear"},
    {"batch_norm": "batch", "projection": "none", "parts": 3}], ids=str)
@double_precision()
def test_simclr_equals_the_literal_loop(change: dict[str, Any]) -> None:
    check(SimCLR(**HEAD | change), *small_images(), torch.arange(IMAGES))


@pytest.mark.parametrize("change", [
    {"batch_norm": "batch"}, {"batch_norm": "frozen", "form": "in"},
    {"batch_norm": "statistics", "projection": "none"}], ids=str)
@double_precision()
def test_supcon_equals_the_literal_loop_and_unlabeled_images_are_classes_of_their_own(change: dict[str, Any]) -> None:
    data, setting = small_images()
    alone = torch.where(CLASSES < 0, 100 + torch.arange(IMAGES), CLASSES)
    check(SupCon(**HEAD | change), replace(data, given_labels=CLASSES), setting, alone)


@pytest.mark.parametrize("kind", [SimCLR, SupCon])
@double_precision()
def test_the_last_blocks_on_kept_activations_equal_the_literal_loop(kind: type[SimCLR | SupCon]) -> None:
    data, setting = small_images()
    others = torch.rand(IMAGES, 2, 3, 16, 16, generator=torch.Generator().manual_seed(4)) * 255
    kept = torch.cat([all_images(data)[:, None], others], dim=1)
    with torch.no_grad():
        activations = setting.encoder.early(kept.flatten(0, 1)).unflatten(0, (IMAGES, 3))
    classes = torch.arange(IMAGES) % 4
    data = replace(data, activations=activations.numpy(), given_labels=classes)
    check(kind(**HEAD | {"trains": "last", "kept_views": 3, "batch_norm": "frozen"}), data, setting,
          torch.arange(IMAGES) if kind is SimCLR else classes, kept)


@pytest.mark.parametrize("kind", [SimCLR, SupCon])
def test_colors_choose_the_papers_augmentation(kind: type[InstanceMethod]) -> None:
    assert kind.make({"colors": True}).augmentation == DISTORTIONS
    assert kind.make({}).augmentation == CROPS
    assert (DISTORTIONS.smallest, DISTORTIONS.gray) == (0.08, 0.2)
    assert DISTORTIONS.jitter is not None
    assert vars(DISTORTIONS.jitter) == {"brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1}


@pytest.mark.parametrize("kind", [SimCLR, SupCon])
def test_at_learning_rate_0_nothing_changes(kind: type[InstanceMethod]) -> None:
    data, setting = small_images()
    method = kind.make(HEAD | {"learning_rate": 0.0, "epochs": 2, "batch_norm": "frozen"})
    first, last = method.fit(replace(data, given_labels=CLASSES), setting)
    start = method.initial(data, setting)
    images = all_images(data).float()
    with torch.no_grad():
        assert torch.equal(last.embedder(images), start(images))
    for name in first.state:
        if not name.startswith("optimizer.") and name != "epoch":
            assert torch.equal(first.state[name], last.state[name]), name
