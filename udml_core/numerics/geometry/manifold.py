"""The manifold operations that an optimizer needs.

See P.-A. Absil, R. Mahony, R. Sepulchre, 2008, chapters 3–4.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor

Point = tuple[Tensor, ...]
"""A point or a tangent vector: one tensor per factor of a product manifold, and a single tensor otherwise."""


class Manifold(ABC):
    """A Riemannian manifold with the operations of line-search methods (RPML eq. 5–6)."""

    @abstractmethod
    def inner(self, point: Point, first: Point, second: Point) -> Tensor:
        """Return the inner product of two tangent vectors at a point, a scalar."""

    @abstractmethod
    def gradient(self, point: Point, euclidean: Point) -> Point:
        """Convert the Euclidean gradient to the Riemannian gradient."""

    @abstractmethod
    def project(self, point: Point, vector: Point) -> Point:
        """Project an ambient vector orthogonally onto the tangent space."""

    @abstractmethod
    def retract(self, point: Point, tangent: Point) -> Point:
        """Return the point reached by moving along a tangent vector."""

    @abstractmethod
    def random(self, seed: int) -> Point:
        """Draw a point from the seed, on the CPU in float32."""

    def transport(self, point: Point, target: Point, tangent: Point) -> Point:
        """Transport a tangent vector to another point by projection.

        The projection is onto the tangent space at the other point.
        """
        return self.project(target, tangent)

    def norm(self, point: Point, tangent: Point) -> Tensor:
        """Return the length of a tangent vector."""
        return self.inner(point, tangent, tangent).clamp_min(0).sqrt()
