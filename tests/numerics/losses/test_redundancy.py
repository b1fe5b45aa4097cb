"""The loss of Barlow Twins: the printed sums, laws, and values computed by hand."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from udml_core.numerics.losses.redundancy import EPSILON, redundancy_reduction


def two_views(seed: int = 0) -> tuple[Tensor, Tensor]:
    first, second = torch.randn(2, 7, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return first, second


def correlation(first: Tensor, second: Tensor, i: int, j: int) -> Tensor:
    """Return eq. 2 for columns whose mean over the batch was subtracted, with the variances' small constant."""
    a, b = first[:, i] - first[:, i].mean(), second[:, j] - second[:, j].mean()
    return (a @ b) / ((a @ a + 7 * EPSILON).sqrt() * (b @ b + 7 * EPSILON).sqrt())


@pytest.mark.parametrize("weight", [0.005, 0.7])
def test_the_loss_equals_equations_1_and_2(weight: float) -> None:
    first, second = views = [view.requires_grad_() for view in two_views()]
    literal = torch.zeros((), dtype=torch.float64)
    for i in range(4):
        literal = literal + (1 - correlation(first, second, i, i)) ** 2
        for j in range(4):
            if j != i:
                literal = literal + weight * correlation(first, second, i, j) ** 2
    ours = redundancy_reduction(first, second, weight)
    torch.testing.assert_close(ours, literal)
    for one, other in zip(*(torch.autograd.grad(value, views) for value in (ours, literal)), strict=True):
        torch.testing.assert_close(one, other)


def test_scale_and_shift_of_a_dimension_hardly_change_the_loss() -> None:
    first, second = two_views()
    scale, shift = torch.tensor([2.0, 5.0, 0.5, 1.0]), torch.tensor([-3.0, 0.0, 9.0, 1.0])
    torch.testing.assert_close(redundancy_reduction(scale * first + shift, second, 0.1),
                               redundancy_reduction(first, second, 0.1), rtol=1e-3, atol=1e-3)


def test_equal_views_with_uncorrelated_dimensions_have_loss_0_and_opposite_ones_4_a_dimension() -> None:
    rows = torch.tensor([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    assert float(redundancy_reduction(rows, rows, 1.0)) == pytest.approx(0, abs=1e-6)
    assert float(redundancy_reduction(rows, -rows, 1.0)) == pytest.approx(8, rel=1e-4)


def test_two_equal_dimensions_cost_the_weight_twice_and_a_collapsed_one_costs_1() -> None:
    rows = torch.tensor([[1.0, 1], [-1, -1], [1, 1], [-1, -1]])
    assert float(redundancy_reduction(rows, rows, 0.3)) == pytest.approx(0.6, rel=1e-3)
    collapsed = torch.ones(4, 3).requires_grad_()
    loss = redundancy_reduction(collapsed, collapsed, 0.3)
    loss.backward()
    assert float(loss.detach()) == 3
    assert collapsed.grad is not None
    assert collapsed.grad.isfinite().all()
