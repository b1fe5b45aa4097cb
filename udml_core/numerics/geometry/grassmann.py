"""Grassmann manifolds: sets of linear subspaces."""

from __future__ import annotations

from udml_core.numerics.geometry.manifold import Point
from udml_core.numerics.geometry.stiefel import Stiefel


class Grassmann(Stiefel):
    """G(l, d), the l-dimensional subspaces of R^d (RPML definition 2).

    Each subspace is stored as an orthonormal basis L (d, l). G(l, d) is a quotient of the Stiefel manifold. Tangent
    vectors are horizontal lifts, LᵀU = 0, so a rotation of the basis inside its subspace is no movement. Only this
    projection differs from Stiefel.
    """

    def project(self, point: Point, vector: Point) -> Point:
        """Return the horizontal part Z − LLᵀZ (below RPML eq. 22)."""
        frame, ambient = point[0], vector[0]
        return (ambient - frame @ (frame.mT @ ambient),)
