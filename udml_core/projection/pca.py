"""The two directions along which embeddings spread most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udml_core.arrays import Array
from udml_core.projection.align import procrustes


@dataclass(frozen=True)
class Plane:
    """mean (d,) and axes (d, 2): x ↦ (x − mean) axes. An axis's largest entry is positive, which fixes its sign."""

    mean: Array
    axes: Array

    @staticmethod
    def of(points: Array) -> Plane:
        """The principal plane of points (n, d)."""
        points = np.asarray(points, dtype=np.float64)
        mean = points.mean(axis=0)
        centered = points - mean
        axes = np.zeros((points.shape[1], 2))
        found = np.linalg.eigh(centered.T @ centered).eigenvectors[:, ::-1][:, :2]
        largest = np.abs(found).argmax(axis=0)
        axes[:, : found.shape[1]] = found * np.sign(found[largest, np.arange(found.shape[1])])
        return Plane(mean, axes)

    def __call__(self, points: Array) -> Array:
        return (np.asarray(points, dtype=np.float64) - self.mean) @ self.axes


def pca_layout(points: Array, before: Array | None = None) -> Array:
    """Points (n, d) on their principal plane, (n, 2), turned towards the layout `before` of the same points."""
    layout = Plane.of(points)(points)
    return layout if before is None else procrustes(layout, before)(layout)


def place(points: Array, layout: Array, new: Array) -> Array:
    """New points (q, d) on the plane that `layout` (n, 2) shows the points (n, d) on: exact, however it was turned."""
    plane = Plane.of(points)
    return procrustes(plane(points), layout)(plane(new))
