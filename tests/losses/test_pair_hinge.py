"""The pair hinge beside a literal loop and autograd, and within its memory."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest
import torch
from torch import Tensor

from tests.losses.test_kernels import KERNELS, dense, histograms
from udml_core.losses.kernels import ChiSquared, Kernel
from udml_core.losses.pair_hinge import PairHinge


def drawn(count: int, images: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    first = torch.randint(images, (count,), generator=random)
    second = (first + 1 + torch.randint(images - 1, (count,), generator=random)) % images
    return torch.stack([first, second], 1), torch.rand(count, generator=random) < 0.5


def middle(hinge: PairHinge, points: Tensor, rows: Tensor, pairs: Tensor) -> PairHinge:
    """The hinge with a b that lies among the distances, so that all four cases occur."""
    bias = float(hinge.squared(points, rows, pairs).median())
    return PairHinge(hinge.kernel, bias, bias / 5)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda one: one.name)
def test_loss_and_gradient_are_those_of_autograd(kernel: Kernel) -> None:
    points, rows = histograms(12, 15), histograms(4, 15, 1, zeros=0)
    pairs, same = drawn(40, 12)
    hinge = middle(PairHinge(kernel, 0.1, 0.02), points, rows, pairs)
    free = rows.clone().requires_grad_()
    embedding = dense(kernel, points, free)
    squared = (embedding[pairs[:, 0]] - embedding[pairs[:, 1]]).square().sum(1)
    y = torch.where(same, 1.0, -1.0).double()
    expected = (hinge.margin - y * (hinge.bias - squared)).clamp_min(0)
    expected.mean().backward()
    argument, gradient = hinge.gradient(points, rows, pairs, same)
    assert 0 < int((argument > 0).sum()) < len(pairs)
    torch.testing.assert_close(argument.clamp_min(0), expected.detach())
    torch.testing.assert_close(gradient, free.grad)
    torch.testing.assert_close(hinge.loss(hinge.squared(points, rows, pairs), same), expected.detach().mean())


def test_the_gradient_is_that_of_the_papers_loop() -> None:
    """∂l_t = 2yς(k(l_t,x_i) − k(l_t,x_j))(∇k(l_t,x_i) − ∇k(l_t,x_j)), pair by pair and row by row."""
    points, rows = histograms(9, 6), histograms(3, 6, 1)
    pairs, same = drawn(20, 9)
    hinge = middle(PairHinge(ChiSquared(), 0.1, 0.02), points, rows, pairs)
    expected = torch.zeros_like(rows)

    def value(x: Tensor, row: Tensor) -> float:
        return sum(2 * a * b / (a + b) if a + b else 0.0 for a, b in zip(x.tolist(), row.tolist(), strict=True))

    def slope(x: Tensor, row: Tensor) -> Tensor:
        return torch.tensor([2 * a * a / (a + b) ** 2 if a + b else 0.0
                             for a, b in zip(x.tolist(), row.tolist(), strict=True)], dtype=torch.float64)

    for (i, j), is_same in zip(pairs.tolist(), same.tolist(), strict=True):
        y = 1 if is_same else -1
        k = [[value(points[one], row) for row in rows] for one in (i, j)]
        squared = sum((k[0][t] - k[1][t]) ** 2 for t in range(3))
        if hinge.margin - y * (hinge.bias - squared) > 0:
            for t in range(3):
                difference = slope(points[i], rows[t]) - slope(points[j], rows[t])
                expected[t] += 2 * y * (k[0][t] - k[1][t]) * difference / len(pairs)
    torch.testing.assert_close(hinge.gradient(points, rows, pairs, same)[1], expected)


def test_an_image_in_many_pairs_counts_in_each_and_a_pair_with_itself_in_none() -> None:
    points, rows = histograms(5, 8), histograms(2, 8, 1)
    hinge = PairHinge(ChiSquared(), 0.0, 1.0)
    pairs, same = torch.tensor([[0, 1], [0, 1], [0, 2], [3, 3]]), torch.tensor([True, True, False, True])
    together = 4 * hinge.gradient(points, rows, pairs, same)[1]
    alone = [hinge.gradient(points, rows, pairs[one:one + 1], same[one:one + 1])[1] for one in range(4)]
    torch.testing.assert_close(together, sum(alone[1:], alone[0]))
    assert not alone[3].any()


LARGE = """
import resource, torch
from udml_core.losses.kernels import ChiSquared
from udml_core.losses.pair_hinge import PairHinge
random = torch.Generator().manual_seed(0)
points, rows = torch.rand({images}, 4096, generator=random), torch.rand(64, 4096, generator=random)
pairs = torch.randint({images}, ({pairs}, 2), generator=random)
argument, gradient = PairHinge(ChiSquared(), .1, .02).gradient(points, rows, pairs, torch.rand({pairs}) < .5)
assert torch.isfinite(gradient).all()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.parametrize(("images", "pairs", "gigabytes"), [
    (2_000, 500_000, 2.0), pytest.param(50_000, 500_000, 8.0, marks=pytest.mark.benchmark)])
def test_half_a_million_pairs_of_4096_dimensions_fit(images: int, pairs: int, gigabytes: float) -> None:
    if sys.platform != "linux":
        pytest.skip(f"ru_maxrss is in other units on {sys.platform} (page size {resource.getpagesize()})")
    done = subprocess.run([sys.executable, "-c", LARGE.format(images=images, pairs=pairs)], capture_output=True,
                          text=True, check=True)
    assert int(done.stdout) * 1024 < gigabytes * 1e9
