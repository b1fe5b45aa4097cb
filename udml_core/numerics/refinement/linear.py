"""Linear steps: whitening and reduction, fitted on one set of images and applied to any other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from udml_core.base.arrays import Array, Floats
from udml_core.base.errors import UserError
from udml_core.numerics.geometry.whitening import whitening_weight
from udml_core.numerics.graph.mutual_neighbors import mutual_pairs_of
from udml_core.numerics.refinement.unit_neighbors import nearest_unit


def unit_rows(rows: Array) -> Floats:
    """Divide each row (n, d) by its length, float32; a zero row stays zero."""
    rows = np.asarray(rows, np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1)


@dataclass(frozen=True)
class LinearMap:
    """The map x ↦ unit((x − offset)·weight).

    Attributes:
        weight: Projection (d, l) float32.
        offset: Offset (d,) float32.
    """

    weight: Floats
    offset: Floats

    def __call__(self, rows: Array) -> Floats:
        return unit_rows((rows - self.offset) @ self.weight)


@dataclass(frozen=True)
class SpanMap:
    """A square linear map that works in the span of a few rows, and only scales what is orthogonal to it.

    It takes d·r numbers in place of d², which counts where features have more dimensions than there are images.

    Attributes:
        basis: Orthonormal basis (d, r) of the span, float32.
        inner: The map (r, r) within the span, less the scale.
        scale: The factor outside of the span.
        offset: Offset (d,) float32.
    """

    basis: Floats
    inner: Floats
    scale: float
    offset: Floats

    @property
    def weight(self) -> Floats:
        """The map as a matrix (d, d)."""
        return self.basis @ self.inner @ self.basis.T + self.scale * np.eye(len(self.basis), dtype=np.float32)

    def __call__(self, rows: Array) -> Floats:
        centered = rows - self.offset
        return unit_rows(self.scale * centered + centered @ self.basis @ self.inner @ self.basis.T)


def whitening(rows: Array, covariance: Literal["neighbors", "images"] = "neighbors", k: int = 5,
              shrinkage: float = 1.0) -> LinearMap | SpanMap:
    """Fit a whitening (C + s·σ²·I)^(−1/2), where σ² is the mean variance.

    With `neighbors`, C = (1/p)·Σ (x_i − x_j)(x_i − x_j)ᵀ over the p pairs of mutual neighbors, as in the method
    `whiten`: directions in which neighbors differ shrink. With `images`, C is the covariance of all rows (PCA
    whitening).

    Args:
        rows: Unit rows (n, d).
        covariance: The covariance to whiten.
        k: Number of neighbors of the pairs.
        shrinkage: The multiple s.

    Returns:
        The map, with weight (d, d) and the mean row as offset. Of fewer rows than dimensions it is computed in their
        span, which takes a quarter of the time at half as many.

    References:
        H. Jégou, O. Chum, "Negative Evidences and Co-occurrences in Image Retrieval: The Benefit of PCA and
        Whitening", ECCV 2012.
    """
    mean, dimension = rows.mean(axis=0), rows.shape[1]
    basis, points = _span(rows - mean) if len(rows) < dimension else (None, rows)
    if covariance == "neighbors":
        pairs = mutual_pairs_of(nearest_unit(rows, k)[1])
        difference = points[pairs[:, 0]] - points[pairs[:, 1]]
    else:
        difference = points - points.mean(axis=0)
    difference = difference.astype(np.float64, copy=False)
    matrix = torch.from_numpy(difference.T @ difference / max(1, len(difference)))
    weight, outside = whitening_weight(matrix, shrinkage, dimension)
    if basis is None:
        return LinearMap(weight.float().numpy(), mean)
    inner = weight.numpy() - outside * np.eye(len(matrix))
    return SpanMap(basis.astype(np.float32), inner.astype(np.float32), outside, mean)


def _span(rows: Array) -> tuple[Floats, Floats]:
    """Return an orthonormal basis (d, n) of the span of n rows, and their coordinates (n, n) in it, float64."""
    # Beside other work NumPy's takes many times as long, as its threads wait for each other.
    basis, coordinates = torch.linalg.qr(torch.from_numpy(rows.astype(np.float64)).T)
    return basis.numpy(), coordinates.T.numpy()


def reduction(rows: Array, dimension: int) -> LinearMap:
    """Fit the projection on the principal components.

    Args:
        rows: Unit rows (n, d).
        dimension: Number l of components, at most min(n, d).

    Returns:
        The map, with orthonormal columns (d, l) as weight and the mean row as offset.

    Raises:
        UserError: The rows have fewer components.
    """
    most = min(rows.shape)
    if dimension > most:
        raise UserError(f"`reduce` can keep at most {most} dimensions of {len(rows):,} images with {rows.shape[1]}-d "
                        f"embeddings; got dimension={dimension}. Lower it.")
    mean = rows.mean(axis=0)
    centered = (rows - mean).astype(np.float64)
    basis, points = _span(centered) if len(rows) < rows.shape[1] else (None, centered)
    vectors = np.linalg.eigh(points.T @ points).eigenvectors[:, ::-1][:, :dimension]
    if basis is not None:
        vectors = basis @ vectors
    return LinearMap(np.ascontiguousarray(vectors, np.float32), mean)
