"""Mahalanobis metrics M from labeled pairs and a graph.

The baselines of SSDML use them. S and D are the mean outer products (d, d) of the differences of similar and dissimilar
labeled pairs. R is the weighted mean over the edges of a graph, R = X𝓛Xᵀ/Σw. As means, the scale of all three does not
depend on the number of images.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

Report = Callable[[float], None]
MAX_HALVINGS = 60
CHUNK = 16_384
"""Number of pairs whose differences are in memory at once."""


def ignore_progress(share: float) -> None:
    """Ignore the progress."""


class LabeledPairs(NamedTuple):
    """Labeled pairs.

    Attributes:
        similar: (p, 2) int64, row numbers of points with the same label.
        dissimilar: (q, 2) int64, row numbers of points with different labels.
    """

    similar: Tensor
    dissimilar: Tensor


class Bounds(NamedTuple):
    """Bounds on squared distances.

    Attributes:
        similar: Upper bound for similar pairs.
        dissimilar: Lower bound for dissimilar pairs.
    """

    similar: float
    dissimilar: float


def labeled_pairs(labels: Tensor) -> LabeledPairs:
    """List all pairs i < j of labeled points.

    The labels are (n,), with −1 for unlabeled points.
    """
    labeled = torch.nonzero(labels >= 0).squeeze(1)
    first, second = torch.triu_indices(len(labeled), len(labeled), 1).unbind(0)
    same = labels[labeled[first]] == labels[labeled[second]]
    pairs = torch.stack([labeled[first], labeled[second]], dim=1)
    return LabeledPairs(pairs[same], pairs[~same])


def scatter(points: Tensor, pairs: Tensor, weights: Tensor | None = None) -> Tensor:
    """Compute the weighted mean outer product (d, d) of the pairs' differences.

    It is 0 without pairs.

    Args:
        points: (n, d).
        pairs: (p, 2) int64.
        weights: (p,), at least 0; None for equal weights.
    """
    shares = points.new_ones(len(pairs)) if weights is None else weights
    total = points.new_zeros(points.shape[1], points.shape[1])
    for part, share in zip(pairs.split(CHUNK), shares.split(CHUNK), strict=True):
        difference = points[part[:, 0]] - points[part[:, 1]]
        total += difference.mT @ (share[:, None] * difference)
    return total / shares.sum().clamp_min(1e-12)


def laplacian_metric(similar: Tensor, dissimilar: Tensor, edges: Tensor, weight_similar: float = 1.0,
                     weight_dissimilar: float = 1.0, weight_edges: float = 1.0) -> tuple[Tensor, float]:
    """Compute LRML's metric.

    It is the minimum of γs·tr(MS) − γd·tr(MD) + β·tr(MR) over M ⪰ 0, log|M| ≥ 0. If B = βR + γsS − γdD is positive
    definite, the solution is M = |B|^{1/d}B⁻¹. Otherwise the objective has no lower bound, and γd is halved until B is
    positive definite.

    Args:
        similar: S (d, d).
        dissimilar: D (d, d).
        edges: R (d, d).
        weight_similar: γs.
        weight_dissimilar: γd.
        weight_edges: β.

    Returns:
        M (d, d), and the γd that was used.

    References:
        S. Hoi, W. Liu, S. Chang, 2010; SSDML eq. 2.
    """
    # S and R can be singular when there are few points. The ridge makes B positive definite at least for γd = 0.
    base = _ridged(weight_edges * edges + weight_similar * similar)
    for halvings in range(MAX_HALVINGS + 1):
        used = weight_dissimilar / 2**halvings if halvings < MAX_HALVINGS else 0.0
        values, vectors = torch.linalg.eigh(base - used * dissimilar)
        if values[0] > 1e-9 * values[-1]:
            break
    scale = values.log().mean().exp()
    return (vectors * (scale / values)) @ vectors.mT, used


def close_metric(prior: Tensor, edges: Tensor, weight_edges: float = 1.0) -> Tensor:
    """Compute the metric of APLLR and APIT, M = (M0⁻¹ + λR)⁻¹.

    It is the minimum of D_Burg(M, M0) + λ·tr(MR). It is computed as M0^½(I + λM0^½RM0^½)⁻¹M0^½, so M0 may be singular.
    The objective is inferred from U. Dutta, C. Sekhar, 2018.

    Args:
        prior: M0 (d, d).
        edges: R (d, d).
        weight_edges: λ.
    """
    root = matrix_root(prior)
    inner = torch.eye(len(prior), dtype=prior.dtype, device=prior.device) + weight_edges * root @ edges @ root
    return _symmetric(root @ torch.linalg.inv(_symmetric(inner)) @ root)


def likelihood_ratio_prior(similar: Tensor, dissimilar: Tensor) -> tuple[Tensor, int]:
    """Compute KISSME's metric, the positive part of S⁻¹ − D⁻¹ plus a ridge.

    See M. Köstinger et al., CVPR 2012. With few labels S is singular, and its inverse is mostly the inverse of the
    added ridge. SSDML's paper names this as the reason for a poor prior.

    Returns:
        M0 (d, d), and the rank of S. If the rank is below d, the ridge determines the prior in the other directions.
    """
    ratio = torch.linalg.inv(_ridged(similar, 1e-3)) - torch.linalg.inv(_ridged(dissimilar, 1e-3))
    values, vectors = torch.linalg.eigh(_symmetric(ratio))
    positive = values.clamp_min(0)
    ridge = 1e-3 * positive.mean().clamp_min(1e-12)
    return (vectors * (positive + ridge)) @ vectors.mT, int(torch.linalg.matrix_rank(similar, hermitian=True))


def information_theoretic_prior(points: Tensor, pairs: LabeledPairs, bounds: Bounds, slack: float = 1.0,
                                cycles: int = 10, report: Report = ignore_progress) -> Tensor:
    """Compute ITML's metric, whose pairs keep their bounds up to slack.

    It is the closest such metric to I in Burg's divergence. The algorithm projects cyclically onto the constraint of
    one pair after another (J. Davis et al., ICML 2007, algorithm 1).

    Args:
        points: (n, d).
        pairs: The labeled pairs.
        bounds: The bounds on their squared distances.
        slack: γ; a larger value enforces the bounds more strictly.
        cycles: Number of passes over all pairs.
        report: Called with the share of finished cycles.
    """
    metric = torch.eye(points.shape[1], dtype=points.dtype, device=points.device)
    all_pairs = torch.cat([pairs.similar, pairs.dissimilar])
    signs = [1.0] * len(pairs.similar) + [-1.0] * len(pairs.dissimilar)
    difference = points[all_pairs[:, 0]] - points[all_pairs[:, 1]]
    limits = [bounds.similar if sign > 0 else bounds.dissimilar for sign in signs]
    multipliers = [0.0] * len(signs)
    share = slack / (slack + 1)
    for cycle in range(cycles):
        report(cycle / cycles)
        for pair, sign in enumerate(signs):
            image = metric @ difference[pair]
            distance = float(difference[pair] @ image)
            if distance <= 1e-12:
                continue
            # A multiplier must not become negative: min(·) undoes at most what earlier projections have added.
            step = min(multipliers[pair], sign * share * (1 / distance - 1 / limits[pair]))
            multipliers[pair] -= step
            metric.addr_(image, image, alpha=sign * step / (1 - sign * step * distance))
            limits[pair] = 1 / (1 / limits[pair] + sign * step / slack)
    return _symmetric(metric)


def pair_entropy(distances: Tensor, signs: Tensor, unlabeled: Tensor, threshold: float = 1.0,
                 weight: float = 1.0) -> Tensor:
    """Compute SERAPH's objective for minimization (SSDML eq. 1).

    It is −mean log p(y) − μ·mean Σ_y p log p. p(y) = 1/(1+exp(y(δ²−η))). The entropy term makes the metric decide about
    unlabeled pairs.

    Args:
        distances: δ² (p,) of labeled pairs.
        signs: y (p,), 1 for similar and −1 for dissimilar pairs.
        unlabeled: δ² (q,) of unlabeled pairs.
        threshold: η.
        weight: μ times the ratio of the numbers of unlabeled and labeled pairs.
    """
    likelihood = logsigmoid(signs * (threshold - distances)).mean()
    logit = threshold - unlabeled
    negative_entropy = (torch.sigmoid(logit) * logsigmoid(logit) + torch.sigmoid(-logit) * logsigmoid(-logit)).mean()
    return -likelihood - weight * negative_entropy


def distances_by_metric(points: Tensor, pairs: Tensor) -> Callable[[Tensor], Tensor]:
    """Return a function that maps a metric (d, d) to the pairs' δ², (p,).

    The pairs (p, 2) of points (n, d) are fixed. The faster of two ways is chosen by the numbers of pairs and points.
    """
    count, width = points.shape
    first, second = pairs.unbind(1)
    if len(pairs) <= count + count**2 / width:
        difference = points[first] - points[second]
        return lambda metric: ((difference @ metric) * difference).sum(1)

    # With few points and many pairs, multiplying all points by the metric is faster than all differences: five times
    # at n = 2,933, d = 1280 and 40,000 pairs.
    def from_products(metric: Tensor) -> Tensor:
        products = points @ metric @ points.mT
        norms = products.diagonal()
        return norms[first] + norms[second] - products[first, second] - products[second, first]

    return from_products


def entropy_metric(metric: Tensor, points: Tensor, labeled: Tensor, signs: Tensor, unlabeled: Tensor,
                   threshold: float = 1.0, weight: float = 1.0, trace: float = 0.0, steps: int = 50,
                   report: Report = ignore_progress) -> Tensor:
    """Compute SERAPH's metric by projected gradient.

    It minimizes `pair_entropy` + λ·tr M over M ⪰ 0. The objective is not convex; the result depends on the start.

    Args:
        metric: (d, d), the start.
        points: (n, d).
        labeled: (p, 2) int64, labeled pairs.
        signs: y (p,), 1 for similar and −1 for dissimilar pairs.
        unlabeled: (q, 2) int64, unlabeled pairs.
        threshold: η.
        weight: μ times the ratio of the numbers of unlabeled and labeled pairs.
        trace: λ.
        steps: Maximum number of steps.
        report: Called with the share of finished steps.
    """
    distances = distances_by_metric(points, torch.cat([labeled, unlabeled]))

    def objective(candidate: Tensor) -> Tensor:
        of_labeled, of_unlabeled = distances(candidate).split([len(labeled), len(unlabeled)])
        return pair_entropy(of_labeled, signs, of_unlabeled, threshold, weight) + trace * candidate.trace()

    rate = 1.0
    for step in range(steps):
        report(step / steps)
        current = metric.detach().requires_grad_()
        with torch.enable_grad():
            value = objective(current)
            (gradient,) = torch.autograd.grad(value, current)
        # Halve the rate until the decrease is sufficient. The decrease is measured by the distance after projection,
        # because the gradient's own length says little where the projection cuts the step.
        for _ in range(MAX_HALVINGS):
            candidate = positive_part(metric - rate * _symmetric(gradient))
            if objective(candidate) <= value - 0.25 / rate * (candidate - metric).square().sum():
                break
            rate /= 2
        else:
            return metric
        metric, rate = candidate, 2 * rate
    return metric


def positive_part(matrix: Tensor) -> Tensor:
    """Return the nearest positive semidefinite matrix."""
    values, vectors = torch.linalg.eigh(_symmetric(matrix))
    return (vectors * values.clamp_min(0)) @ vectors.mT


def matrix_root(matrix: Tensor) -> Tensor:
    """Return M^½ of a positive semidefinite matrix."""
    values, vectors = torch.linalg.eigh(_symmetric(matrix))
    return (vectors * values.clamp_min(0).sqrt()) @ vectors.mT


def _ridged(matrix: Tensor, share: float = 1e-6) -> Tensor:
    """Add a share of the mean eigenvalue to every eigenvalue."""
    level = (share * matrix.trace() / len(matrix)).clamp_min(1e-12)
    return matrix + level * torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)


def _symmetric(matrix: Tensor) -> Tensor:
    return (matrix + matrix.mT) / 2
