"""Two layouts of the same points, turned so that they can be compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udml_core.arrays import Array


@dataclass(frozen=True)
class Motion:
    """A rotation or reflection R (2, 2) and a shift (2,): x ↦ xR + shift. Nothing is scaled."""

    rotation: Array
    shift: Array

    def __call__(self, points: Array) -> Array:
        return points @ self.rotation + self.shift


def procrustes(moving: Array, fixed: Array) -> Motion:
    """The motion that brings one layout nearest to another: argmin Σ ‖motion(moving_i) − fixed_i‖².

    R = UVᵀ for UΣVᵀ = movingᵀ fixed, both centred.

    Args:
        moving, fixed: (n, 2), the same points in the same order.

    References:
        P. Schönemann, "A generalized solution of the orthogonal Procrustes problem", Psychometrika 31, 1966.
    """
    moving, fixed = (np.asarray(layout, dtype=np.float64) for layout in (moving, fixed))
    from_center, to_center = moving.mean(axis=0), fixed.mean(axis=0)
    left, _, right = np.linalg.svd((moving - from_center).T @ (fixed - to_center))
    rotation = left @ right
    return Motion(rotation, to_center - from_center @ rotation)
