"""The pair hinge loss: a literal loop, autograd, and bounded memory."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest
import torch
from torch import Tensor

from tests.numerics.losses.test_kernels import KERNELS, dense, histograms
from udml_core.numerics.losses.kernels import ChiSquared, Kernel
from udml_core.numerics.losses.pair_hinge import PairHinge


def random_pairs(count: int, images: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    first = torch.randint(images, (count,), generator=random)
    second = (first + 1 + torch.randint(images - 1, (count,), generator=random)) % images
    return torch.stack([first, second], 1), torch.rand(count, generator=random) < 0.5


def with_median_bias(hinge: PairHinge, points: Tensor, rows: Tensor, pairs: Tensor) -> PairHinge:
    """Set b to the median of the distances.

    Similar and dissimilar pairs then lie on both sides of the margin.
    """
    bias = float(hinge.squared(points, rows, pairs).median())
    return PairHinge(hinge.kernel, bias, bias / 5)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_loss_and_gradient_equal_autograd(kernel: Kernel) -> None:
    points, rows = histograms(12, 15), histograms(4, 15, 1, zeros=0)
    pairs, same = random_pairs(40, 12)
    hinge = with_median_bias(PairHinge(kernel, 0.1, 0.02), points, rows, pairs)
    leaf = rows.clone().requires_grad_()
    embedding = dense(kernel, points, leaf)
    squared = (embedding[pairs[:, 0]] - embedding[pairs[:, 1]]).square().sum(1)
    y = torch.where(same, 1.0, -1.0).double()
    expected = (hinge.margin - y * (hinge.bias - squared)).clamp_min(0)
    expected.mean().backward()
    argument, gradient = hinge.gradient(points, rows, pairs, same)
    assert 0 < int((argument > 0).sum()) < len(pairs)
    torch.testing.assert_close(argument.clamp_min(0), expected.detach())
    torch.testing.assert_close(gradient, leaf.grad)
    torch.testing.assert_close(hinge.loss(hinge.squared(points, rows, pairs), same), expected.detach().mean())


def test_the_gradient_equals_the_papers_loop() -> None:
    """The loop adds each pair's part of the gradient of each row.

    The part is ∂l_t = 2yς(k(l_t,x_i) − k(l_t,x_j))(∇k(l_t,x_i) − ∇k(l_t,x_j)).
    """
    points, rows = histograms(9, 6), histograms(3, 6, 1)
    pairs, same = random_pairs(20, 9)
    hinge = with_median_bias(PairHinge(ChiSquared(), 0.1, 0.02), points, rows, pairs)
    expected = torch.zeros_like(rows)

    def value(x: Tensor, row: Tensor) -> float:
        return sum(2 * a * b / (a + b) if a + b else 0.0 for a, b in zip(x.tolist(), row.tolist(), strict=True))

    def slope(x: Tensor, row: Tensor) -> Tensor:
        return torch.tensor([2 * a * a / (a + b) ** 2 if a + b else 0.0
                             for a, b in zip(x.tolist(), row.tolist(), strict=True)], dtype=torch.float64)

    for (i, j), is_same in zip(pairs.tolist(), same.tolist(), strict=True):
        y = 1 if is_same else -1
        k = [[value(points[image], row) for row in rows] for image in (i, j)]
        squared = sum((k[0][t] - k[1][t]) ** 2 for t in range(3))
        if hinge.margin - y * (hinge.bias - squared) > 0:
            for t in range(3):
                difference = slope(points[i], rows[t]) - slope(points[j], rows[t])
                expected[t] += 2 * y * (k[0][t] - k[1][t]) * difference / len(pairs)
    torch.testing.assert_close(hinge.gradient(points, rows, pairs, same)[1], expected)


def test_an_image_counts_in_each_of_its_pairs_but_not_in_a_pair_with_itself() -> None:
    points, rows = histograms(5, 8), histograms(2, 8, 1)
    hinge = PairHinge(ChiSquared(), 0.0, 1.0)
    pairs, same = torch.tensor([[0, 1], [0, 1], [0, 2], [3, 3]]), torch.tensor([True, True, False, True])
    total = 4 * hinge.gradient(points, rows, pairs, same)[1]
    single = [hinge.gradient(points, rows, pairs[i:i + 1], same[i:i + 1])[1] for i in range(4)]
    torch.testing.assert_close(total, sum(single[1:], single[0]))
    assert not single[3].any()


GROWTH = """
import resource, torch
from udml_core.numerics.losses.kernels import ChiSquared
from udml_core.numerics.losses.pair_hinge import PairHinge
random = torch.Generator().manual_seed(0)
hinge = PairHinge(ChiSquared(), .1, .02)
points, rows = torch.rand({images}, 4096, generator=random), torch.rand(64, 4096, generator=random)
pairs, same = torch.randint({images}, ({pairs}, 2), generator=random), torch.rand({pairs}) < .5
hinge.gradient(points[:2], rows, torch.tensor([[0, 1]]), same[:1])  # compiles the loops
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
argument, gradient = hinge.gradient(points, rows, pairs, same)
assert torch.isfinite(gradient).all()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("images", "pairs", "gigabytes"), [
    (500, 100_000, 0.4), pytest.param(50_000, 500_000, 2.0, marks=pytest.mark.benchmark)])
def test_memory_does_not_grow_with_pairs_or_images_times_dimensions(images: int, pairs: int, gigabytes: float) -> None:
    """An array of pairs × 4096 float32 numbers would take 1.6 GB.

    An array of images × 64 × 4096 would take 0.5 GB.
    """
    if sys.platform != "linux":
        pytest.skip(f"ru_maxrss has another unit on {sys.platform} (page size {resource.getpagesize()})")
    completed = subprocess.run([sys.executable, "-c", GROWTH.format(images=images, pairs=pairs)], capture_output=True,
                               text=True, check=True)
    assert int(completed.stdout) * 1024 < gigabytes * 1e9
