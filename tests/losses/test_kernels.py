"""Kernel laws, and every derivative beside finite differences, autograd and a literal loop."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from udml_core.losses.kernels import ChiSquared, Gaussian, Hellinger, Intersection, Kernel, Linear, kernel_of

KERNELS: list[Kernel] = [ChiSquared(), Intersection(0.01), Hellinger(), Gaussian(0.1), Linear()]
each = pytest.mark.parametrize("kernel", KERNELS, ids=lambda one: one.name)


def histograms(count: int, width: int, seed: int = 0, zeros: float = 0.3) -> Tensor:
    """ℓ1-normalized rows ≥ 0, float64, a share of whose entries is 0."""
    random = torch.Generator().manual_seed(seed)
    rows = torch.rand(count, width, generator=random, dtype=torch.float64)
    rows[torch.rand(count, width, generator=random) < zeros] = 0
    return rows / rows.sum(1, keepdim=True)


def literal(kernel: Kernel, x: Tensor, row: Tensor) -> float:
    """k of two vectors, one feature after another, as FORMULAS has it."""
    total = 0.0
    for a, b in zip(x.tolist(), row.tolist(), strict=True):
        match kernel:
            case ChiSquared():
                total += 2 * a * b / (a + b) if a + b else 0.0
            case Intersection(temperature=t):
                total += -t * math.log(math.exp(-a / t) + math.exp(-b / t))
            case Hellinger():
                total += math.sqrt(a * b)
            case Gaussian():
                total += (a - b) ** 2
            case Linear():
                total += a * b
    return math.exp(-total / (2 * kernel.width**2)) if isinstance(kernel, Gaussian) else total


def dense(kernel: Kernel, points: Tensor, rows: Tensor) -> Tensor:
    """k (n, d) with the (n, d, D) array that the kernels avoid, for autograd."""
    x, row = points[:, None], rows[None]
    match kernel:
        case ChiSquared():
            return (2 * x * row / (x + row).clamp_min(1e-30)).sum(2)
        case Intersection(temperature=t):
            return (-t * torch.logaddexp(-x / t, -row / t)).sum(2)
        case Hellinger():
            return (x.sqrt() * row.sqrt()).sum(2)
        case Gaussian(width=s):
            return torch.exp(-(x - row).square().sum(2) / (2 * s**2))
        case _:
            return (x * row).sum(2)


@each
def test_values_are_those_of_a_literal_loop(kernel: Kernel) -> None:
    points, rows = histograms(7, 13), histograms(5, 13, 1)
    expected = [[literal(kernel, x, row) for row in rows] for x in points]
    torch.testing.assert_close(kernel.values(points, rows), torch.tensor(expected, dtype=torch.float64))


@each
def test_the_pullback_is_autograd_of_the_weighted_values(kernel: Kernel) -> None:
    points, rows = histograms(9, 17), histograms(4, 17, 1, zeros=0).requires_grad_()
    weights = torch.randn(9, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    (dense(kernel, points, rows) * weights).sum().backward()
    torch.testing.assert_close(kernel.pullback(points, rows.detach(), weights), rows.grad)


@each
def test_the_pullback_is_what_finite_differences_find(kernel: Kernel) -> None:
    points, rows = histograms(6, 11), histograms(3, 11, 1, zeros=0)
    weights = torch.randn(6, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    found, step = kernel.pullback(points, rows, weights), 1e-6
    for place in [(0, 0), (1, 5), (2, 10)]:
        ends = []
        for sign in (1, -1):
            moved = rows.clone()
            moved[place] += sign * step
            ends.append(float((kernel.values(points, moved) * weights).sum()))
        assert float(found[place]) == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4, abs=1e-6)


@each
def test_large_blocks_and_several_threads_give_what_one_point_at_a_time_gives(kernel: Kernel) -> None:
    points, rows = histograms(300, 700).float(), histograms(40, 700, 1).float()
    weights = torch.randn(300, 40, generator=torch.Generator().manual_seed(2))
    values = torch.cat([kernel.values(one[None], rows) for one in points])
    torch.testing.assert_close(kernel.values(points, rows), values, rtol=1e-4, atol=1e-6)
    pulled = torch.stack([kernel.pullback(one[None], rows, w[None]) for one, w in zip(points, weights, strict=True)])
    torch.testing.assert_close(kernel.pullback(points, rows, weights), pulled.sum(0), rtol=1e-3, atol=2e-3)


@each
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), width=st.integers(1, 40))
def test_a_kernel_is_symmetric_and_a_positive_one_of_histograms_is_greatest_at_itself(
        kernel: Kernel, seed: int, width: int) -> None:
    points = histograms(4, width, seed, zeros=0)
    values = kernel.values(points, points)
    torch.testing.assert_close(values, values.mT)
    if kernel.name in ("chi2", "hellinger", "rbf"):
        torch.testing.assert_close(values.diagonal(), torch.ones(4, dtype=torch.float64))
        assert (values <= 1 + 1e-12).all()
        assert (values >= 0).all()


def test_the_shifted_chi_squared_of_the_paper_is_the_same_for_histograms() -> None:
    points, rows = histograms(8, 20), histograms(5, 20, 1)
    both = points[:, None] + rows[None]
    shifted = 1 - ((points[:, None] - rows[None]).square() / both.clamp_min(1e-30)).sum(2) / 2
    torch.testing.assert_close(ChiSquared().values(points, rows), shifted)


def test_nothing_over_nothing_is_nothing() -> None:
    x = torch.tensor([[0.0, 0.5, 0.5]])
    for row in (torch.zeros(1, 3), torch.tensor([[0.0, 0.0, 1.0]])):
        value, slope = ChiSquared().values(x, row), ChiSquared().pullback(x, row, torch.ones(1, 1))
        assert torch.isfinite(value).all()
        assert slope[0, 0] == 0
        torch.testing.assert_close(slope[0, 1:], 2 * (x[0, 1:] / (x[0, 1:] + row[0, 1:])).square())
    assert ChiSquared().values(torch.zeros(1, 3), torch.zeros(1, 3)) == 0
    assert torch.isfinite(Hellinger().pullback(x, torch.zeros(1, 3), torch.ones(1, 1))).all()


def test_the_smoothed_intersection_approaches_the_intersection_from_below() -> None:
    points, rows = histograms(6, 30), histograms(4, 30, 1)
    exact = torch.minimum(points[:, None], rows[None]).sum(2)
    for temperature in (1e-2, 1e-3, 1e-4):
        short = exact - Intersection(temperature).values(points, rows)
        assert (short >= -1e-12).all()
        assert (short <= 30 * temperature * math.log(2) + 1e-12).all()


def test_kernels_are_found_by_name_with_a_scale_that_suits_any_width() -> None:
    for kernel in KERNELS:
        assert type(kernel_of(kernel.name, 2.0, 50)) is type(kernel)
    assert kernel_of("intersection", 2.0, 50) == Intersection(0.04)
    assert kernel_of("rbf", 2.0, 25) == Gaussian(0.4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@each
def test_an_accelerator_gives_what_the_cpu_gives(kernel: Kernel) -> None:
    points, rows = histograms(300, 700).float(), histograms(40, 700, 1).float()
    weights = torch.randn(300, 40, generator=torch.Generator().manual_seed(2))
    there = [one.cuda() for one in (points, rows, weights)]
    torch.testing.assert_close(kernel.values(*there[:2]).cpu(), kernel.values(points, rows), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(kernel.pullback(*there).cpu(), kernel.pullback(points, rows, weights), rtol=1e-3,
                               atol=2e-3)
