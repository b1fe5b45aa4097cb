"""Kernels k(l, x) whose derivative in l has a closed form, for embeddings [k(l_1, x), …, k(l_d, x)].

A loss of an embedding (n, d) reaches the rows l_t through Σ_i c_it ∇_l k(l_t, x_i) alone, where c is the loss's
gradient in the embedding. So every kernel has two operations: `values` (n, d), and `pullback` (d, D) of such
coefficients. No array of n × d × D entries is ever made: what is no product of matrices is summed by compiled loops on
a CPU, or by blocks.

G. Sharma, B. Schiele, "Scalable Nonlinear Embeddings for Semantic Category-based Image Retrieval", for χ².
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
"""Entries of the largest temporary (b, d, D), on a CPU and on an accelerator."""
THREADED_TERMS = 1 << 21
"""Sums of fewer terms are not worth a thread of their own."""
LEAST_SHARE = 1e-3
"""Of the mean feature: the least entry of l that Hellinger's derivative sees."""
LEAST = 1e-30
"""Below any entry that counts, and added to sums of two of them, so that 0/0 is 0."""


class Kernel(ABC):
    """k(l, x) of points x (n, D) and rows l (d, D). `positive`: defined for entries ≥ 0 only."""

    name: ClassVar[KernelName]
    positive: ClassVar[bool] = True

    @abstractmethod
    def values(self, points: Tensor, rows: Tensor) -> Tensor:
        """k(l_t, x_i), (n, d)."""

    @abstractmethod
    def pullback(self, points: Tensor, rows: Tensor, coefficients: Tensor) -> Tensor:
        """Σ_i c_it ∇_l k(l_t, x_i), (d, D), of coefficients c (n, d)."""


@dataclass(frozen=True)
class Linear(Kernel):
    """k = lᵀx: the embedding is the linear map Lx."""

    name: ClassVar[KernelName] = "linear"
    positive: ClassVar[bool] = False

    def values(self, points: Tensor, rows: Tensor) -> Tensor:
        return points @ rows.mT

    def pullback(self, points: Tensor, rows: Tensor, coefficients: Tensor) -> Tensor:
        return coefficients.mT @ points


@dataclass(frozen=True)
class Hellinger(Kernel):
    """k = Σ √(xl), ∇ = ½√(x/l); `floor` stands in for entries of l below it, where the derivative has no bound."""

    name: ClassVar[KernelName] = "hellinger"
    floor: float = 1e-6

    def values(self, points: Tensor, rows: Tensor) -> Tensor:
        return points.sqrt() @ rows.sqrt().mT

    def pullback(self, points: Tensor, rows: Tensor, coefficients: Tensor) -> Tensor:
        return coefficients.mT @ points.sqrt() / (2 * rows.clamp_min(self.floor).sqrt())


@dataclass(frozen=True)
class Gaussian(Kernel):
    """k = exp(−‖x−l‖²/2s²), ∇ = k(x−l)/s²."""

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
    """k = Σ 2xl/(x+l), ∇ = 2x²/(x+l)², 0/0 = 0. For ℓ1-normalized x it is 1 at l = x; the shifted form
    1 − ½Σ(x−l)²/(x+l) of the paper has the same distances and gradient.

    No product of matrices gives it. On a CPU the sums are compiled loops that keep nothing.
    """

    name: ClassVar[KernelName] = "chi2"

    def values(self, points: Tensor, rows: Tensor) -> Tensor:
        if points.device.type != "cpu":
            return _sum_terms(points, rows, lambda x: 2 * x * rows / (x + rows).clamp_min(LEAST))
        found = points.new_empty(len(points), len(rows))
        x, row, filled = (one.contiguous().numpy() for one in (points, rows, found))
        loop = _chi_squared_loops()[0]
        _threaded(len(x), row.size, lambda start, stop: loop(x[start:stop], row, filled[start:stop]))
        return found

    def pullback(self, points: Tensor, rows: Tensor, coefficients: Tensor) -> Tensor:
        if points.device.type != "cpu":
            return _sum_slopes(points, rows, coefficients, lambda x: 2 * (x / (x + rows).clamp_min(LEAST)).square())
        found = rows.new_zeros(rows.shape)
        x, row, weights, filled = (one.contiguous().numpy() for one in (points, rows, coefficients, found))
        loop = _chi_squared_loops()[1]
        _threaded(len(row), x.size, lambda start, stop: loop(x, row[start:stop], weights[:, start:stop],
                                                             filled[start:stop]))
        return found


@dataclass(frozen=True)
class Intersection(Kernel):
    """k = Σ −t·log(e^{−x/t} + e^{−l/t}), ∇ = σ((x−l)/t): Σ min(x, l) smoothed over the temperature t, and below it by
    at most t·log 2 a feature."""

    name: ClassVar[KernelName] = "intersection"
    temperature: float = 1e-3

    def values(self, points: Tensor, rows: Tensor) -> Tensor:
        t = self.temperature
        return _sum_terms(points, rows, lambda x: -t * torch.logaddexp(-x / t, -rows / t))

    def pullback(self, points: Tensor, rows: Tensor, coefficients: Tensor) -> Tensor:
        return _sum_slopes(points, rows, coefficients, lambda x: torch.sigmoid((x - rows) / self.temperature))


def _sum_terms(points: Tensor, rows: Tensor, term: Callable[[Tensor], Tensor]) -> Tensor:
    """Σ_c of terms (b, d, D) of a block of points (b, 1, D), for all blocks, (n, d)."""
    return torch.cat([term(part[:, None]).sum(2) for part in points.split(_block(rows))])


def _sum_slopes(points: Tensor, rows: Tensor, coefficients: Tensor, slope: Callable[[Tensor], Tensor]) -> Tensor:
    """Σ_i c_it times slopes (b, d, D) of a block of points (b, 1, D), over all blocks, (d, D)."""
    found = torch.zeros_like(rows)
    for part, weights in zip(points.split(_block(rows)), coefficients.split(_block(rows)), strict=True):
        found += (slope(part[:, None]) * weights[:, :, None]).sum(0)
    return found


def _block(rows: Tensor) -> int:
    """Points of a block: on a CPU its temporary stays in the cache."""
    return max(1, (CACHED_ENTRIES if rows.device.type == "cpu" else DEVICE_ENTRIES) // rows.numel())


def _threaded(count: int, each: int, work: Callable[[int, int], None]) -> None:
    """Do work(start, stop) over 0 … count, in as many threads as PyTorch has where there is enough to do."""
    parts = max(1, min(torch.get_num_threads(), count, count * each // THREADED_TERMS))
    if parts == 1:
        work(0, count)
        return
    edges = [count * part // parts for part in range(parts + 1)]
    with ThreadPoolExecutor(parts) as pool:
        list(pool.map(work, edges[:-1], edges[1:]))


@cache
def _chi_squared_loops() -> tuple[Callable[..., Any], Callable[..., Any]]:
    def value(points: Any, rows: Any, found: Any) -> None:
        for i in range(len(points)):
            for t in range(len(rows)):
                total, least = points.dtype.type(0), points.dtype.type(LEAST)
                for c in range(points.shape[1]):
                    x, row = points[i, c], rows[t, c]
                    total += x * row / (x + row + least)
                found[i, t] = total + total

    def pullback(points: Any, rows: Any, coefficients: Any, found: Any) -> None:
        for t in range(len(rows)):
            for i in range(len(points)):
                least = points.dtype.type(LEAST)
                weight = coefficients[i, t] + coefficients[i, t]
                for c in range(points.shape[1]):
                    share = points[i, c] / (points[i, c] + rows[t, c] + least)
                    found[t, c] += weight * share * share

    return _compiled(value), _compiled(pullback)


def _compiled(loop: Callable[..., Any]) -> Callable[..., Any]:
    """Sums may be reordered, so that they are done in registers of many numbers; NaN and infinity stay what they are.
    """
    import numba  # takes half a second, and most commands need no loop

    return numba.njit(nogil=True, fastmath={"reassoc", "contract", "arcp", "nsz"}, error_model="numpy")(loop)


def kernel_of(name: KernelName, scale: float, features: int) -> Kernel:
    """A kernel by its name, its scale told in units that suit ℓ1-normalized points of any width D.

    Args:
        scale: of the intersection's temperature, in units of the mean feature 1/D; of the width of the Gaussian, in
            units of 1/√D. The others have none.
        features: D.
    """
    match name:
        case "chi2":
            return ChiSquared()
        case "intersection":
            return Intersection(scale / features)
        case "hellinger":
            return Hellinger(LEAST_SHARE / features)
        case "rbf":
            return Gaussian(scale * features**-0.5)
        case "linear":
            return Linear()
