"""Alignment of two layouts of the same points by rotation, reflection and shift."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udml_core.base.arrays import Array


@dataclass(frozen=True)
class Motion:
    """A rigid motion x ↦ xR + shift, without scaling.

    Attributes:
        rotation: R (2, 2), a rotation or reflection.
        shift: (2,).
    """

    rotation: Array
    shift: Array

    def __call__(self, points: Array) -> Array:
        return points @ self.rotation + self.shift


def procrustes(moving: Array, fixed: Array) -> Motion:
    """Return the motion that minimizes Σ ‖motion(moving_i) − fixed_i‖².

    R = UVᵀ with UΣVᵀ = movingᵀ fixed of the layouts after subtracting their means.

    Args:
        moving: (n, 2).
        fixed: (n, 2), the same points in the same order.

    References:
        P. Schönemann, "A generalized solution of the orthogonal Procrustes problem", Psychometrika 31, 1966.
    """
    moving, fixed = (np.asarray(layout, dtype=np.float64) for layout in (moving, fixed))
    moving_mean, fixed_mean = moving.mean(axis=0), fixed.mean(axis=0)
    left, _, right = np.linalg.svd((moving - moving_mean).T @ (fixed - fixed_mean))
    rotation = left @ right
    return Motion(rotation, fixed_mean - moving_mean @ rotation)
