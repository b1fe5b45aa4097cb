"""Kernels k(l, x) for embeddings [k(l_1, x), …, k(l_d, x)].

The derivatives in l have closed forms. Let c (n, d) be the gradient of a loss with respect to the embedding. By the
chain rule its gradient with respect to the row l_t is Σ_i c_it ∇_l k(l_t, x_i). So every kernel has two operations:
`values` (n, d) and `pullback` (d, D). No array of n × d × D entries is ever allocated: a kernel that is no matrix
product is summed by compiled loops on a CPU, or block by block.

The χ² kernel is from G. Sharma, B. Schiele, "Scalable Nonlinear Embeddings for Semantic Category-based Image
Retrieval".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

KernelName = Literal["chi2", "intersection", "hellinger", "rbf", "linear"]
CACHED_ENTRIES, DEVICE_ENTRIES = 1 << 18, 1 << 24
"""Maximum number of entries of a temporary array (b, d, D), on a CPU and on an accelerator."""
THREADED_TERMS = 1 << 21
"""Minimum number of terms per thread; below it a thread costs more than it saves."""
HELLINGER_FLOOR = 1e-3
"""Smallest entry of l in the derivative of the Hellinger kernel, as a share of the mean feature."""
TINY = 1e-30
"""Added to denominators x + l so that 0/0 is 0. It is far below any relevant entry."""


class Kernel(ABC):
    """A kernel k(l, x) of points x (n, D) and rows l (d, D).

    Attributes:
        name: The name in configurations.
        positive: Whether the kernel is defined for entries ≥ 0 only.
    """

    name: ClassVar[KernelName]
    positive: ClassVar[bool] = True

    @abstractmethod
    def values(self, points: Tensor, rows: Tensor) -> Tensor:
        """Compute k(l_t, x_i), (n, d)."""

    @abstractmethod
    def pullback(self, points: Tensor, rows: Tensor, coefficients: Tensor) -> Tensor:
        """Compute Σ_i c_it ∇_l k(l_t, x_i), (d, D), for coefficients c (n, d)."""


@dataclass(frozen=True)
class Linear(Kernel):
    """The linear kernel k = lᵀx, with which the embedding is the linear map Lx."""

    name: ClassVar[KernelName] = "linear"
    positive: ClassVar[bool] = False

    def values(self, points: Tensor, rows: Tensor) -> Tensor:
        return points @ rows.mT

    def pullback(self, points: Tensor, rows: Tensor, coefficients: Tensor) -> Tensor:
        return coefficients.mT @ points


@dataclass(frozen=True)
class Hellinger(Kernel):
    """The Hellinger kernel k = Σ √(xl), ∇ = ½√(x/l).

    Attributes:
        floor: Lower bound of l in the derivative, which is unbounded near l = 0.
    """

    name: ClassVar[KernelName] = "hellinger"
    floor: float = 1e-6

    def values(self, points: Tensor, rows: Tensor) -> Tensor:
        return points.sqrt() @ rows.sqrt().mT

    def pullback(self, points: Tensor, rows: Tensor, coefficients: Tensor) -> Tensor:
        return coefficients.mT @ points.sqrt() / (2 * rows.clamp_min(self.floor).sqrt())


@dataclass(frozen=True)
class Gaussian(Kernel):
    """The Gaussian kernel k = exp(−‖x−l‖²/2s²), ∇ = k(x−l)/s².

    Attributes:
        width: s.
    """

    name: ClassVar[KernelName] = "rbf"
    positive: ClassVar[bool] = False
    width: float = 1.0

    def values(self, points: Tensor, rows: Tensor) -> Tensor:
        squared = torch.addmm(points.square().sum(1)[:, None] + rows.square().sum(1), points, rows.mT, alpha=-2)
        return torch.exp(-squared.clamp_min(0) / (2 * self.width**2))

    def pullback(self, points: Tensor, rows: Tensor, coefficients: Tensor) -> Tensor:
        weights = coefficients * self.values(points, rows)
        return (weights.mT @ points - weights.sum(0)[:, None] * rows) / self.width**2


@dataclass(frozen=True)
class ChiSquared(Kernel):
    """The χ² kernel k = Σ 2xl/(x+l), ∇ = 2x²/(x+l)², with 0/0 = 0.

    For ℓ1-normalized x it is 1 at l = x. The paper's shifted form 1 − ½Σ(x−l)²/(x+l) has the same distances and
    gradient. The kernel is not a matrix product. On a CPU, compiled loops sum it without temporary arrays.
    """

    name: ClassVar[KernelName] = "chi2"

    def values(self, points: Tensor, rows: Tensor) -> Tensor:
        if points.device.type != "cpu" or torch.compiler.is_exporting():  # a graph has no compiled loops
            return _sum_terms(points, rows, lambda x: 2 * x * rows / (x + rows).clamp_min(TINY))
        result = points.new_empty(len(points), len(rows))
        x, row_array, output = (tensor.contiguous().numpy() for tensor in (points, rows, result))
        loop = _chi_squared_loops()[0]
        _run_threaded(len(x), row_array.size, lambda start, stop: loop(x[start:stop], row_array, output[start:stop]))
        return result

    def pullback(self, points: Tensor, rows: Tensor, coefficients: Tensor) -> Tensor:
        if points.device.type != "cpu":
            return _sum_slopes(points, rows, coefficients, lambda x: 2 * (x / (x + rows).clamp_min(TINY)).square())
        result = rows.new_zeros(rows.shape)
        arrays = (tensor.contiguous().numpy() for tensor in (points, rows, coefficients, result))
        x, row_array, weights, output = arrays
        loop = _chi_squared_loops()[1]
        _run_threaded(len(row_array), x.size, lambda start, stop: loop(x, row_array[start:stop],
                                                                       weights[:, start:stop], output[start:stop]))
        return result


@dataclass(frozen=True)
class Intersection(Kernel):
    """The smoothed intersection kernel k = Σ −t·log(e^{−x/t} + e^{−l/t}).

    Its derivative is ∇ = σ((x−l)/t). It approximates Σ min(x, l) from below, with an error of at most t·log 2 per
    feature.

    Attributes:
        temperature: t.
    """

    name: ClassVar[KernelName] = "intersection"
    temperature: float = 1e-3

    def values(self, points: Tensor, rows: Tensor) -> Tensor:
        t = self.temperature
        return _sum_terms(points, rows, lambda x: -t * torch.logaddexp(-x / t, -rows / t))

    def pullback(self, points: Tensor, rows: Tensor, coefficients: Tensor) -> Tensor:
        return _sum_slopes(points, rows, coefficients, lambda x: torch.sigmoid((x - rows) / self.temperature))


def _sum_terms(points: Tensor, rows: Tensor, term: Callable[[Tensor], Tensor]) -> Tensor:
    """Sum `term` over the features, (n, d).

    `term` maps a block of points (b, 1, D) to terms (b, d, D).
    """
    if torch.compiler.is_exporting():  # blocks would fix the number of points in the graph
        return term(points[:, None]).sum(2)
    return torch.cat([term(part[:, None]).sum(2) for part in points.split(_block_size(rows))])


def _sum_slopes(points: Tensor, rows: Tensor, coefficients: Tensor, slope: Callable[[Tensor], Tensor]) -> Tensor:
    """Sum c_it times `slope` over the points, (d, D).

    `slope` maps a block of points (b, 1, D) to slopes (b, d, D).
    """
    result = torch.zeros_like(rows)
    for part, weights in zip(points.split(_block_size(rows)), coefficients.split(_block_size(rows)), strict=True):
        result += (slope(part[:, None]) * weights[:, :, None]).sum(0)
    return result


def _block_size(rows: Tensor) -> int:
    """Return the number of points per block.

    On a CPU the temporary array then stays in the cache.
    """
    return max(1, (CACHED_ENTRIES if rows.device.type == "cpu" else DEVICE_ENTRIES) // rows.numel())


def _run_threaded(count: int, terms_each: int, work: Callable[[int, int], None]) -> None:
    """Call work(start, stop) on ranges that cover 0 … count.

    At most PyTorch's number of threads run at a time.
    """
    threads = max(1, min(torch.get_num_threads(), count, count * terms_each // THREADED_TERMS))
    if threads == 1:
        work(0, count)
        return
    bounds = [count * part // threads for part in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, bounds[:-1], bounds[1:]))


@cache
def _chi_squared_loops() -> tuple[Callable[..., Any], Callable[..., Any]]:
    # A bare constant such as 2 or TINY would turn float32 sums into float64. Hence the casts and the x + x for 2x.
    def value(points: Any, rows: Any, output: Any) -> None:
        for i in range(len(points)):
            for t in range(len(rows)):
                total, tiny = points.dtype.type(0), points.dtype.type(TINY)
                for c in range(points.shape[1]):
                    x, row = points[i, c], rows[t, c]
                    total += x * row / (x + row + tiny)
                output[i, t] = total + total

    def pullback(points: Any, rows: Any, coefficients: Any, output: Any) -> None:
        for t in range(len(rows)):
            for i in range(len(points)):
                tiny = points.dtype.type(TINY)
                weight = coefficients[i, t] + coefficients[i, t]
                for c in range(points.shape[1]):
                    share = points[i, c] / (points[i, c] + rows[t, c] + tiny)
                    output[t, c] += weight * share * share

    return _compile(value), _compile(pullback)


def _compile(loop: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop whose sums may be reordered for vector instructions.

    NaN and infinity keep their meaning.
    """
    import numba  # takes half a second to import, and most commands need no loop

    return numba.njit(nogil=True, fastmath={"reassoc", "contract", "arcp", "nsz"}, error_model="numpy")(loop)


def kernel_of(name: KernelName, scale: float, features: int) -> Kernel:
    """Build a kernel, with a scale that suits ℓ1-normalized points of any width D.

    Args:
        name: The kernel's name.
        scale: The temperature of the intersection in units of the mean feature 1/D, or the width of the Gaussian in
            units of 1/√D. The other kernels have no scale.
        features: D, the number of features.
    """
    match name:
        case "chi2":
            return ChiSquared()
        case "intersection":
            return Intersection(scale / features)
        case "hellinger":
            return Hellinger(HELLINGER_FLOOR / features)
        case "rbf":
            return Gaussian(scale * features**-0.5)
        case "linear":
            return Linear()
