"""Metrics M from labeled pairs and a graph, in closed form or by projected gradient: what SSDML is compared with.

S and D are the mean outer products (d, d) of the differences of similar and dissimilar labeled pairs, R that of a
graph's weighted edges: R = X𝓛Xᵀ/Σw, so that all three have one scale however many images there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

Report = Callable[[float], None]
MOST_HALVINGS = 60
CHUNK = 16_384


def untold(share: float) -> None:
    """A `Report` to nobody."""


class Pairs(NamedTuple):
    """Labeled pairs, (p, 2) int64 positions each."""

    similar: Tensor
    dissimilar: Tensor


class Bounds(NamedTuple):
    """Of squared distances: similar pairs below `near`, dissimilar ones above `far`."""

    near: float
    far: float


def labeled_pairs(labels: Tensor) -> Pairs:
    """All pairs i < j of labeled points; labels (n,), −1 where there is none."""
    known = torch.nonzero(labels >= 0).squeeze(1)
    one, other = torch.triu_indices(len(known), len(known), 1).unbind(0)
    same = labels[known[one]] == labels[known[other]]
    pairs = torch.stack([known[one], known[other]], dim=1)
    return Pairs(pairs[same], pairs[~same])


def scatter(points: Tensor, pairs: Tensor, weights: Tensor | None = None) -> Tensor:
    """The weighted mean outer product of the pairs' differences, (d, d); 0 without pairs.

    Args:
        points: (n, d). pairs: (p, 2). weights: (p,), at least 0; all 1 without.
    """
    shares = points.new_ones(len(pairs)) if weights is None else weights
    total = points.new_zeros(points.shape[1], points.shape[1])
    for part, share in zip(pairs.split(CHUNK), shares.split(CHUNK), strict=True):
        difference = points[part[:, 0]] - points[part[:, 1]]
        total += difference.mT @ (share[:, None] * difference)
    return total / shares.sum().clamp_min(1e-12)


def laplacian_metric(similar: Tensor, dissimilar: Tensor, edges: Tensor, weight_similar: float = 1.0,
                     weight_dissimilar: float = 1.0, weight_edges: float = 1.0) -> tuple[Tensor, float]:
    """LRML: min γs·tr(MS) − γd·tr(MD) + β·tr(MR) over M ⪰ 0, log|M| ≥ 0 (S. Hoi, W. Liu, S. Chang 2010; SSDML eq. 2).

    With B = βR + γsS − γdD ≻ 0 it is M = |B|^{1/d}B⁻¹. Otherwise the objective has no lower bound: γd is halved until
    B is positive definite, at last left out, and R gets a ridge where it is singular.

    Returns:
        M (d, d), and the γd that was used.
    """
    base = _ridged(weight_edges * edges + weight_similar * similar)
    for halvings in range(MOST_HALVINGS + 1):
        used = weight_dissimilar / 2**halvings if halvings < MOST_HALVINGS else 0.0
        values, vectors = torch.linalg.eigh(base - used * dissimilar)
        if values[0] > 1e-9 * values[-1]:
            break
    scale = values.log().mean().exp()
    return (vectors * (scale / values)) @ vectors.mT, used


def close_metric(prior: Tensor, edges: Tensor, weight_edges: float = 1.0) -> Tensor:
    """APLLR and APIT: min D_Burg(M, M0) + λ·tr(MR), which is M = (M0⁻¹ + λR)⁻¹ (U. Dutta, C. Sekhar 2018, inferred).

    Written M0^½(I + λM0^½RM0^½)⁻¹M0^½, so that M0 need not be invertible.
    """
    root = matrix_root(prior)
    inner = torch.eye(len(prior), dtype=prior.dtype, device=prior.device) + weight_edges * root @ edges @ root
    return _symmetric(root @ torch.linalg.inv(_symmetric(inner)) @ root)


def likelihood_ratio_prior(similar: Tensor, dissimilar: Tensor) -> tuple[Tensor, int]:
    """KISSME's metric, the positive part of S⁻¹ − D⁻¹, plus a ridge (M. Köstinger et al., CVPR 2012).

    With few labels S is singular, and its inverse is mostly that of the ridge that it then gets: SSDML's paper names
    this as the reason why such a prior is poor.

    Returns:
        M0 (d, d), and the rank of S, which tells: below d the prior is made up in the other directions.
    """
    ratio = torch.linalg.inv(_ridged(similar, 1e-3)) - torch.linalg.inv(_ridged(dissimilar, 1e-3))
    values, vectors = torch.linalg.eigh(_symmetric(ratio))
    positive = values.clamp_min(0)
    ridge = 1e-3 * positive.mean().clamp_min(1e-12)
    return (vectors * (positive + ridge)) @ vectors.mT, int(torch.linalg.matrix_rank(similar, hermitian=True))


def information_theoretic_prior(points: Tensor, pairs: Pairs, bounds: Bounds, slack: float = 1.0,
                                cycles: int = 10, report: Report = untold) -> Tensor:
    """ITML's metric: the closest to I by Burg's divergence whose pairs keep their bounds, up to slack γ (J. Davis et
    al., ICML 2007, algorithm 1): cyclic projections onto one pair's constraint after the other.

    Args:
        points: (n, d). report: is told the share of the cycles that are done.
    """
    metric = torch.eye(points.shape[1], dtype=points.dtype, device=points.device)
    everything = torch.cat([pairs.similar, pairs.dissimilar])
    signs = [1.0] * len(pairs.similar) + [-1.0] * len(pairs.dissimilar)
    difference = points[everything[:, 0]] - points[everything[:, 1]]
    limits = [bounds.near if sign > 0 else bounds.far for sign in signs]
    multipliers = [0.0] * len(signs)
    share = slack / (slack + 1)
    for done in range(cycles):
        report(done / cycles)
        for one, sign in enumerate(signs):
            image = metric @ difference[one]
            distance = float(difference[one] @ image)
            if distance <= 1e-12:
                continue
            step = min(multipliers[one], sign * share * (1 / distance - 1 / limits[one]))
            multipliers[one] -= step
            metric.addr_(image, image, alpha=sign * step / (1 - sign * step * distance))
            limits[one] = 1 / (1 / limits[one] + sign * step / slack)
    return _symmetric(metric)


def pair_entropy(distances: Tensor, kinds: Tensor, free: Tensor, threshold: float = 1.0, weight: float = 1.0) -> Tensor:
    """SERAPH's objective, to minimize (SSDML eq. 1): −mean log p(y) − μ·mean Σ_y p log p, p(y) = 1/(1+exp(y(δ²−η))).

    Args:
        distances: δ² (p,) of labeled pairs. kinds: y (p,), 1 similar, −1 dissimilar. free: δ² (q,) of unlabeled pairs.
        threshold: η. weight: μ times the number of unlabeled over that of labeled pairs.
    """
    known = logsigmoid(kinds * (threshold - distances)).mean()
    logit = threshold - free
    unsure = (torch.sigmoid(logit) * logsigmoid(logit) + torch.sigmoid(-logit) * logsigmoid(-logit)).mean()
    return -known - weight * unsure


def squared_distances(points: Tensor, pairs: Tensor) -> Callable[[Tensor], Tensor]:
    """δ² (p,) of pairs (p, 2) of points (n, d) under a metric (d, d) that is given again and again.

    Of few points with many pairs all products are formed, and those of the pairs looked up; otherwise it is the pairs'
    differences that meet the metric. At n = 2,933, d = 1280 and 40,000 pairs the first is five times as fast.
    """
    count, width = points.shape
    one, other = pairs.unbind(1)
    if len(pairs) <= count + count**2 / width:
        difference = points[one] - points[other]
        return lambda metric: ((difference @ metric) * difference).sum(1)

    def looked_up(metric: Tensor) -> Tensor:
        products = points @ metric @ points.mT
        norms = products.diagonal()
        return norms[one] + norms[other] - products[one, other] - products[other, one]

    return looked_up


def entropy_metric(metric: Tensor, points: Tensor, labeled: Tensor, kinds: Tensor, free: Tensor,
                   threshold: float = 1.0, weight: float = 1.0, trace: float = 0.0, steps: int = 50,
                   report: Report = untold) -> Tensor:
    """SERAPH's M by projected gradient from a metric: minimize `pair_entropy` + λ·tr M over M ⪰ 0.

    The step is halved until the objective falls. It is not convex: another start may end elsewhere.

    Args:
        metric: (d, d). points: (n, d). labeled, free: pairs (p, 2), (q, 2). trace: λ. report: is told the share of
            the steps that are done.
    """
    measured = squared_distances(points, torch.cat([labeled, free]))

    def objective(given: Tensor) -> Tensor:
        one, other = measured(given).split([len(labeled), len(free)])
        return pair_entropy(one, kinds, other, threshold, weight) + trace * given.trace()

    rate = 1.0
    for done in range(steps):
        report(done / steps)
        given = metric.detach().requires_grad_()
        with torch.enable_grad():
            value = objective(given)
            (gradient,) = torch.autograd.grad(value, given)
        for _ in range(MOST_HALVINGS):
            moved = positive_part(metric - rate * _symmetric(gradient))
            if objective(moved) <= value - 0.25 / rate * (moved - metric).square().sum():
                break
            rate /= 2
        else:
            return metric
        metric, rate = moved, 2 * rate
    return metric


def positive_part(matrix: Tensor) -> Tensor:
    """The nearest positive semidefinite matrix."""
    values, vectors = torch.linalg.eigh(_symmetric(matrix))
    return (vectors * values.clamp_min(0)) @ vectors.mT


def matrix_root(matrix: Tensor) -> Tensor:
    """M^½ of a positive semidefinite matrix."""
    values, vectors = torch.linalg.eigh(_symmetric(matrix))
    return (vectors * values.clamp_min(0).sqrt()) @ vectors.mT


def _ridged(matrix: Tensor, share: float = 1e-6) -> Tensor:
    """The matrix with a share of its mean eigenvalue added to each."""
    level = (share * matrix.trace() / len(matrix)).clamp_min(1e-12)
    return matrix + level * torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)


def _symmetric(matrix: Tensor) -> Tensor:
    return (matrix + matrix.mT) / 2
