"""Products of manifolds."""

from __future__ import annotations

import torch
from torch import Tensor

from udml_core.numerics.geometry.manifold import Manifold, Point


class Product(Manifold):
    """The product M₁ × M₂ × … (RPML eq. 13).

    Operations apply to each factor, and inner products are summed.
    """

    def __init__(self, *factors: Manifold) -> None:
        self.factors = factors

    def inner(self, point: Point, first: Point, second: Point) -> Tensor:
        parts = [factor.inner((p,), (a,), (b,))
                 for factor, p, a, b in zip(self.factors, point, first, second, strict=True)]
        return torch.stack(parts).sum()

    def gradient(self, point: Point, euclidean: Point) -> Point:
        return tuple(factor.gradient((p,), (g,))[0]
                     for factor, p, g in zip(self.factors, point, euclidean, strict=True))

    def project(self, point: Point, vector: Point) -> Point:
        return tuple(factor.project((p,), (v,))[0] for factor, p, v in zip(self.factors, point, vector, strict=True))

    def retract(self, point: Point, tangent: Point) -> Point:
        return tuple(factor.retract((p,), (t,))[0] for factor, p, t in zip(self.factors, point, tangent, strict=True))

    def random(self, seed: int) -> Point:
        return tuple(factor.random(seed + index)[0] for index, factor in enumerate(self.factors))
