"""PCA layouts: the two directions of largest variance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udml_core.arrays import Array
from udml_core.projection.align import procrustes


@dataclass(frozen=True)
class Plane:
    """The projection x ↦ (x − mean) axes.

    Attributes:
        mean: (d,).
        axes: (d, 2), orthonormal. The entry of largest magnitude of an axis is positive, which fixes the sign.
    """

    mean: Array
    axes: Array

    @staticmethod
    def of(points: Array) -> Plane:
        """Return the principal plane of points (n, d)."""
        points = np.asarray(points, dtype=np.float64)
        mean = points.mean(axis=0)
        centered = points - mean
        axes = np.zeros((points.shape[1], 2))  # a second axis of zeros if the points have one dimension only
        principal = np.linalg.eigh(centered.T @ centered).eigenvectors[:, ::-1][:, :2]
        largest = np.abs(principal).argmax(axis=0)
        axes[:, : principal.shape[1]] = principal * np.sign(principal[largest, np.arange(principal.shape[1])])
        return Plane(mean, axes)

    def __call__(self, points: Array) -> Array:
        return (np.asarray(points, dtype=np.float64) - self.mean) @ self.axes


def pca_layout(points: Array, before: Array | None = None) -> Array:
    """Project points (n, d) on their principal plane, (n, 2).

    The result is aligned with the layout `before` of the same points.
    """
    layout = Plane.of(points)(points)
    return layout if before is None else procrustes(layout, before)(layout)


def place(points: Array, layout: Array, new: Array) -> Array:
    """Place new points (q, d) on the layout (n, 2) of the points (n, d).

    The placement is exact for every rotated, reflected or shifted PCA layout.
    """
    plane = Plane.of(points)
    return procrustes(plane(points), layout)(plane(new))
