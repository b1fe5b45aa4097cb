"""Orthonormal frames."""

from __future__ import annotations

import torch
from torch import Tensor

from udml_core.geometry.manifold import Manifold, Point


def polar(matrix: Tensor) -> Tensor:
    """The orthonormal factor UVᵀ of a matrix (d, l) = UΛVᵀ with d ≥ l (RPML eq. 24).

    Computed as A(AᵀA)^-½ from the small Gram matrix, in float64 because squaring halves the digits: for A = L+ξ with
    ξ tangent at L the Gram's eigenvalues are at least 1, so the root is always defined.
    """
    wide = matrix.double()
    values, vectors = torch.linalg.eigh(wide.mT @ wide)
    return (wide @ (vectors * values.rsqrt()) @ vectors.mT).to(matrix.dtype)


class Stiefel(Manifold):
    """St(l, d) = {L (d, l) : LᵀL = I} with the metric tr(ξᵀζ) (RPML definition 1).

    Raises:
        ValueError: l is below 1 or above d.
    """

    def __init__(self, rows: int, columns: int) -> None:
        if not 1 <= columns <= rows:
            raise ValueError(f"a frame needs 1 ≤ columns ≤ rows, got {columns} columns and {rows} rows")
        self.rows = rows
        self.columns = columns

    def inner(self, point: Point, first: Point, second: Point) -> Tensor:
        return (first[0] * second[0]).sum()

    def gradient(self, point: Point, euclidean: Point) -> Point:
        return self.project(point, euclidean)

    def project(self, point: Point, vector: Point) -> Point:
        """Z − L sym(LᵀZ) (Absil et al., example 3.6.2)."""
        frame, ambient = point[0], vector[0]
        product = frame.mT @ ambient
        return (ambient - frame @ (product + product.mT) / 2,)

    def retract(self, point: Point, tangent: Point) -> Point:
        return (polar(point[0] + tangent[0]),)

    def random(self, seed: int) -> Point:
        """The Q factor of a seeded Gaussian: RPML's "Initial (Random)"."""
        generator = torch.Generator().manual_seed(seed)
        return (torch.linalg.qr(torch.randn(self.rows, self.columns, generator=generator)).Q,)
