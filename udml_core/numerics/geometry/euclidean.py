"""Euclidean space."""

from __future__ import annotations

import torch
from torch import Tensor

from udml_core.numerics.geometry.manifold import Manifold, Point


class Euclidean(Manifold):
    """Tensors of one shape with the Frobenius inner product.

    Args:
        shape: The shape of the tensors.
        scale: Standard deviation of the entries that `random` draws.
    """

    def __init__(self, *shape: int, scale: float = 1.0) -> None:
        self.shape = shape
        self.scale = scale

    def inner(self, point: Point, first: Point, second: Point) -> Tensor:
        return (first[0] * second[0]).sum()

    def gradient(self, point: Point, euclidean: Point) -> Point:
        return euclidean

    def project(self, point: Point, vector: Point) -> Point:
        return vector

    def retract(self, point: Point, tangent: Point) -> Point:
        return (point[0] + tangent[0],)

    def random(self, seed: int) -> Point:
        generator = torch.Generator().manual_seed(seed)
        return (torch.randn(self.shape, generator=generator) * self.scale,)
