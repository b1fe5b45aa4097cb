"""Distillation: the targets and two epochs with the encoder, repeated literally with plain torch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.methods.golden_steps import (
    IMAGES,
    SEED,
    WIDTH,
    Network,
    adam,
    assert_same_embedder,
    assert_same_state,
    double_precision,
    features,
    last_epoch,
    nearest_rows,
    network_of,
    tiny_data,
    tiny_setting,
    trainable,
    unit,
)
from udml_core.data.augmentation import Augmentation
from udml_core.data.training_data import TrainingData
from udml_core.methods import Setting
from udml_core.methods.distill import Distill, Targets
from udml_core.numerics.sampling import generator

DIMENSION, BATCH, GROUP, VIEWS, NEIGHBORS, ALPHA, TIMES, MUTUAL, SHRINKAGE = 6, 12, 4, 3, 4, 2.0, 2, 3, 0.7
RATE, TAU, LAMBDA, EPOCHS = 0.003, 0.2, 0.6, 2
FIELDS: dict[str, Any] = {
    "dimension": DIMENSION, "batch": BATCH, "group": GROUP, "kept_views": VIEWS, "averaged": NEIGHBORS, "alpha": ALPHA,
    "times": TIMES, "whitening_neighbors": MUTUAL, "shrinkage": SHRINKAGE, "learning_rate": RATE, "temperature": TAU,
    "regression": LAMBDA, "epochs": EPOCHS}
CROPS = Augmentation(smallest=0.16, flip=True, gray=0.0, jitter=None)


def images_of_views(data: TrainingData) -> Tensor:
    """Return the images (n, 3, c, s, s), each followed by two noisy versions."""
    noise = torch.rand(2, IMAGES, 3, 8, 8, generator=torch.Generator().manual_seed(5))
    whole = data.images(torch.arange(IMAGES)).double()
    return torch.stack([whole, *(0.7 * whole + 0.3 * 255 * part for part in noise)], dim=1)


def prepared(trains: str) -> tuple[TrainingData, Setting]:
    """Return images with what the method reads of their views: activations, or pooled features of random views."""
    setting = tiny_setting()
    data = tiny_data(setting)
    images = images_of_views(data).flatten(0, 1)
    with torch.no_grad():
        if trains == "last":
            rows = setting.encoder.early(images).unflatten(0, (IMAGES, VIEWS))
            return replace(data, activations=rows.numpy()), setting
        pooled = setting.encoder(images).unflatten(0, (IMAGES, VIEWS))
        return replace(data, features=pooled[:, 0], views=pooled[:, 1:].numpy()), setting


def literal_targets(views: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return W·P, −mean·W·P, t and r of the features (n, v, d) of views."""
    rows = unit(views.mean(1))
    near = nearest_rows(rows, MUTUAL)
    pairs = [(i, j) for i in range(len(rows)) for j in near[i].tolist() if i < j and i in near[j].tolist()]
    covariance = sum(torch.outer(rows[i] - rows[j], rows[i] - rows[j]) for i, j in pairs) / len(pairs)
    values, vectors = torch.linalg.eigh(covariance + SHRINKAGE * covariance.trace() / WIDTH * torch.eye(WIDTH))
    whitening = vectors @ torch.diag(values**-0.5) @ vectors.T
    whitened = unit((rows - rows.mean(0)) @ whitening)
    directions = torch.linalg.svd(whitened, full_matrices=False)[2][:DIMENSION].T
    weight = whitening @ (directions * directions.sum(0).sign())
    whitened = unit((rows - rows.mean(0)) @ weight)
    refined = whitened
    for _ in range(TIMES):
        near = nearest_rows(refined, NEIGHBORS).tolist()
        refined = unit(torch.stack([row + sum(max(0.0, float(row @ refined[j])) ** ALPHA * refined[j] for j in others)
                                    for row, others in zip(refined, near, strict=True)]))
    return weight, -rows.mean(0) @ weight, whitened, refined


@pytest.mark.parametrize("trains", ["last", "all"])
@double_precision()
def test_the_targets_equal_their_formulas(trains: str) -> None:
    """Whitening and averages work in float32."""
    data, setting = prepared(trains)
    views = images_of_views(data).flatten(0, 1)
    with torch.no_grad():
        rows = setting.encoder(views).unflatten(0, (IMAGES, VIEWS))
    targets = Distill(trains=trains, **FIELDS).targets(data, setting)
    expected = literal_targets(rows)
    for name, value in zip(Targets._fields, expected, strict=False):
        torch.testing.assert_close(getattr(targets, name), value, rtol=1e-4, atol=1e-4, msg=f"{name}: {{}}".format)
    assert torch.equal(targets.neighbors, nearest_rows(targets.refined, GROUP - 1))


def objective(rows: Tensor, targets: Targets, batch: list[int]) -> Tensor:
    """Return (1/m)·Σ_i [KL(p_i ‖ q_i) + λ·(1 − z_i·t_i)]."""
    total = torch.zeros(())
    for i, image in enumerate(batch):
        others = [j for j in range(len(batch)) if j != i]
        p = torch.stack([torch.exp(targets.refined[image] @ targets.refined[batch[j]] / TAU) for j in others])
        q = torch.stack([torch.exp(rows[i] @ rows[j] / TAU) for j in others])
        p, q = p / p.sum(), q / q.sum()
        total = total + (p * torch.log(p / q)).sum() + LAMBDA * (1 - rows[i] @ targets.whitened[image])
    return total / len(batch)


def literal_training(trains: str, batch_norm: str, data: TrainingData, setting: Setting, targets: Targets,
                     weight: Tensor, bias: Tensor) -> tuple[Network, dict[str, Tensor], list[float]]:
    """Return the network, the state after two epochs from this head, and the loss of each batch of the last epoch."""
    network = network_of(setting) | {"weight": weight, "bias": bias}
    fixed = ("network.0.", "network.1.") if trains == "last" else ()
    views, images = images_of_views(data), data.images(torch.arange(IMAGES))
    moments: dict[str, dict[str, Tensor]] = {}
    time, losses = 0, list[float]()
    for epoch in range(1, EPOCHS + 1):
        random, losses = generator(SEED, epoch), []
        order = torch.randperm(IMAGES, generator=random)
        for seeds in order[:IMAGES // BATCH * (BATCH // GROUP)].split(BATCH // GROUP):
            batch = sorted({*seeds.tolist(), *targets.neighbors[seeds].flatten().tolist()})
            if trains == "last":
                choice = torch.rand(len(batch), VIEWS, generator=random).argsort(1)[:, 0]
                inputs = views[batch, choice]
            else:
                inputs = CROPS.apply(images[batch].double(), torch.rand(len(batch), 23, generator=random))
            weights, time = trainable(network, batch_norm), time + 1  # type: ignore[arg-type]
            for name in [name for name in weights if name.startswith(fixed)] if fixed else []:
                network[name] = weights.pop(name).detach()
            rows = unit(features(network, inputs, batch_norm == "batch") @ network["weight"] + network["bias"])
            loss = objective(rows, targets, batch)
            gradients = torch.autograd.grad(loss, [*weights.values()])
            adam(weights, moments, gradients, time, {}, RATE)
            network |= weights
            losses.append(loss.item())
    state = {"epoch": torch.tensor(EPOCHS)} | {f"network.{part_of(name)}": value for name, value in network.items()}
    for name, values in moments.items():
        state |= {f"optimizer.{part_of(name)}.{key}": value for key, value in values.items()}
    return network, state, losses


def part_of(name: str) -> str:
    """Return a tensor's name in the state: the encoder's tensors have a prefix, the head's none."""
    return f"encoder.{name}" if name.startswith("network.") else name


def random_head(method: Distill, data: TrainingData, setting: Setting) -> tuple[Tensor, Tensor]:
    """Return the student's random start, after its laws: orthonormal columns, no bias, another one for another seed."""
    weight, other = (method.initial(data, replace(setting, seed=seed)).head.weight for seed in (SEED, SEED + 1))
    torch.testing.assert_close(weight.T @ weight, torch.eye(DIMENSION, dtype=weight.dtype))
    assert not torch.allclose(weight @ weight.T, other @ other.T, atol=0.1)
    return weight.clone(), torch.zeros(DIMENSION)


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize(("trains", "batch_norm", "beginning"), [
    ("last", "frozen", "whitening"), ("last", "statistics", "whitening"), ("all", "frozen", "whitening"),
    ("all", "batch", "whitening"), ("last", "frozen", "random")])
@double_precision()
def test_two_epochs_equal_the_algorithm_written_out(trains: str, batch_norm: str, beginning: str,
                                                    resumed: bool) -> None:
    data, setting = prepared(trains)
    method = Distill(trains=trains, batch_norm=batch_norm, beginning=beginning, **FIELDS)
    targets = method.targets(data, setting)
    head = (targets.weight, targets.bias) if beginning == "whitening" else random_head(method, data, setting)
    network, expected, losses = literal_training(trains, batch_norm, data, setting, targets, *head)
    assert len(losses) >= 2, "Adam's moments act from the second batch on"
    epoch = last_epoch(method, data, setting, resumed)
    assert_same_state(epoch.state, expected)
    assert epoch.losses["loss"] == pytest.approx(sum(losses) / len(losses), rel=1e-8)
    assert_same_embedder(epoch, data, network, expected["network.weight"], expected["network.bias"])
