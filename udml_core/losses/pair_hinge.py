"""The hinge loss of pairs that are the same or different, with its closed-form gradient.

G. Sharma, B. Schiele, "Scalable Nonlinear Embeddings for Semantic Category-based Image Retrieval": with
φ(x) = [k(l_1, x), …, k(l_d, x)] and d²(i, j) = ‖φ(x_i) − φ(x_j)‖², J = Σ max(0, m − y(b − d²)), y = 1 for the same
and −1 for different. b is the squared distance that divides the two kinds, m how far from it both have to stay. With
the linear kernel it is the paper's baseline ML, and with rows of a kernel matrix as points its KML.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from udml_core.losses.kernels import Kernel

IMAGES_AT_ONCE = 4096


@dataclass(frozen=True)
class PairHinge:
    """J as a mean over pairs. kernel: of the embedding. bias: b. margin: m."""

    kernel: Kernel
    bias: float
    margin: float

    def argument(self, squared: Tensor, same: Tensor) -> Tensor:
        """m − y(b − d²) of squared distances (p,): what is above 0 is the pair's loss."""
        return self.margin - _sign(same, squared) * (self.bias - squared)

    def loss(self, squared: Tensor, same: Tensor) -> Tensor:
        """The mean of max(0, m − y(b − d²))."""
        return self.argument(squared, same).clamp_min(0).mean()

    def squared(self, points: Tensor, rows: Tensor, pairs: Tensor) -> Tensor:
        """d² of pairs (p, 2) of points (n, D), (p,)."""
        images, places = pairs.unique(return_inverse=True)
        return squared_distances(self._embedded(points, rows, images), places)

    def gradient(self, points: Tensor, rows: Tensor, pairs: Tensor, same: Tensor) -> tuple[Tensor, Tensor]:
        """Arguments (p,) and the gradient (d, D) of the mean loss in the rows l.

        ∂l_t = Σ 2yς(k_ti − k_tj)(∇k(l_t, x_i) − ∇k(l_t, x_j)) / p, ς = 1 where the argument is above 0. Each distinct
        image is embedded once and pulled back once, with the sum of its pairs' 2yς(k_ti − k_tj)/p.
        """
        images, places = pairs.unique(return_inverse=True)
        embedding = self._embedded(points, rows, images)
        first, second = places.unbind(1)
        difference = embedding[first] - embedding[second]
        argument = self.argument(difference.square().sum(1), same)
        pull = (2 / len(pairs)) * (_sign(same, argument) * (argument > 0))[:, None] * difference
        coefficients = torch.zeros_like(embedding).index_add_(0, first, pull).index_add_(0, second, pull, alpha=-1)
        moved = coefficients.any(1)
        found = torch.zeros_like(rows)
        for part, weights in zip(images[moved].split(IMAGES_AT_ONCE), coefficients[moved].split(IMAGES_AT_ONCE),
                                 strict=True):
            found += self.kernel.pullback(points[part], rows, weights)
        return argument, found

    def _embedded(self, points: Tensor, rows: Tensor, images: Tensor) -> Tensor:
        """φ of some of the points, (u, d)."""
        return torch.cat([self.kernel.values(points[part], rows) for part in images.split(IMAGES_AT_ONCE)])


def squared_distances(embedding: Tensor, pairs: Tensor) -> Tensor:
    """‖z_i − z_j‖² of pairs (p, 2) of rows of an embedding (n, l), (p,)."""
    return (embedding[pairs[:, 0]] - embedding[pairs[:, 1]]).square().sum(1)


def _sign(same: Tensor, like: Tensor) -> Tensor:
    """y: 1 where the same, else −1."""
    return torch.where(same, 1.0, -1.0).to(like.dtype)
