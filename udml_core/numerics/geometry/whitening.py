"""The whitening of a covariance."""

from __future__ import annotations

import torch
from torch import Tensor


def whitening_weight(covariance: Tensor, shrinkage: float, dimension: int | None = None) -> tuple[Tensor, float]:
    """Return (C + s·v·I)^(−1/2), where v is the mean eigenvalue of C; (C + I)^(−1/2) if v or s is zero.

    Args:
        covariance: Covariance C (d, d) float64.
        shrinkage: The multiple s.
        dimension: Dimension of the space, if C is given in a subspace that holds its range; d by default. The mean
            counts the zeros outside of the subspace.

    Returns:
        The matrix in the subspace, and its factor outside of it.
    """
    values, vectors = torch.linalg.eigh(covariance)
    level = float(values.sum()) / (dimension or len(values)) * shrinkage or 1.0
    return vectors * (values.clamp_min(0) + level).rsqrt() @ vectors.mT, level ** -0.5
