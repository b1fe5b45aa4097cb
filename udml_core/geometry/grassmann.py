"""Subspaces."""

from __future__ import annotations

from udml_core.geometry.manifold import Point
from udml_core.geometry.stiefel import Stiefel


class Grassmann(Stiefel):
    """G(l, d): the l-dimensional subspaces of R^d, each stored as an orthonormal basis (d, l) (RPML definition 2).

    A quotient of the Stiefel manifold: tangent vectors are horizontal lifts, LᵀU = 0, so that turning the basis
    inside its subspace is no movement. Grassmann adds to Stiefel only that projection.
    """

    def project(self, point: Point, vector: Point) -> Point:
        """Z − LLᵀZ, the horizontal part (below RPML eq. 22)."""
        frame, ambient = point[0], vector[0]
        return (ambient - frame @ (frame.mT @ ambient),)
