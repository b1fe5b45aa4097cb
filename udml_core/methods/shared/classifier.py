"""The linear classifier on embeddings that DeepCluster, RotNet and Exemplar train and discard."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from udml_core.base.declaration import Shown
from udml_core.methods.shared.instance import Curves

Sharpness = Annotated[float, Field(gt=0, le=10), Shown(symbol="τ", low=0.02, high=1, logarithmic=True,
                                                       label="Temperature of the classifier")]
"""The factor 1/τ of the scores: embeddings have unit length, and without it no class could get a large share."""

FirstClassifier = Literal["centers", "random"]
RANDOM_SPREAD = 0.01
"""Standard deviation of random weights, as in DeepCluster's public code."""


class Classifier(nn.Module):
    """Scores (b, c) = x·Wᵀ/τ + b of embeddings x (b, l).

    Attributes:
        weight: W (c, l).
        bias: b (c,).
    """

    def __init__(self, weight: Tensor, temperature: float) -> None:
        """Begin at given weights, and at zero biases."""
        super().__init__()
        self._temperature = temperature
        self.weight = nn.Parameter(weight.clone())
        self.bias = nn.Parameter(weight.new_zeros(len(weight)))

    def reset(self, weight: Tensor) -> None:
        """Replace the weights, and set the biases to zero."""
        with torch.no_grad():
            self.weight.copy_(weight)
            self.bias.zero_()

    def loss(self, rows: Tensor, classes: Tensor) -> tuple[Tensor, Curves]:
        """Return the mean of −log softmax(scores)[class] and the share of rows whose class has the largest score.

        Args:
            rows: Embeddings (b, l).
            classes: (b,) int64.
        """
        scores = rows @ self.weight.mT / self._temperature + self.bias
        return cross_entropy(scores, classes), {"accuracy": (scores.argmax(1) == classes).float().mean()}


def classifier_seconds(rows: int, classes: int, width: int) -> float:
    """Estimate the time of the scores of rows (n, l) and their gradient on two CPU cores."""
    return 1e-10 * rows * classes * width


def random_weights(classes: int, width: int, random: torch.Generator) -> Tensor:
    """Draw weights (classes, width) from a normal distribution of standard deviation `RANDOM_SPREAD`."""
    return RANDOM_SPREAD * torch.randn(classes, width, generator=random)
