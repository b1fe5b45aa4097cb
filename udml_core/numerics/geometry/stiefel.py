"""Stiefel manifolds: sets of orthonormal frames."""

from __future__ import annotations

import torch
from torch import Tensor

from udml_core.numerics.geometry.manifold import Manifold, Point


def polar(matrix: Tensor) -> Tensor:
    """Return the orthonormal factor UVᵀ of UΛVᵀ (d, l), d ≥ l (RPML eq. 24).

    It is computed as A(AᵀA)^-½ from the small Gram matrix. For A = L+ξ with ξ tangent at L the eigenvalues of the Gram
    matrix are at least 1, so the inverse root is always defined.
    """
    exact = matrix.double()  # A Gram matrix squares the condition number; float32 would leave half of its digits.
    values, vectors = torch.linalg.eigh(exact.mT @ exact)
    return (exact @ (vectors * values.rsqrt()) @ vectors.mT).to(matrix.dtype)


class Stiefel(Manifold):
    """St(l, d) = {L (d, l) : LᵀL = I} with the metric tr(ξᵀζ) (RPML definition 1).

    Args:
        rows: d, the dimension of the ambient space.
        columns: l, the number of orthonormal columns.

    Raises:
        ValueError: l is below 1 or above d.
    """

    def __init__(self, rows: int, columns: int) -> None:
        if not 1 <= columns <= rows:
            raise ValueError(f"An orthonormal frame needs 1 ≤ columns ≤ rows, got {columns} columns and {rows} rows.")
        self.rows = rows
        self.columns = columns

    def inner(self, point: Point, first: Point, second: Point) -> Tensor:
        return (first[0] * second[0]).sum()

    def gradient(self, point: Point, euclidean: Point) -> Point:
        return self.project(point, euclidean)

    def project(self, point: Point, vector: Point) -> Point:
        """Return Z − L sym(LᵀZ) (Absil et al., example 3.6.2)."""
        frame, ambient = point[0], vector[0]
        product = frame.mT @ ambient
        return (ambient - frame @ (product + product.mT) / 2,)

    def retract(self, point: Point, tangent: Point) -> Point:
        return (polar(point[0] + tangent[0]),)

    def random(self, seed: int) -> Point:
        """Return the Q factor of a seeded Gaussian matrix, RPML's "Initial (Random)"."""
        generator = torch.Generator().manual_seed(seed)
        return (torch.linalg.qr(torch.randn(self.rows, self.columns, generator=generator)).Q,)
