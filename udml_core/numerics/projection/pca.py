"""PCA layouts: the two directions of largest variance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from udml_core.base.arrays import Array
from udml_core.numerics.projection.align import procrustes

BLOCK = 100_000
"""Points that are in memory at once as float64."""


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
        mean = np.asarray(points).mean(axis=0, dtype=np.float64)
        axes = np.zeros((points.shape[1], 2))  # a second axis of zeros if the points have one dimension only
        scatter = sum(centered.T @ centered for centered in (block - mean for block in _blocks(points)))
        principal = np.linalg.eigh(scatter).eigenvectors[:, ::-1][:, :2]
        largest = np.abs(principal).argmax(axis=0)
        axes[:, : principal.shape[1]] = principal * np.sign(principal[largest, np.arange(principal.shape[1])])
        return Plane(mean, axes)

    def __call__(self, points: Array) -> Array:
        return np.concatenate([(block - self.mean) @ self.axes for block in _blocks(points)])


def _blocks(points: Array) -> Iterator[Array]:
    """Yield points (n, d) in blocks of float64; no points are one block."""
    for start in range(0, max(1, len(points)), BLOCK):
        yield np.asarray(points[start : start + BLOCK], dtype=np.float64)


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
