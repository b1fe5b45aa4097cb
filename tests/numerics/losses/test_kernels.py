"""Kernels: loops, and derivatives compared with autograd and finite differences."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from udml_core.numerics.losses.kernels import ChiSquared, Gaussian, Hellinger, Intersection, Kernel, Linear, kernel_of

KERNELS: list[Kernel] = [ChiSquared(), Intersection(0.01), Hellinger(), Gaussian(0.1), Linear()]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)


def histograms(count: int, width: int, seed: int = 0, zeros: float = 0.3) -> Tensor:
    """Return non-negative ℓ1-normalized rows, float64, with a share of zeros."""
    random = torch.Generator().manual_seed(seed)
    rows = torch.rand(count, width, generator=random, dtype=torch.float64)
    rows[torch.rand(count, width, generator=random) < zeros] = 0
    return rows / rows.sum(1, keepdim=True)


def literal(kernel: Kernel, x: Tensor, row: Tensor) -> float:
    """Compute k of two vectors, feature by feature."""
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
    """Compute k (n, d) for autograd, with the (n, d, D) array that the kernels avoid."""
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


@every_kernel
def test_values_equal_a_literal_loop(kernel: Kernel) -> None:
    points, rows = histograms(7, 13), histograms(5, 13, 1)
    expected = [[literal(kernel, x, row) for row in rows] for x in points]
    torch.testing.assert_close(kernel.values(points, rows), torch.tensor(expected, dtype=torch.float64))


@every_kernel
def test_the_pullback_equals_autograd(kernel: Kernel) -> None:
    points, rows = histograms(9, 17), histograms(4, 17, 1, zeros=0).requires_grad_()
    weights = torch.randn(9, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    (dense(kernel, points, rows) * weights).sum().backward()
    torch.testing.assert_close(kernel.pullback(points, rows.detach(), weights), rows.grad)


@every_kernel
def test_the_pullback_equals_finite_differences(kernel: Kernel) -> None:
    points, rows = histograms(6, 11), histograms(3, 11, 1, zeros=0)
    weights = torch.randn(6, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    gradient, step = kernel.pullback(points, rows, weights), 1e-6
    for entry in [(0, 0), (1, 5), (2, 10)]:
        ends = []
        for sign in (1, -1):
            moved = rows.clone()
            moved[entry] += sign * step
            ends.append(float((kernel.values(points, moved) * weights).sum()))
        assert float(gradient[entry]) == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4, abs=1e-6)


@every_kernel
def test_blocks_and_threads_give_the_same_as_single_points(kernel: Kernel) -> None:
    points, rows = histograms(300, 700).float(), histograms(40, 700, 1).float()
    weights = torch.randn(300, 40, generator=torch.Generator().manual_seed(2))
    values = torch.cat([kernel.values(point[None], rows) for point in points])
    torch.testing.assert_close(kernel.values(points, rows), values, rtol=1e-4, atol=1e-6)
    gradients = torch.stack([kernel.pullback(point[None], rows, weight[None])
                             for point, weight in zip(points, weights, strict=True)])
    torch.testing.assert_close(kernel.pullback(points, rows, weights), gradients.sum(0), rtol=1e-3, atol=2e-3)


@every_kernel
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), width=st.integers(1, 40))
def test_kernels_are_symmetric_and_largest_for_equal_histograms(
        kernel: Kernel, seed: int, width: int) -> None:
    points = histograms(4, width, seed, zeros=0)
    values = kernel.values(points, points)
    torch.testing.assert_close(values, values.mT)
    if kernel.name in ("chi2", "hellinger", "rbf"):
        torch.testing.assert_close(values.diagonal(), torch.ones(4, dtype=torch.float64))
        assert (values <= 1 + 1e-12).all()
        assert (values >= 0).all()


def test_the_papers_shifted_chi_squared_is_equal_for_histograms() -> None:
    points, rows = histograms(8, 20), histograms(5, 20, 1)
    both = points[:, None] + rows[None]
    shifted = 1 - ((points[:, None] - rows[None]).square() / both.clamp_min(1e-30)).sum(2) / 2
    torch.testing.assert_close(ChiSquared().values(points, rows), shifted)


def test_zero_divided_by_zero_counts_as_zero() -> None:
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
        error = exact - Intersection(temperature).values(points, rows)
        assert (error >= -1e-12).all()
        assert (error <= 30 * temperature * math.log(2) + 1e-12).all()


def test_kernels_are_built_by_name_with_a_scale_relative_to_the_width() -> None:
    for kernel in KERNELS:
        assert type(kernel_of(kernel.name, 2.0, 50)) is type(kernel)
    assert kernel_of("intersection", 2.0, 50) == Intersection(0.04)
    assert kernel_of("rbf", 2.0, 25) == Gaussian(0.4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@every_kernel
def test_an_accelerator_gives_the_same_as_the_cpu(kernel: Kernel) -> None:
    points, rows = histograms(300, 700).float(), histograms(40, 700, 1).float()
    weights = torch.randn(300, 40, generator=torch.Generator().manual_seed(2))
    on_device = [tensor.cuda() for tensor in (points, rows, weights)]
    torch.testing.assert_close(kernel.values(*on_device[:2]).cpu(), kernel.values(points, rows), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(kernel.pullback(*on_device).cpu(), kernel.pullback(points, rows, weights), rtol=1e-3,
                               atol=2e-3)
