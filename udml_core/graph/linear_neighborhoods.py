"""Linear neighborhoods: at every point the flat of a few dimensions that its nearest neighbors lie in.

S. Bhatnagar, N. Ahuja, "Piecewise-Linear Manifolds for Deep Metric Learning", section 3.2.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from udml_core.explanations import LinearNeighborhoods

ROUNDING = 1e-9
"""How far below T a quality may lie and still pass, so that T = 1 admits what lies in the flat exactly."""

NOTHING = 1e-14
"""A direction with less than this share of the first one's variance is rounding, not a direction."""

TOGETHER = 1024
"""Neighborhoods that are built in one piece; more only take memory."""


def linear_neighborhoods(points: Tensor, n_neighbors: int = 10, dimension: int = 3, threshold: float = 0.9,
                         admission: bool = True) -> LinearNeighborhoods:
    """The linear neighborhood of each of the points, among themselves.

    Args:
        points: (n, d) on any device; for PLM the teacher's embeddings of a batch.
        n_neighbors: k, how many candidates each point has: its nearest by Euclidean distance, itself excluded.
        dimension: m of the flat.
        threshold: T, the least share of every member's squared distance that the flat must hold.
        admission: without it all candidates are members (ablation 1).

    Returns:
        A record whose `neighbors` are rows of `points`. All distances are searched: for chosen points of a large set,
        or points outside it, find candidates with `udml_core.neighbors.nearest` and call `linear_neighborhoods_at`.

    Raises:
        ValueError: k < m, k ≥ n, m > d, T outside (0, 1], or points that are not finite.
    """
    _check_points(points)
    if not 1 <= n_neighbors < len(points):
        raise ValueError(f"the number of neighbors must be at least 1 and below the number of points, {len(points)}, "
                         f"got {n_neighbors}")
    _check_flat(dimension, points.shape[1], n_neighbors, threshold)
    wide = points.detach().double()  # in which no near tie of two neighbors is decided by rounding
    found = _neighborhoods(wide, wide, _nearest(wide, n_neighbors), dimension, threshold, admission)
    return _in(points.dtype, found)


def linear_neighborhoods_at(centers: Tensor, points: Tensor, neighbors: Tensor, dimension: int = 3,
                            threshold: float = 0.9, admission: bool = True) -> LinearNeighborhoods:
    """The linear neighborhood at each center, among candidates that are known.

    A subspace *at* the center: v_j = y_j − center, never centered on the mean. Starting with the m − 1 nearest, each
    next candidate is a member if the flat that fits it and the members best holds at least T of every one of them:
    ‖Uᵀv‖² ≥ T‖v‖². The paper's text would test the members only, and so never the candidate.

    Args:
        centers: (c, d).
        points: (n, d).
        neighbors: (c, k) int64, rows of `points`, nearest first: they are tested in this order.
        dimension, threshold, admission: as for `linear_neighborhoods`.

    Returns:
        The record, without gradients, in the dtype of `centers`. Inside everything is float64: the Gram matrix of a
        near duplicate holds the square of its distance.

    Raises:
        ValueError: as for `linear_neighborhoods`, or shapes that do not fit.
    """
    _check_points(points)
    _check_points(centers)
    _check_neighbors(centers, points, neighbors)
    _check_flat(dimension, points.shape[1], neighbors.shape[1], threshold)
    found = _neighborhoods(centers.detach(), points.detach(), neighbors, dimension, threshold, admission)
    return _in(centers.dtype, found)


def _neighborhoods(centers: Tensor, points: Tensor, neighbors: Tensor, dimension: int, threshold: float,
                   admission: bool) -> LinearNeighborhoods:
    pieces = zip(centers.split(TOGETHER), neighbors.split(TOGETHER), strict=True)
    built = [_build(points, *piece, dimension, threshold, admission) for piece in pieces]
    members, basis, quality, worst = (torch.cat(part) for part in zip(*built, strict=True))
    return LinearNeighborhoods(neighbors=neighbors, members=members, basis=basis, quality=quality, worst=worst)


def _in(dtype: torch.dtype, found: LinearNeighborhoods) -> LinearNeighborhoods:
    return replace(found, basis=found.basis.to(dtype), quality=found.quality.to(dtype), worst=found.worst.to(dtype))


def _build(points: Tensor, centers: Tensor, neighbors: Tensor, dimension: int, threshold: float,
           admission: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    offsets = points[neighbors].double().sub_(centers[:, None])
    gram = offsets @ offsets.mT
    if admission:
        members, worst = _admitted(gram, dimension, threshold)
    else:
        members = torch.ones_like(neighbors, dtype=torch.bool)
        worst = torch.ones_like(gram[:, 0])
    basis = _basis(offsets, gram, members, dimension)
    held = (offsets @ basis).square().sum(2)
    return members, basis, _quality(held, gram), worst


def _admitted(gram: Tensor, dimension: int, threshold: float) -> tuple[Tensor, Tensor]:
    """Who is a member, and the worst quality at each candidate's test (c, k).

    With G = WΛWᵀ, the Gram matrix of a tested set, the top m right singular vectors hold Σ_{r≤m} λ_r W_sr² of
    ‖v_s‖² = G_ss. The first m have rank m at most and are held whole, so the tests begin behind them. Each set's Gram
    is kept packed, members first and a candidate behind them, zero beyond: LAPACK is quick with what is zero.
    """
    count, k = gram.shape[:2]
    worst = torch.ones_like(gram[:, 0])
    members = torch.zeros_like(worst, dtype=torch.bool)
    members[:, :dimension] = True
    places = torch.arange(k, device=gram.device)
    order = places.repeat(count, 1)
    size = torch.full((count, 1), dimension, device=gram.device)
    packed = torch.zeros_like(gram)
    packed[:, :dimension, :dimension] = gram[:, :dimension, :dimension]
    for candidate in range(dimension, k):
        order.scatter_(1, size, candidate)
        line = gram[:, candidate].gather(1, order) * (places <= size)
        packed.scatter_(1, size[:, None].expand(-1, 1, k), line[:, None])
        packed.scatter_(2, size[:, None].expand(-1, k, 1), line[:, :, None])
        width = int(size.max()) + 1
        tested = packed[:, :width, :width]
        values, vectors = torch.linalg.eigh(tested)
        held = vectors[:, :, -dimension:].square() @ values[:, -dimension:, None]
        worst[:, candidate] = _quality(held.squeeze(2), tested).amin(1)
        members[:, candidate] = worst[:, candidate] >= threshold - ROUNDING
        size += members[:, candidate, None]
    return members, worst


def _basis(offsets: Tensor, gram: Tensor, members: Tensor, dimension: int) -> Tensor:
    """The top m right singular vectors of the members' offsets, (c, d, m), completed where they span less.

    They are VᵀW; Householder's QR gives them unit length and, since its reflectors are orthonormal whatever they
    reflect, completes columns that are zero.
    """
    values, vectors = torch.linalg.eigh(gram * (members[:, :, None] & members[:, None]))
    largest = values[:, -dimension:].flip(1)
    scale = torch.where(largest > NOTHING * largest[:, :1], largest, torch.inf).rsqrt()
    weights = vectors[:, :, -dimension:].flip(2) * members[:, :, None] * scale[:, None]
    return torch.linalg.qr(offsets.mT @ weights).Q


def _quality(held: Tensor, gram: Tensor) -> Tensor:
    """‖Uᵀv‖²/‖v‖², at most 1; a candidate at the center itself, v = 0, is held whole."""
    whole = gram.diagonal(dim1=1, dim2=2)
    return torch.where(whole > 0, held / whole, 1).clamp_max(1)


def _nearest(points: Tensor, k: int) -> Tensor:
    """(n, k) int64, nearest first."""
    length = points.square().sum(1)
    found = []
    for start in range(0, len(points), TOGETHER):
        squared = torch.addmm(length, points[start:start + TOGETHER], points.mT, alpha=-2)  # less each row's own length
        squared.diagonal(start).fill_(torch.inf)
        found.append(squared.topk(k, largest=False).indices)
    return torch.cat(found)


def _check_points(points: Tensor) -> None:
    if points.ndim != 2 or not points.is_floating_point():
        raise ValueError(f"points must be a matrix (n, d) of floats, got {points.dtype} of shape {tuple(points.shape)}")
    if points.numel() and not torch.stack(points.aminmax()).isfinite().all():  # NaN is both the least and the greatest
        broken = int((~points.isfinite().all(1)).sum())
        raise ValueError(f"points must be finite, and {broken} of {len(points)} rows hold NaN or infinity")


def _check_neighbors(centers: Tensor, points: Tensor, neighbors: Tensor) -> None:
    if centers.shape[1] != points.shape[1]:
        raise ValueError(f"centers and points must have the same dimension, got {centers.shape[1]} and "
                         f"{points.shape[1]}")
    if neighbors.ndim != 2 or not 1 <= len(neighbors) == len(centers):
        raise ValueError(f"each center needs a row of neighbors, got {len(centers)} centers and neighbors of shape "
                         f"{tuple(neighbors.shape)}")
    if neighbors.is_floating_point() or bool(((neighbors < 0) | (neighbors >= len(points))).any()):
        raise ValueError(f"neighbors must be rows of points, whole numbers from 0 to {len(points) - 1}, got "
                         f"{neighbors.dtype} from {neighbors.min()} to {neighbors.max()}")


def _check_flat(dimension: int, width: int, n_neighbors: int, threshold: float) -> None:
    if not 1 <= dimension <= width:
        raise ValueError(f"the dimension of a flat must be between 1 and the points' {width}, got {dimension}")
    if n_neighbors < dimension:
        raise ValueError(f"a flat of dimension {dimension} needs at least {dimension} neighbors, got {n_neighbors}. "
                         f"Raise the number of neighbors or lower the dimension.")
    if not 0 < threshold <= 1:
        raise ValueError(f"the threshold must be above 0 and at most 1, got {threshold}")
