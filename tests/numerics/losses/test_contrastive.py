"""NT-Xent and the supervised contrastive loss: the printed sums, laws, and values computed by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from udml_core.numerics.losses.contrastive import Sum, nt_xent, supervised_contrastive

LABELS = torch.tensor([0, 1, 0, 2, 0, 1, 0, 2])
"""Four images in two views; the first and third have one class."""


def unit_rows(seed: int = 0) -> Tensor:
    return normalize(torch.randn(8, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64), dim=1)


def share(rows: Tensor, i: int, k: int, tau: float) -> Tensor:
    """Return e^{z_i·z_k/τ} / Σ_{a≠i} e^{z_i·z_a/τ}."""
    others = [torch.exp(rows[i] @ rows[a] / tau) for a in range(len(rows)) if a != i]
    return torch.exp(rows[i] @ rows[k] / tau) / sum(others)


@pytest.mark.parametrize("tau", [0.1, 0.5])
def test_nt_xent_equals_equation_1(tau: float) -> None:
    rows = unit_rows().requires_grad_()
    pairs = [(i, (i + 4) % 8) for i in range(8)]
    literal = -sum(torch.log(share(rows, i, j, tau)) for i, j in pairs) / 8
    ours = nt_xent(rows, tau)
    torch.testing.assert_close(ours, literal)
    torch.testing.assert_close(*(torch.autograd.grad(value, rows)[0] for value in (ours, literal)))


@pytest.mark.parametrize("form", ["out", "in"])
def test_the_supervised_loss_equals_equations_2_and_3(form: Sum) -> None:
    rows = unit_rows().requires_grad_()
    terms = []
    for i in range(8):
        shares = [share(rows, i, p, 0.2) for p in range(8) if p != i and LABELS[p] == LABELS[i]]
        terms.append(sum(map(torch.log, shares)) / len(shares) if form == "out" else
                     torch.log(sum(shares) / len(shares)))
    ours, literal = supervised_contrastive(rows, LABELS, 0.2, form), -sum(terms) / 8
    torch.testing.assert_close(ours, literal)
    torch.testing.assert_close(*(torch.autograd.grad(value, rows)[0] for value in (ours, literal)))


def test_without_shared_labels_both_forms_are_nt_xent() -> None:
    for form in ("out", "in"):
        torch.testing.assert_close(supervised_contrastive(unit_rows(), torch.arange(4).repeat(2), 0.3, form),
                                   nt_xent(unit_rows(), 0.3))


def test_the_sum_inside_the_logarithm_is_never_larger() -> None:
    for seed in range(5):
        outside, inside = (supervised_contrastive(unit_rows(seed), LABELS, 0.2, form) for form in ("out", "in"))
        assert inside < outside


def test_identical_views_give_the_logarithm_of_their_number_and_a_low_temperature_stays_finite() -> None:
    rows = torch.eye(1, 5).expand(8, -1)
    assert float(nt_xent(rows, 0.1)) == pytest.approx(math.log(7))
    rows = unit_rows().float().requires_grad_()
    loss = supervised_contrastive(rows, LABELS, 1e-3, "in") + nt_xent(rows, 1e-3)
    loss.backward()
    assert loss.isfinite()
    assert rows.grad is not None
    assert rows.grad.isfinite().all()
