"""The whitening of a covariance."""

from __future__ import annotations

import torch
from torch import Tensor


def whitening_weight(covariance: Tensor, shrinkage: float) -> Tensor:
    """Return (C + s·v·I)^(−1/2), where v is the mean eigenvalue of C; (C + I)^(−1/2) if v or s is zero.

    Args:
        covariance: Covariance C (d, d) float64.
        shrinkage: The multiple s.
    """
    values, vectors = torch.linalg.eigh(covariance)
    level = float(values.mean()) * shrinkage or 1.0
    return vectors * (values.clamp_min(0) + level).rsqrt() @ vectors.mT
