"""The large-margin nearest neighbor loss and its gradient.

K. Q. Weinberger, L. K. Saul, "Distance Metric Learning for Large Margin Nearest Neighbor Classification", JMLR 2009.
"""

from __future__ import annotations

import torch
from torch import Tensor

ENTRIES_AT_ONCE = 4_000_000


def large_margin_loss(points: Tensor, weight: Tensor, labels: Tensor, targets: Tensor,
                      mu: float) -> tuple[float, Tensor]:
    """(1/n)[(1−μ)Σ_i Σ_{j target of i} d²(i,j) + μΣ_{y_q≠y_i} max(0, 1 + d²(i,j) − d²(i,q))], and its gradient (D, l).

    Every pair counts with a weight w_ij, which is 1−μ and μ for each violated triple it is the target of, or −μ for
    each that it is the impostor of; so the gradient in the embedding is a graph Laplacian's.

    Args:
        points: (n, D). weight: (D, l), d(i,j) = ‖(x_i − x_j)·weight‖. labels: (n,). targets: (n, k) rows.
    """
    embedding = points @ weight
    gradient = torch.zeros_like(embedding)
    norms, value = embedding.square().sum(1), 0.0
    for rows in torch.arange(len(points), device=points.device).split(max(1, ENTRIES_AT_ONCE // len(points))):
        own = embedding[rows]
        squared = (norms[rows, None] + norms - 2 * own @ embedding.mT).clamp_min(0)
        near = squared.gather(1, targets[rows])
        other = labels[rows, None] != labels
        weights = torch.zeros_like(squared)
        pulled = torch.full_like(near, 1 - mu)
        for place, reach in enumerate((1 + near).unbind(1)):
            excess = (reach[:, None] - squared).clamp_min(0) * other
            violated = excess > 0
            value += mu * float(excess.sum(dtype=torch.float64))
            weights -= mu * violated
            pulled[:, place] += mu * violated.sum(1)
        value += (1 - mu) * float(near.sum(dtype=torch.float64))
        weights.scatter_add_(1, targets[rows], pulled)
        gradient[rows] += weights.sum(1)[:, None] * own - weights @ embedding
        gradient += weights.sum(0)[:, None] * embedding - weights.mT @ own
    return value / len(points), points.mT @ gradient * (2 / len(points))
