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
    unit,
)
from tests.tiers import fast_first
from udml_core.methods.pslr import PSLR, _Latent
from udml_core.numerics.sampling import generator

TAU, ETA, LAMBDA = 0.3, 4.0, 0.7


def add_latent_layers(model: Model, first_log_sigma: float) -> None:
    """Add W, the decoder and the layer of log σ.

    W and the decoder start uniform within ±1/√l; log σ starts constant.
    """
    random = generator(SEED, 0)
    layer, decoder = ((2 * torch.rand(WIDTH, WIDTH, generator=random) - 1) / math.sqrt(WIDTH) for _ in range(2))
    model.parameters |= {
        "objective.layer": layer,
        "objective.log_sigma.weight": torch.zeros(WIDTH, WIDTH),
        "objective.log_sigma.bias": torch.full((WIDTH,), first_log_sigma),
        "objective.decoder.weight": decoder,
        "objective.decoder.bias": torch.zeros(WIDTH)}


def huber(difference: Tensor) -> Tensor:
    """Compute h(t) = ½t² if |t| < 1, else |t| − ½."""
    return torch.where(difference.abs() < 1, difference**2 / 2, difference.abs() - 0.5)


@pytest.mark.parametrize("change", fast_first([
    {"batch_norm": "batch"}, {"batch_norm": "frozen"}, {"batch_norm": "statistics"},
    {"batch_norm": "batch", "fixed_target": True}, {"batch_norm": "batch", "one_sided": True},
    {"batch_norm": "batch", "structure_edges": "views"}, {"batch_norm": "batch", "scale": "sum"},
    {"batch_norm": "batch", "first_log_sigma": -1.0},
    {"batch_norm": "batch", "scale": "mixed", "first_log_sigma": -3.0, "structure_edges": "views"}], 2), ids=str)
@double_precision()
def test_training_equals_the_literal_loop(change: dict[str, Any]) -> None:
    data, setting = small_images()
    method = PSLR(**FIELDS | {"temperature": TAU, "eta": ETA, "weight": LAMBDA} | change)
    model = Model.begin(method, data, setting)
    add_latent_layers(model, change.get("first_log_sigma", 0.0))
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
        structure = sum((1 - torch.sigmoid(noisy[i] @ noisy[j])) ** 2 for i, j in edges) / rows
        divergence = -(1 + 2 * log_sigma - z**2 - log_sigma.exp() ** 2).sum() / (2 * rows) / rows
        if method.scale == "mixed":  # as version 0.2 computed the terms
            structure, divergence = structure * rows / len(edges), divergence * rows
        total = softmax + reconstruction + LAMBDA * structure + LAMBDA * divergence  # eq. 13
        return rows * total if method.scale == "sum" else total

    literal = literal_epochs(model, all_images(data), loss, views=2, by_batch=method.batch_norm == "batch")
    assert_same_training(method, data, setting, model, literal)


def literal_total(method: PSLR, objective: _Latent, x: list[list[float]], noise: list[list[float]],
                  joined: set[tuple[int, int]]) -> float:
    """Compute eq. 13 with the printed sums, entry by entry.

    Args:
        method: Its form, edges and weights.
        objective: Its layers.
        x: Instance features of 2m rows.
        noise: ε of the 2m rows.
        joined: Pairs of images (i, j), i ≠ j, with A_ij = 1.
    """
    count, half, width = len(x), len(x) // 2, len(x[0])
    layer, decoder, bias = objective.layer.tolist(), objective.decoder.weight.tolist(), objective.decoder.bias.tolist()
    head, offset = objective.log_sigma.weight.tolist(), objective.log_sigma.bias.tolist()
    same_view = {(i, j) for i in range(count) for j in range(count)
                 if i // half == j // half and (i == j or (i % half, j % half) in joined)}
    degree = [sum((i, j) in same_view for j in range(count)) for i in range(count)]
    mixed = [[sum(x[j][c] / math.sqrt(degree[i] * degree[j]) for j in range(count) if (i, j) in same_view)
              for c in range(width)] for i in range(count)]
    z, log_sigma, noisy = [], [], []
    for i in range(count):
        row = [max(0.0, sum(mixed[i][d] * layer[d][c] for d in range(width))) for c in range(width)]  # eq. 2
        length = math.sqrt(sum(value**2 for value in row))
        z.append([value / length for value in row])
        log_sigma.append([sum(mixed[i][d] * head[c][d] for d in range(width)) + offset[c] for c in range(width)])
        noisy.append([z[i][c] + math.exp(log_sigma[i][c]) * noise[i][c] for c in range(width)])  # eq. 6

    def inner(rows: list[list[float]], i: int, j: int) -> float:
        return sum(a * b for a, b in zip(rows[i], rows[j], strict=True))

    softmax = reconstruction = structure = divergence = 0.0
    printed = method.form == "printed"
    for i in range(half, count) if printed else range(count):  # eq. 3–5
        other = (i + half) % count
        rest = [k for k in range(half if printed else count)
                if k not in {i, other} and (i % half, k % half) not in joined and k % half != i % half]
        exponentials = {k: math.exp(inner(z, i, k) / TAU) for k in [other, *rest]}
        below = exponentials[other] + ETA * sum(exponentials[k] for k in rest)
        softmax -= math.log(exponentials[other] / below)
        softmax -= ETA * sum(math.log(1 - exponentials[k] / below) for k in rest)
    for i in range(count):
        for c in range(width):
            decoded = sum(noisy[i][d] * decoder[c][d] for d in range(width)) + bias[c]
            error = abs(x[i][c] - decoded)
            reconstruction += error**2 / 2 if error < 1 else error - 0.5  # eq. 7
            sigma = math.exp(log_sigma[i][c])
            divergence -= (1 + 2 * math.log(sigma) - z[i][c] ** 2 - sigma**2) / (4 * half)  # eq. 12
        for j in range(count):
            between_views = method.structure_edges == "views" and i % half == j % half
            if (i, j) in same_view or between_views:
                structure += (1 - 1 / (1 + math.exp(-inner(noisy, i, j)))) ** 2  # eq. 11
    return softmax + reconstruction + LAMBDA * (structure + divergence)


@pytest.mark.parametrize("structure_edges", ["graph", "views"])
@pytest.mark.parametrize("graph", ["itself", "neighbors"])
@pytest.mark.parametrize("form", ["both", "printed"])
@pytest.mark.parametrize("scale", ["mean", "sum"])
@double_precision()
def test_the_total_loss_equals_the_printed_sums(scale: str, form: str, graph: str, structure_edges: str) -> None:
    """Compare the total with the printed sums, and with the printed sums divided by 2m."""
    method = PSLR.make({"dimension": 4, "temperature": TAU, "eta": ETA, "weight": LAMBDA, "n_neighbors": 1,
                        "scale": scale, "form": form, "graph": graph, "structure_edges": structure_edges})
    random = torch.Generator().manual_seed(5)
    objective = _Latent(method, SEED)
    with torch.no_grad():
        for parameter in objective.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=random) / 2)
        objective.layer.abs_()  # no row of z is zero
    joined = {(0, 2), (2, 0)} if graph == "neighbors" else set()
    if graph == "neighbors":
        objective._neighbors = torch.tensor([[2], [0], [0]])
    x = unit(torch.rand(6, 4, generator=random))
    total, curves = objective.loss(x, torch.arange(3), generator(SEED, 1))
    noise = torch.randn(6, 4, generator=generator(SEED, 1))
    expected = literal_total(method, objective, x.tolist(), noise.tolist(), joined)
    assert total.item() == pytest.approx(expected / (6 if scale == "mean" else 1), rel=1e-12)
    parts = curves["latent loss"] + curves["reconstruction"] + LAMBDA * (curves["structure"] + curves["divergence"])
    assert parts.item() == pytest.approx(total.item(), rel=1e-12)
