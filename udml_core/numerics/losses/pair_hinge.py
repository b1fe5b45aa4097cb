"""Hinge loss of similar and dissimilar pairs, with its closed-form gradient.

G. Sharma, B. Schiele, "Scalable Nonlinear Embeddings for Semantic Category-based Image Retrieval". With
φ(x) = [k(l_1, x), …, k(l_d, x)] and d²(i, j) = ‖φ(x_i) − φ(x_j)‖², J = Σ max(0, m − y(b − d²)), where y = 1 for similar
and −1 for dissimilar pairs. The bias b is the squared distance that separates the two, and the margin m is the distance
from b that both must keep. With the linear kernel this is the paper's baseline ML, and with the rows of a kernel matrix
as points its baseline KML.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from udml_core.numerics.losses.kernels import Kernel

IMAGES_PER_BATCH = 4096
"""Maximum number of images that are embedded at once, which limits memory."""


@dataclass(frozen=True)
class PairHinge:
    """J as a mean over pairs.

    Attributes:
        kernel: The kernel of the embedding.
        bias: b.
        margin: m.
    """

    kernel: Kernel
    bias: float
    margin: float

    def argument(self, squared: Tensor, same: Tensor) -> Tensor:
        """Return m − y(b − d²) of squared distances, (p,).

        A positive value is the pair's loss.
        """
        return self.margin - _sign(same, squared) * (self.bias - squared)

    def loss(self, squared: Tensor, same: Tensor) -> Tensor:
        """Return the mean of max(0, m − y(b − d²))."""
        return self.argument(squared, same).clamp_min(0).mean()

    def squared(self, points: Tensor, rows: Tensor, pairs: Tensor) -> Tensor:
        """Compute d² of pairs (p, 2) of points (n, D), (p,)."""
        images, positions = pairs.unique(return_inverse=True)
        return squared_distances(self._embed(points, rows, images), positions)

    def gradient(self, points: Tensor, rows: Tensor, pairs: Tensor, same: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the arguments (p,) and the gradient (d, D) of the mean loss.

        The gradient is with respect to the rows l. ∂l_t = Σ 2yς(k_ti − k_tj)(∇k(l_t, x_i) − ∇k(l_t, x_j)) / p, with ς =
        1 if the argument is positive, else 0.
        """
        # An image occurs in many pairs. The coefficients 2yς(k_ti − k_tj)/p of its pairs are summed first, so that each
        # distinct image is embedded and pulled back only once.
        images, positions = pairs.unique(return_inverse=True)
        embedding = self._embed(points, rows, images)
        first, second = positions.unbind(1)
        difference = embedding[first] - embedding[second]
        argument = self.argument(difference.square().sum(1), same)
        per_pair = (2 / len(pairs)) * (_sign(same, argument) * (argument > 0))[:, None] * difference
        coefficients = torch.zeros_like(embedding)
        coefficients.index_add_(0, first, per_pair).index_add_(0, second, per_pair, alpha=-1)
        active = coefficients.any(1)  # images whose pairs all keep the margin contribute nothing
        gradient = torch.zeros_like(rows)
        for part, weights in zip(images[active].split(IMAGES_PER_BATCH), coefficients[active].split(IMAGES_PER_BATCH),
                                 strict=True):
            gradient += self.kernel.pullback(points[part], rows, weights)
        return argument, gradient

    def _embed(self, points: Tensor, rows: Tensor, images: Tensor) -> Tensor:
        """Return φ of the selected points, (u, d)."""
        return torch.cat([self.kernel.values(points[part], rows) for part in images.split(IMAGES_PER_BATCH)])


def squared_distances(embedding: Tensor, pairs: Tensor) -> Tensor:
    """Compute ‖z_i − z_j‖², (p,), for pairs (p, 2) of rows of an embedding (n, l)."""
    return (embedding[pairs[:, 0]] - embedding[pairs[:, 1]]).square().sum(1)


def _sign(same: Tensor, like: Tensor) -> Tensor:
    """Return y: 1 for similar pairs, −1 for dissimilar pairs."""
    return torch.where(same, 1.0, -1.0).to(like.dtype)
