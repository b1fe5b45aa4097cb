"""The loss of Barlow Twins: the cross-correlation matrix of two views approaches the identity."""

from __future__ import annotations

from torch import Tensor

EPSILON = 1e-5
"""Added to each variance, as batch normalization does in the authors' code. A constant column has correlation 0."""


def redundancy_reduction(first: Tensor, second: Tensor, weight: float) -> Tensor:
    """Compute Σ_i (1 − C_ii)² + λ Σ_i Σ_{j≠i} C_ij² with the correlations C of the views' columns.

    Args:
        first: z^A (m, p), one row for each image.
        second: z^B (m, p), the other views of the same images.
        weight: λ.

    References:
        J. Zbontar et al., "Barlow Twins: Self-Supervised Learning via Redundancy Reduction", ICML 2021, eq. 1 and 2.
    """
    correlation = standardized(first).mT @ standardized(second) / len(first)
    diagonal = correlation.diagonal()
    return (1 - diagonal).square().sum() + weight * (correlation.square().sum() - diagonal.square().sum())


def standardized(rows: Tensor) -> Tensor:
    """Shift and scale each column to mean 0 and variance 1 over the batch.

    Args:
        rows: (m, p).
    """
    return (rows - rows.mean(0)) / (rows.var(0, correction=0) + EPSILON).sqrt()
