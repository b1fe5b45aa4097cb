"""Instance discrimination losses, compared with loops, finite at extreme values."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from udml_core.numerics.losses.instance_discrimination import (
    Form,
    adaptable_softmax,
    contrast,
    divergence,
    instance_loss,
    latent,
    log_normalizer,
    nce_loss,
    negatives,
    normalized_graph,
    reconstruction_loss,
    softmax_loss,
    structure_loss,
)


def unit_rows(count: int, width: int = 6, seed: int = 0) -> Tensor:
    rows = torch.randn(count, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return rows / rows.norm(dim=1, keepdim=True)


def loss_by_loops(rows: Tensor, temperature: float, eta: float, similar: Tensor | None = None) -> float:
    count = len(rows)
    half, total = count // 2, 0.0
    for i in range(count):
        other = (i + half) % count
        negatives = [k for k in range(count) if k not in (i, other) and not (similar is not None and similar[i, k])]
        exp = [math.exp(float(rows[i] @ rows[k]) / temperature) for k in range(count)]
        bottom = exp[other] + eta * sum(exp[k] for k in negatives)
        total += math.log(exp[other] / bottom) + eta * sum(math.log(1 - exp[k] / bottom) for k in negatives)
    return -total / count


def printed_by_loops(rows: Tensor, temperature: float, eta: float) -> float:
    """Compute eq. 3–5 as printed: a sum, without division."""
    half = len(rows) // 2
    first, second = rows[:half], rows[half:]
    total = 0.0
    for i in range(half):
        exp = [math.exp(float(first[j] @ second[i]) / temperature) for j in range(half)]
        bottom = exp[i] + eta * sum(exp[k] for k in range(half) if k != i)
        total -= eta * sum(math.log(1 - exp[j] / bottom) for j in range(half) if j != i)
        total -= math.log(exp[i] / bottom)
    return total


def isif_by_loops(rows: Tensor, temperature: float) -> float:
    """Compute ISIF as in its paper: P(i|x_j) over all rows except j itself."""
    count = len(rows)
    half, total = count // 2, 0.0
    for j in range(count):
        exp = [math.exp(float(rows[j] @ rows[k]) / temperature) if k != j else 0.0 for k in range(count)]
        probability = [value / sum(exp) for value in exp]
        other = (j + half) % count
        total -= math.log(probability[other])
        total -= sum(math.log(1 - probability[k]) for k in range(count) if k not in (j, other))
    return total / count


@pytest.mark.parametrize("eta", [1.0, 10.0, 100.0])
@pytest.mark.parametrize("temperature", [0.1, 0.5])
def test_both_forms_equal_the_literal_sums(temperature: float, eta: float) -> None:
    rows = unit_rows(10)
    assert float(instance_loss(rows, temperature, eta)) == pytest.approx(loss_by_loops(rows, temperature, eta))
    printed = 5 * float(instance_loss(rows, temperature, eta, form="printed"))
    assert printed == pytest.approx(printed_by_loops(rows, temperature, eta))


def test_isif_is_the_adaptable_softmax_with_eta_one() -> None:
    rows = unit_rows(12, seed=3)
    assert float(instance_loss(rows, 0.1)) == pytest.approx(isif_by_loops(rows, 0.1))


def test_similar_rows_are_no_negatives() -> None:
    rows, similar = unit_rows(8), torch.zeros(8, 8, dtype=torch.bool)
    similar[0, 1] = similar[1, 0] = similar[4, 5] = True
    loss = float(instance_loss(rows, 0.2, 10.0, similar=similar))
    assert loss == pytest.approx(loss_by_loops(rows, 0.2, 10.0, similar))
    printed = [float(instance_loss(rows, 0.2, form="printed", similar=pairs))
               for pairs in (None, similar, similar | similar.mT)]
    assert printed[0] == printed[1] != 0


def test_detached_stops_the_gradient_to_the_compared_rows() -> None:
    rows = unit_rows(8).requires_grad_()
    fixed, other_view = rows.detach(), torch.arange(8).roll(4)
    values, gradients = [], []
    for detached in (False, True):
        values.append(instance_loss(rows, 0.5, 10.0, detached=detached))
        gradients.append(torch.autograd.grad(values[-1], rows)[0])
    backward = fixed @ rows.mT / 0.5
    loss = adaptable_softmax(backward, other_view, negatives(backward, other_view), 10.0)
    assert values[0].item() == values[1].item()
    torch.testing.assert_close(gradients[0] - gradients[1], torch.autograd.grad(loss, rows)[0])


@pytest.mark.parametrize("form", ["both", "printed"])
@pytest.mark.parametrize("temperature", [1e-4, 1e-2, 1.0, 1e4])
@pytest.mark.parametrize("eta", [1.0, 100.0])
def test_values_and_gradients_are_finite_at_extreme_temperatures_with_zero_and_equal_rows(
        form: Form, temperature: float, eta: float) -> None:
    instance = unit_rows(8).float()
    instance[3] = 0
    instance[5] = instance[1] = instance[0]
    weight = torch.eye(6)
    weight[:, 2] = -1
    instance.requires_grad_()
    weight.requires_grad_()
    loss = instance_loss(latent(instance, weight), temperature, eta, form)
    loss.backward()
    assert loss.isfinite()
    for gradient in (instance.grad, weight.grad):
        assert gradient is not None
        assert gradient.isfinite().all()


def test_the_latent_layer_equals_a_literal_loop_and_keeps_zero_rows() -> None:
    instance, weight = unit_rows(6), torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(latent(instance, weight, normalized_graph(torch.eye(6, dtype=torch.float64))),
                               latent(instance, weight))
    adjacency = torch.eye(6, dtype=torch.float64)
    adjacency[0, 1] = adjacency[1, 0] = adjacency[1, 2] = adjacency[2, 1] = 1
    rows = latent(instance, weight, normalized_graph(adjacency))
    for i in range(6):
        mixed = sum(adjacency[i, j] / math.sqrt(adjacency[i].sum() * adjacency[j].sum()) * instance[j]
                    for j in range(6))
        row = (mixed @ weight).relu()
        torch.testing.assert_close(rows[i], row / row.norm().clamp_min(1e-6))
    assert not latent(instance, -weight.abs() * 0).any()


def test_reconstruction_structure_and_divergence_equal_the_literal_sums() -> None:
    instance, other = unit_rows(6), 3 * unit_rows(6, seed=1)
    total = 0.0
    for i in range(6):
        for c in range(6):
            error = abs(float(instance[i, c] - other[i, c]))
            total += 0.5 * error**2 if error < 1 else error - 0.5
    assert float(reconstruction_loss(instance, other)) == pytest.approx(total / 6)
    adjacency = torch.eye(6, dtype=torch.float64)
    assert float(structure_loss(other, adjacency)) == pytest.approx(float(structure_loss(other)))
    adjacency[0, 3] = adjacency[3, 0] = 1
    errors = [(1 - 1 / (1 + math.exp(-float(other[i] @ other[j])))) ** 2
              for i in range(6) for j in range(6) if adjacency[i, j] > 0]
    assert float(structure_loss(other, adjacency)) == pytest.approx(sum(errors) / 6)
    log_sigma = unit_rows(6, seed=2)
    total = sum(1 + 2 * float(log_sigma[i, c]) - float(other[i, c]) ** 2 - math.exp(float(log_sigma[i, c])) ** 2
                for i in range(6) for c in range(6))
    assert float(divergence(other, log_sigma)) == pytest.approx(-total / 72)


def test_the_divergence_equals_that_of_gaussians_and_is_zero_at_the_prior() -> None:
    rows, log_sigma = unit_rows(5), unit_rows(5, seed=4)
    posterior = torch.distributions.Normal(rows, log_sigma.exp())
    prior = torch.distributions.Normal(torch.zeros_like(rows), torch.ones_like(rows))
    expected = torch.distributions.kl_divergence(posterior, prior).sum(1).mean()
    torch.testing.assert_close(divergence(rows, log_sigma), expected / 5)
    assert float(divergence(rows * 0, rows * 0)) == 0


def test_the_softmax_loss_equals_a_literal_loop() -> None:
    bank, features, own = unit_rows(9), unit_rows(4, seed=5), torch.tensor([3, 0, 8, 3])
    total = 0.0
    for row, i in zip(features, own, strict=True):
        exp = [math.exp(float(row @ entry) / 0.07) for entry in bank]
        total -= math.log(exp[i] / sum(exp))
    assert float(softmax_loss(features, bank, own, 0.07)) == pytest.approx(total / 4)


def test_nce_equals_the_literal_sum_with_the_normalizer_of_the_first_batch() -> None:
    bank, features, own = unit_rows(9), unit_rows(4, seed=5), torch.tensor([3, 0, 8, 3])
    noise = torch.tensor([1, 1, 4, 8, 7])
    contrasts = contrast(features, bank, own, noise, 0.5)
    exp = [[math.exp(float(row @ bank[j]) / 0.5) for j in [int(i), *noise.tolist()]]
           for row, i in zip(features, own, strict=True)]
    z = 9 * sum(sum(row) for row in exp) / 24
    assert float(log_normalizer(contrasts, 9)) == pytest.approx(math.log(z))
    total = 0.0
    for row in exp:
        h = [value / z / (value / z + 5 / 9) for value in row]
        total -= math.log(h[0]) + sum(math.log(1 - value) for value in h[1:])
    assert float(nce_loss(contrasts, torch.tensor(math.log(z)), 9)) == pytest.approx(total / 4)


def test_with_the_whole_bank_as_noise_p_is_the_exact_softmax() -> None:
    """With Z = Σ_j e^{v_jᵀf/τ}, p of NCE is the softmax.

    The estimate over the whole bank gives exactly this Z.
    """
    bank, features = unit_rows(9), unit_rows(1, seed=5)
    contrasts = contrast(features, bank, torch.tensor([2]), torch.arange(9), 0.3)[:, 1:]
    exact = (features @ bank.mT / 0.3).softmax(1)
    torch.testing.assert_close((contrasts - log_normalizer(contrasts, 9)).exp(), exact)


@pytest.mark.parametrize("temperature", [1e-4, 1.0, 1e4])
def test_the_bank_losses_are_finite_at_extreme_temperatures(temperature: float) -> None:
    bank, own, noise = unit_rows(9).float(), torch.tensor([3, 0]), torch.arange(9)
    features = unit_rows(2, seed=5).float().requires_grad_()
    contrasts = contrast(features, bank, own, noise, temperature)
    loss = nce_loss(contrasts, log_normalizer(contrasts, 9), 9) + softmax_loss(features, bank, own, temperature)
    loss.backward()
    assert loss.isfinite()
    assert features.grad is not None
    assert features.grad.isfinite().all()
