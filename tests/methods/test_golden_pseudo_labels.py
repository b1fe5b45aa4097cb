"""Exemplar, DeepCluster and RotNet train the encoder and their classifier by their formulas, step by step."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.methods.golden_instance import (
    BATCH,
    FIELDS,
    IMAGES,
    SEED,
    SIDE,
    WIDTH,
    Model,
    all_images,
    assert_same_training,
    double_precision,
    literal_epochs,
    random_view,
    small_images,
    unit,
)
from tests.tiers import fast_first
from udml_core.data.training_data import TrainingData
from udml_core.methods import Setting
from udml_core.methods.deepcluster import DeepCluster
from udml_core.methods.exemplar import Exemplar
from udml_core.methods.rotnet import RotNet
from udml_core.methods.shared.instance import InstanceMethod
from udml_core.numerics.sampling import generator

TAU, CLUSTERS = 0.3, 4
WEIGHT, BIAS = "objective.classifier.weight", "objective.classifier.bias"


def begin(method: InstanceMethod, data: TrainingData, setting: Setting, weight: Tensor | None = None) -> Model:
    """Copy the encoder and the head, and begin the classifier at given weights, or at the images' embeddings."""
    model = Model.begin(method, data, setting)
    weight = model.embed(all_images(data), by_batch=False) if weight is None else weight
    model.parameters |= {WEIGHT: weight.detach().clone(), BIAS: torch.zeros(len(weight))}
    return model


def mistakes(model: Model, rows: Tensor, classes: Tensor) -> Tensor:
    """Compute the mean of −log(e^{score of the class} / Σ e^{score}) with scores x·Wᵀ/τ + b."""
    scores = torch.exp(rows @ model.parameters[WEIGHT].mT / TAU + model.parameters[BIAS])
    return -torch.log(scores[range(len(rows)), classes] / scores.sum(1)).sum() / len(rows)


def kept_views(count: int) -> tuple[TrainingData, Setting, Tensor]:
    """Return the small images with activations of `count` random images each, the setting, and these images."""
    data, setting = small_images()
    kept = torch.rand(IMAGES, count, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(4)) * 255
    with torch.no_grad():
        activations = setting.encoder.early(kept.flatten(0, 1)).unflatten(0, (IMAGES, count))
    return replace(data, activations=activations.numpy()), setting, kept


# Exemplar -----------------------------------------------------------------------------------------------------------


def tilted_view(images: Tensor, random: torch.Generator) -> Tensor:
    """Crop each image (m, 3, s, s) to 50–100 % of its area, and rotate the crop by up to 20° about its center."""
    draws, angles = torch.rand(len(images), 23, generator=random), torch.rand(len(images), 1, generator=random)
    line = (2 * torch.arange(SIDE) + 1) / SIDE - 1
    y, x = line[:, None], line[None]
    views = []
    for image, numbers, (angle,) in zip(images, draws.tolist(), angles.tolist(), strict=True):
        width = height = 1.0
        for area_draw, aspect_draw in reversed(list(zip(numbers[:10], numbers[10:20], strict=True))):
            side, stretch = math.sqrt(0.5 + 0.5 * area_draw), (4 / 3) ** (aspect_draw - 0.5)
            if side * stretch <= 1 and side / stretch <= 1:
                width, height = side * stretch, side / stretch
        turn = (2 * angle - 1) * math.pi / 9
        across = math.cos(turn) * width * x - math.sin(turn) * height * y + (2 * numbers[20] - 1) * (1 - width)
        down = math.sin(turn) * width * x + math.cos(turn) * height * y + (2 * numbers[21] - 1) * (1 - height)
        views.append(bilinear(image, across, down))
    return torch.stack(views)


def bilinear(image: Tensor, across: Tensor, down: Tensor) -> Tensor:
    """Interpolate an image (3, s, s), mirrored at its borders, at places (s, s) from −1 to 1."""
    columns, rows = (place_in_pixels(place) for place in (across, down))
    value = torch.zeros(3, SIDE, SIDE)
    for row in (rows.floor(), rows.floor() + 1):
        for column in (columns.floor(), columns.floor() + 1):
            share = (1 - (rows - row).abs()) * (1 - (columns - column).abs())
            inside = (row.clamp_max(SIDE - 1).long(), column.clamp_max(SIDE - 1).long())
            value += share * image[:, inside[0], inside[1]]
    return value


def place_in_pixels(place: Tensor) -> Tensor:
    mirrored = torch.where(place < -1, -2 - place, torch.where(place > 1, 2 - place, place))
    return ((mirrored + 1) * SIDE / 2 - 0.5).clamp(0, SIDE - 1)


@pytest.mark.parametrize("change", [
    {"batch_norm": "batch"}, {"batch_norm": "frozen", "first_classifier": "random"},
    {"batch_norm": "statistics", "classes": 8, "parts": 2}], ids=str)
@double_precision()
def test_exemplar_equals_the_literal_loop(change: dict[str, Any]) -> None:
    data, setting = small_images()
    method = Exemplar(**FIELDS | {"temperature": TAU, "colors": False} | change)
    seeds = torch.arange(IMAGES)
    if method.classes:
        seeds = torch.randperm(IMAGES, generator=generator(SEED, -1))[:8].sort().values
    model = begin(method, data, setting)
    if method.first_classifier == "random":
        model.parameters[WEIGHT] = 0.01 * torch.randn(IMAGES, WIDTH, generator=generator(SEED, 0))
    else:
        model.parameters[WEIGHT] = model.parameters[WEIGHT][seeds]
    model.parameters[BIAS] = torch.zeros(len(seeds))

    def plan(random: torch.Generator) -> list[Tensor]:
        order = seeds[torch.randperm(len(seeds), generator=random)]
        return [order[start : start + BATCH] for start in range(0, len(seeds) - BATCH + 1, BATCH)]

    def loss(rows: Tensor, batch: Tensor, random: torch.Generator) -> Tensor:
        return mistakes(model, rows, (batch[:, None] == seeds).nonzero()[:, 1])

    literal = literal_epochs(model, all_images(data), loss, views=1, by_batch=method.batch_norm == "batch",
                             parts=method.parts, view=tilted_view, plan=plan)
    assert_same_training(method, data, setting, model, literal)


@double_precision()
def test_exemplar_on_kept_activations_equals_the_literal_loop() -> None:
    data, setting, kept = kept_views(3)
    method = Exemplar(**FIELDS | {"temperature": TAU, "trains": "last", "kept_views": 3, "first_classifier": "random"})
    model = begin(method, data, setting, 0.01 * torch.randn(IMAGES, WIDTH, generator=generator(SEED, 0)))
    literal = literal_epochs(model, all_images(data), lambda rows, batch, _: mistakes(model, rows, batch), views=1,
                             by_batch=False, kept=kept)
    assert_same_training(method, data, setting, model, literal)


# DeepCluster --------------------------------------------------------------------------------------------------------


def literal_clusters(points: Tensor, random: torch.Generator) -> Tensor:
    """Run k-means for 20 steps from random points (n, l); no cluster of these points becomes empty."""
    centers = points[torch.randperm(IMAGES, generator=random)[:CLUSTERS]]
    for _ in range(21):
        clusters = ((points[:, None] - centers) ** 2).sum(2).argmin(1)
        assert clusters.bincount(minlength=CLUSTERS).min() > 0
        centers = torch.stack([points[clusters == number].mean(0) for number in range(CLUSTERS)])
    return clusters


def mutual_information(first: Tensor, second: Tensor) -> float:
    """Compute I / ((H(first) + H(second)) / 2)."""
    table = torch.zeros(CLUSTERS, CLUSTERS)
    for pair in zip(first, second, strict=True):
        table[pair] += 1 / IMAGES
    entropies = [-(side * side.log()).sum() for side in (table.sum(0), table.sum(1))]
    independent = table.sum(1)[:, None] * table.sum(0)
    information = (table * (table / independent).clamp_min(1e-300).log()).sum()
    return float(2 * information / (entropies[0] + entropies[1]))


@pytest.mark.parametrize("change", [
    {"batch_norm": "batch"}, {"batch_norm": "frozen", "first_classifier": "random"},
    {"batch_norm": "statistics", "whitened": False}, {"batch_norm": "batch", "round_epochs": 2}], ids=str)
@double_precision()
def test_deepcluster_equals_the_literal_loop(change: dict[str, Any]) -> None:
    data, setting = small_images()
    method = DeepCluster(**FIELDS | {"temperature": TAU, "clusters": CLUSTERS} | change)
    model = begin(method, data, setting, torch.zeros(CLUSTERS, WIDTH))
    labels = {"objective.assignment": torch.full((IMAGES,), -1), "objective.finished": torch.tensor(0),
              "objective.stability": torch.tensor(-1.0)}

    def plan(random: torch.Generator) -> list[Tensor]:
        if int(labels["objective.finished"]) % method.round_epochs == 0:
            recluster()
        labels["objective.finished"] = labels["objective.finished"] + 1
        clusters = labels["objective.assignment"]
        chances = torch.tensor([1 / int((clusters == cluster).sum()) for cluster in clusters])
        drawn = torch.multinomial(chances, IMAGES, replacement=True, generator=random)
        return [drawn[:BATCH], drawn[BATCH : 2 * BATCH]]

    def recluster() -> None:
        """Assign pseudo-labels, and begin a new classifier without momentum."""
        stream = generator(SEED, -1 - int(labels["objective.finished"]))
        with torch.no_grad():
            rows = model.embed(all_images(data), by_batch=False)
        points = rows - rows.mean(0)
        if method.whitened:  # the left singular vectors have variance 1/n in each direction
            points = unit(torch.linalg.svd(points, full_matrices=False).U)
        clusters, before = literal_clusters(points if method.whitened else rows, stream), labels["objective.assignment"]
        if int(before[0]) >= 0:
            labels["objective.stability"] = torch.tensor(mutual_information(before, clusters))
        labels["objective.assignment"] = clusters
        weight = torch.stack([rows[clusters == number].mean(0) for number in range(CLUSTERS)])
        weight = unit(weight) if method.first_classifier == "centers" else 0.01 * torch.randn(
            CLUSTERS, WIDTH, generator=stream)
        with torch.no_grad():
            model.parameters[WEIGHT].copy_(weight)
            model.parameters[BIAS].zero_()
        model.velocities.pop(WEIGHT, None), model.velocities.pop(BIAS, None)

    def loss(rows: Tensor, batch: Tensor, random: torch.Generator) -> Tensor:
        return mistakes(model, rows, labels["objective.assignment"][batch])

    literal = literal_epochs(model, all_images(data), loss, views=1, by_batch=method.batch_norm == "batch", plan=plan)
    assert_same_training(method, data, setting, model, literal, lambda: labels)


# RotNet -------------------------------------------------------------------------------------------------------------


def four_rotations(views: Tensor) -> Tensor:
    """Rotate by transposition and flips as the paper does; all views of one rotation stand together."""
    transposed = views.transpose(2, 3)
    return torch.cat([views, transposed.flip(2), views.flip(2).flip(3), transposed.flip(3)])


def rotation_loss(model: Model) -> Any:
    def loss(rows: Tensor, batch: Tensor, random: torch.Generator) -> Tensor:
        assert len(rows) == 4 * len(batch)
        return mistakes(model, rows, torch.tensor([turns for turns in range(4) for _ in batch]))

    return loss


@pytest.mark.parametrize("change", fast_first([{"batch_norm": "batch"}, {"batch_norm": "frozen"},
                                    {"batch_norm": "statistics", "parts": 4}]), ids=str)
@double_precision()
def test_rotnet_equals_the_literal_loop(change: dict[str, Any]) -> None:
    data, setting = small_images()
    method = RotNet(**FIELDS | {"temperature": TAU} | change)
    model = begin(method, data, setting, 0.01 * torch.randn(4, WIDTH, generator=generator(SEED, 0)))
    literal = literal_epochs(model, all_images(data), rotation_loss(model), views=1, parts=method.parts,
                             by_batch=method.batch_norm == "batch",
                             view=lambda images, random: four_rotations(random_view(images, random)))
    assert_same_training(method, data, setting, model, literal)


@double_precision()
def test_rotnet_draws_one_kept_crop_of_each_image_in_all_rotations() -> None:
    """Before two crops in four rotations each, the activations have the whole image, which is not used."""
    data, setting, kept = kept_views(9)
    method = RotNet(**FIELDS | {"temperature": TAU, "trains": "last", "kept_views": 2})
    assert method.activations_needed == 9
    model = begin(method, data, setting, 0.01 * torch.randn(4, WIDTH, generator=generator(SEED, 0)))

    def view(images: Tensor, random: torch.Generator) -> Tensor:
        chosen = torch.randint(2, (len(images),), generator=random).tolist()
        return torch.stack([image[1 + 4 * crop + turns] for turns in range(4)
                            for image, crop in zip(images, chosen, strict=True)])

    literal = literal_epochs(model, kept, rotation_loss(model), views=1, by_batch=False, view=view)
    for epoch, loss in zip(method.fit(data, setting), literal, strict=True):
        assert epoch.losses["loss"] == pytest.approx(loss, rel=1e-9)
        for name, value in model.state().items():
            torch.testing.assert_close(epoch.state[name], value, msg=name)


# All ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [Exemplar(**FIELDS), DeepCluster(**FIELDS, clusters=CLUSTERS, round_epochs=2),
                                    RotNet(**FIELDS)], ids=lambda method: method.card.name)
def test_at_learning_rate_0_only_the_pseudo_labels_change_and_a_resumed_run_equals_a_whole_one(
        method: InstanceMethod) -> None:
    data, setting = small_images()
    idle = method.model_copy(update={"learning_rate": 0.0, "batch_norm": "frozen"})
    *_, last = idle.fit(data, setting)
    images = all_images(data).float()
    with torch.no_grad():
        assert torch.equal(last.embedder(images), method.initial(data, setting)(images))
    first, *rest = method.fit(data, setting)
    for whole, resumed in zip(rest, method.fit(data, setting, first.state), strict=True):
        assert whole.losses == resumed.losses
        assert all(torch.equal(resumed.state[name], value) for name, value in whole.state.items())
