"""Linear neighborhoods: a low-dimensional subspace at each point.

It is fitted to the nearest neighbors of the point.

S. Bhatnagar, N. Ahuja, "Piecewise-Linear Manifolds for Deep Metric Learning", section 3.2.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import torch
from torch import Tensor

from udml_core.numerics.explanations import LinearNeighborhoods

Through = Literal["point", "origin"]
"""What a subspace passes through: its own point, or the origin of the embedding."""

ROUNDING = 1e-9
"""Tolerance below T, so that T = 1 admits points that lie in the subspace up to rounding."""

RANK_TOLERANCE = 1e-14
"""A direction with less than this share of the first direction's variance counts as zero."""

BATCH = 1024
"""Number of neighborhoods built at once. A larger batch needs more memory and is not faster."""


def linear_neighborhoods(points: Tensor, n_neighbors: int = 10, dimension: int = 3, threshold: float = 0.9,
                         admission: bool = True, through: Through = "point") -> LinearNeighborhoods:
    """Fit a linear neighborhood at every point, with the other points as candidates.

    This function computes all n² distances. For selected points of a large set, or for points outside the set, find
    the candidates with `udml_core.numerics.neighbors.nearest` and call `linear_neighborhoods_at`.

    Args:
        points: (n, d) on any device; for PLM the teacher's embeddings of a batch.
        n_neighbors: k, the number of candidates: the nearest points by Euclidean distance, without the point itself.
        dimension: m, the dimension of the subspace.
        threshold: T, the smallest share of each member's squared distance that the subspace must contain.
        admission: Test the candidates. Without it all candidates are members (ablation 1).
        through: What the subspace passes through, see `linear_neighborhoods_at`.

    Returns:
        The record; its `neighbors` are row numbers of `points`.

    Raises:
        ValueError: k < m, k ≥ n, m > d, T outside (0, 1], an unknown reading, or points that are not finite.
    """
    _check_points(points)
    if not 1 <= n_neighbors < len(points):
        raise ValueError(f"The number of neighbors must be at least 1 and below the number of points, {len(points)}, "
                         f"got {n_neighbors}.")
    _check_parameters(dimension, points.shape[1], n_neighbors, threshold, through)
    exact = points.detach().double()  # In float32 rounding would decide between neighbors at almost equal distances.
    neighborhoods = _neighborhoods(exact, exact, _nearest(exact, n_neighbors), dimension, threshold, admission,
                                   through)
    return _as_dtype(neighborhoods, points.dtype)


def linear_neighborhoods_at(centers: Tensor, points: Tensor, neighbors: Tensor, dimension: int = 3,
                            threshold: float = 0.9, admission: bool = True,
                            through: Through = "point") -> LinearNeighborhoods:
    """Fit a linear neighborhood at each center, with known candidates.

    The set of members begins with the center and its first m − 1 candidates. Each further candidate is tested: the
    best m-dimensional subspace of the enlarged set must contain at least T of every v in the set, ‖Uᵀv‖² ≥ T‖v‖². The
    paper's text tests the previous members only, so it would never test the candidate itself.

    The paper does not say what the subspace passes through. The mean of the members is subtracted in neither reading:

    - "point": The subspace passes through the center, v_j = y_j − center. The center itself is v = 0 and always lies
      in it, so the first m candidates are members without a test.
    - "origin": The subspace passes through the origin of the embedding, v_j = y_j, and the center is a vector like
      its candidates. This matches the paper's count: m points, the center among them, have no error, and the m-th
      candidate is the first to be tested. So only m − 1 candidates are members without a test. The center must reach
      T in every test as well.

    With k = 10, m = 3 and T = 0.9, batches of PLM on bird photographs have 3.6 members on average at the start through
    the center, of which 3 need no test, and 3.7 through the origin, of which 2 need none. If the features are not
    centered, it is 5.6 through the origin, because a subspace that contains their common mean contains most of every
    vector.

    Args:
        centers: (c, d).
        points: (n, d).
        neighbors: (c, k) int64, row numbers of `points`, nearest first. Candidates are tested in this order.
        dimension: m, the dimension of the subspace.
        threshold: T, the smallest share of each member's squared distance that the subspace must contain.
        admission: Test the candidates. Without it all candidates are members (ablation 1).
        through: What the subspace passes through: the center ("point") or the origin of the embedding ("origin").

    Returns:
        The record, without gradients, in the dtype of `centers`. The computation is in float64, because a Gram matrix
        holds squared distances and a near duplicate's would vanish in float32.

    Raises:
        ValueError: As for `linear_neighborhoods`, or shapes that do not match.
    """
    _check_points(points)
    _check_points(centers)
    _check_neighbors(centers, points, neighbors)
    _check_parameters(dimension, points.shape[1], neighbors.shape[1], threshold, through)
    neighborhoods = _neighborhoods(centers.detach(), points.detach(), neighbors, dimension, threshold, admission,
                                   through)
    return _as_dtype(neighborhoods, centers.dtype)


def _neighborhoods(centers: Tensor, points: Tensor, neighbors: Tensor, dimension: int, threshold: float,
                   admission: bool, through: Through) -> LinearNeighborhoods:
    batches = zip(centers.split(BATCH), neighbors.split(BATCH), strict=True)
    parts = [_fit(points, *batch, dimension, threshold, admission, through) for batch in batches]
    members, basis, quality, worst = (torch.cat(part) for part in zip(*parts, strict=True))
    return LinearNeighborhoods(neighbors=neighbors, members=members, basis=basis, quality=quality, worst=worst)


def _as_dtype(record: LinearNeighborhoods, dtype: torch.dtype) -> LinearNeighborhoods:
    return replace(record, basis=record.basis.to(dtype), quality=record.quality.to(dtype),
                   worst=record.worst.to(dtype))


def _fit(points: Tensor, centers: Tensor, neighbors: Tensor, dimension: int, threshold: float, admission: bool,
         through: Through) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return members, basis, quality and worst of one batch of centers.

    The shapes are (c, k), (c, d, m), (c, k) and (c, k).
    """
    vectors = points[neighbors].double()
    if through == "point":
        vectors.sub_(centers[:, None])
    else:
        # The center is the first of the m vectors that need no test. It is no candidate and left out of the record.
        vectors = torch.cat([centers.double()[:, None], vectors], dim=1)
    # All tests work on k×k Gram matrices. They are much smaller than the vectors, since k is far below d.
    gram = vectors @ vectors.mT
    if admission:
        members, worst = _admit(gram, dimension, threshold)
    else:
        members = torch.ones_like(gram[:, 0], dtype=torch.bool)
        worst = torch.ones_like(gram[:, 0])
    basis = _basis(vectors, gram, members, dimension)
    quality = _quality((vectors @ basis).square().sum(2), gram)
    candidates = slice(-neighbors.shape[1], None)
    return members[:, candidates], basis, quality[:, candidates], worst[:, candidates]


def _admit(gram: Tensor, dimension: int, threshold: float) -> tuple[Tensor, Tensor]:
    """Return the members (c, k) and the lowest quality in each vector's test (c, k).

    With G = WΛWᵀ, the Gram matrix of a tested set, the projection of v_s on the top m right singular vectors has the
    squared length Σ_{r≤m} λ_r W_sr², and ‖v_s‖² = G_ss. So no singular vectors in d dimensions are needed.
    """
    count, k = gram.shape[:2]
    worst = torch.ones_like(gram[:, 0])
    members = torch.zeros_like(worst, dtype=torch.bool)
    # Any m vectors lie in a subspace of dimension m, so the first m need no test.
    members[:, :dimension] = True
    slots = torch.arange(k, device=gram.device)
    order = slots.repeat(count, 1)
    size = torch.full((count, 1), dimension, device=gram.device)
    # The number of members differs between centers. Each center's Gram matrix is kept packed: the members first, the
    # candidate next, zeros after it. Zero rows add zero eigenvalues only, so one batched eigh serves all centers.
    packed = torch.zeros_like(gram)
    packed[:, :dimension, :dimension] = gram[:, :dimension, :dimension]
    for candidate in range(dimension, k):
        # Write the candidate after the members. The next candidate overwrites a rejected one.
        order.scatter_(1, size, candidate)
        row = gram[:, candidate].gather(1, order) * (slots <= size)
        packed.scatter_(1, size[:, None].expand(-1, 1, k), row[:, None])
        packed.scatter_(2, size[:, None].expand(-1, k, 1), row[:, :, None])
        width = int(size.max()) + 1
        tested = packed[:, :width, :width]
        values, vectors = torch.linalg.eigh(tested)
        projected = vectors[:, :, -dimension:].square() @ values[:, -dimension:, None]
        worst[:, candidate] = _quality(projected.squeeze(2), tested).amin(1)
        members[:, candidate] = worst[:, candidate] >= threshold - ROUNDING
        size += members[:, candidate, None]
    return members, worst


def _basis(vectors: Tensor, gram: Tensor, members: Tensor, dimension: int) -> Tensor:
    """Return the top m right singular vectors of the members' v, (c, d, m).

    If the members have a rank below m, the basis is completed to m orthonormal columns.
    """
    # The right singular vectors are VᵀWΛ^-½. Columns of zero variance become zero instead of infinite.
    values, rotations = torch.linalg.eigh(gram * (members[:, :, None] & members[:, None]))
    largest = values[:, -dimension:].flip(1)
    scale = torch.where(largest > RANK_TOLERANCE * largest[:, :1], largest, torch.inf).rsqrt()
    weights = rotations[:, :, -dimension:].flip(2) * members[:, :, None] * scale[:, None]
    # Householder QR removes the rounding from the orthonormal columns, and replaces zero columns by orthonormal ones.
    return torch.linalg.qr(vectors.mT @ weights).Q


def _quality(projected: Tensor, gram: Tensor) -> Tensor:
    """Return ‖Uᵀv‖²/‖v‖², at most 1.

    It is 1 for v = 0, such as a candidate at the center itself.
    """
    squared = gram.diagonal(dim1=1, dim2=2)
    return torch.where(squared > 0, projected / squared, 1).clamp_max(1)


def _nearest(points: Tensor, k: int) -> Tensor:
    """Return each point's k nearest other points, (n, k) int64, nearest first.

    They are row numbers.
    """
    lengths = points.square().sum(1)
    parts = []
    for start in range(0, len(points), BATCH):
        # ‖x‖² of the row's own point is left out: it does not change the order within a row.
        squared = torch.addmm(lengths, points[start:start + BATCH], points.mT, alpha=-2)
        squared.diagonal(start).fill_(torch.inf)
        parts.append(squared.topk(k, largest=False).indices)
    return torch.cat(parts)


def _check_points(points: Tensor) -> None:
    if points.ndim != 2 or not points.is_floating_point():
        raise ValueError(f"Points must be a matrix (n, d) of floats, got {points.dtype} of shape "
                         f"{tuple(points.shape)}.")
    if points.numel() and not torch.stack(points.aminmax()).isfinite().all():  # aminmax returns NaN if any entry is
        broken = int((~points.isfinite().all(1)).sum())
        raise ValueError(f"Points must be finite, but {broken} of {len(points)} rows contain NaN or infinity.")


def _check_neighbors(centers: Tensor, points: Tensor, neighbors: Tensor) -> None:
    if centers.shape[1] != points.shape[1]:
        raise ValueError(f"Centers and points must have the same dimension, got {centers.shape[1]} and "
                         f"{points.shape[1]}.")
    if neighbors.ndim != 2 or not 1 <= len(neighbors) == len(centers):
        raise ValueError(f"Each center needs a row of neighbors, got {len(centers)} centers and neighbors of shape "
                         f"{tuple(neighbors.shape)}.")
    if neighbors.is_floating_point() or bool(((neighbors < 0) | (neighbors >= len(points))).any()):
        raise ValueError(f"Neighbors must be row numbers of the points, integers from 0 to {len(points) - 1}, got "
                         f"{neighbors.dtype} from {neighbors.min()} to {neighbors.max()}.")


def _check_parameters(dimension: int, width: int, n_neighbors: int, threshold: float,
                      through: Through) -> None:
    if not 1 <= dimension <= width:
        raise ValueError(f"The dimension of a neighborhood must be between 1 and that of the points, {width}, "
                         f"got {dimension}.")
    if n_neighbors < dimension:
        raise ValueError(f"A neighborhood of dimension {dimension} needs at least {dimension} neighbors, got "
                         f"{n_neighbors}. Raise the number of neighbors or lower the dimension.")
    if not 0 < threshold <= 1:
        raise ValueError(f"The threshold must be above 0 and at most 1, got {threshold}.")
    if through not in get_args(Through):
        raise ValueError(f"A neighborhood must pass through 'point' or 'origin', got {through!r}.")
