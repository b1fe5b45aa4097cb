"""The large-margin nearest neighbor loss and its gradient.

K. Q. Weinberger, L. K. Saul, "Distance Metric Learning for Large Margin Nearest Neighbor Classification", JMLR 2009.
"""

from __future__ import annotations

import torch
from torch import Tensor

MAX_ENTRIES = 4_000_000
"""Maximum number of entries of a temporary array of distances."""


def large_margin_loss(points: Tensor, weight: Tensor, labels: Tensor, targets: Tensor,
                      mu: float) -> tuple[float, Tensor]:
    """Compute the LMNN loss and its gradient (D, l) with respect to the projection.

    The loss is (1/n) Σ_i Σ_{j target of i} [(1−μ) d²(i,j) + μ Σ_{y_q≠y_i} max(0, 1 + d²(i,j) − d²(i,q))].

    Args:
        points: (n, D).
        weight: (D, l), the projection; d(i,j) = ‖(x_i − x_j)·weight‖.
        labels: (n,).
        targets: (n, k) int64, row numbers of each point's target neighbors.
        mu: μ, the weight of the margin violations.
    """
    # The loss is a weighted sum of squared distances d²(i,j). A target pair has the weight 1−μ, plus μ for each triple
    # that violates the margin; an impostor pair has −μ for each. So the gradient is that of a graph Laplacian.
    embedding = points @ weight
    gradient = torch.zeros_like(embedding)
    norms, value = embedding.square().sum(1), 0.0
    for rows in torch.arange(len(points), device=points.device).split(max(1, MAX_ENTRIES // len(points))):
        own = embedding[rows]
        squared = (norms[rows, None] + norms - 2 * own @ embedding.mT).clamp_min(0)
        to_targets = squared.gather(1, targets[rows])
        different_class = labels[rows, None] != labels
        weights = torch.zeros_like(squared)
        target_weights = torch.full_like(to_targets, 1 - mu)
        for column, bound in enumerate((1 + to_targets).unbind(1)):
            excess = (bound[:, None] - squared).clamp_min(0) * different_class
            violated = excess > 0
            value += mu * float(excess.sum(dtype=torch.float64))
            weights -= mu * violated
            target_weights[:, column] += mu * violated.sum(1)
        value += (1 - mu) * float(to_targets.sum(dtype=torch.float64))
        weights.scatter_add_(1, targets[rows], target_weights)
        gradient[rows] += weights.sum(1)[:, None] * own - weights @ embedding
        gradient += weights.sum(0)[:, None] * embedding - weights.mT @ own
    return value / len(points), points.mT @ gradient * (2 / len(points))
