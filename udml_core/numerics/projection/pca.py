"""PCA layouts: the two directions of largest variance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udml_core.base.arrays import Array, blocks, smaller_product
from udml_core.numerics.projection.align import procrustes

NO_LENGTH = 1e-6
"""Share of the longer axis below which an axis carries rounding errors alone."""


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
        products = smaller_product(points, mean)
        principal = _of_wide(points, mean, products) if len(points) < points.shape[1] else (
            np.linalg.eigh(products).eigenvectors[:, ::-1][:, :2])
        largest = np.abs(principal).argmax(axis=0)
        axes[:, : principal.shape[1]] = principal * np.sign(principal[largest, np.arange(principal.shape[1])])
        return Plane(mean, axes)

    def __call__(self, points: Array) -> Array:
        parts = [(points[rows] - self.mean) @ self.axes for rows in blocks(*points.shape)]
        return np.concatenate([np.zeros((0, 2)), *parts])


def _of_wide(points: Array, mean: Array, products: Array) -> Array:
    """Return the two principal axes (d, 2) of points (n, d), n < d, from the products (n, n) of centered points."""
    from scipy.linalg import eigh

    count, width = points.shape
    axes = np.zeros((width, 2))
    vectors = eigh(products, subset_by_index=(count - min(2, count), count - 1))[1]
    for columns in blocks(width, count):
        axes[columns, : vectors.shape[1]] = (points[:, columns] - mean[columns]).T @ vectors[:, ::-1]
    lengths = np.linalg.norm(axes, axis=0)
    return axes / np.where(lengths > NO_LENGTH * lengths.max(), lengths, np.inf)


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
