"""What an optimizer needs to know about a search space (Absil, Mahony, Sepulchre 2008, chapters 3–4)."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor

Point = tuple[Tensor, ...]
"""A point or a tangent vector: one tensor for each factor of a product, so a plain manifold has one."""


class Manifold(ABC):
    """A Riemannian manifold with the operations of line-search methods (RPML eq. 5–6)."""

    @abstractmethod
    def inner(self, point: Point, first: Point, second: Point) -> Tensor:
        """Inner product of two tangent vectors at a point, a scalar."""

    @abstractmethod
    def gradient(self, point: Point, euclidean: Point) -> Point:
        """Riemannian gradient from the Euclidean one."""

    @abstractmethod
    def project(self, point: Point, vector: Point) -> Point:
        """Orthogonal projection of an ambient vector onto the tangent space."""

    @abstractmethod
    def retract(self, point: Point, tangent: Point) -> Point:
        """The point reached by leaving along a tangent vector."""

    @abstractmethod
    def random(self, seed: int) -> Point:
        """A point drawn from the seed, on the CPU in float32."""

    def transport(self, point: Point, target: Point, tangent: Point) -> Point:
        """Carry a tangent vector to another point, by projection there."""
        return self.project(target, tangent)

    def norm(self, point: Point, tangent: Point) -> Tensor:
        """Length of a tangent vector."""
        return self.inner(point, tangent, tangent).clamp_min(0).sqrt()
