"""NML: nonlinear metric learning with prototypes and a kernel.

G. Sharma, B. Schiele, "Scalable Nonlinear Embeddings for Semantic Category-based Image Retrieval".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from udml_core.base.declaration import Shown
from udml_core.base.errors import UserError
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Card, Setting
from udml_core.methods.embedder import KernelHead, histograms
from udml_core.methods.shared.pair_method import NML_PAPER, PairMethod, PairProblem, check_margin, steps_seconds
from udml_core.numerics.explanations import Prototypes
from udml_core.numerics.losses.kernels import kernel_of
from udml_core.numerics.losses.pair_hinge import PairHinge
from udml_core.numerics.sampling import generator

SCALED_ON = 500
"""Largest number of pairs whose median distance scales the initial rows."""

LOWEST, HIGHEST = -8.0, 16.0
"""Smallest and largest exponent of the factor that scales random rows."""

PRECISION = 0.003
"""Largest error of the exponent. The squared distance grows at most with the factor's square, so by 0.6 %."""


class NML(PairMethod):
    """Nonlinear metric learning (algorithm 1).

    φ(x) = [k(l_1, x), …, k(l_d, x)] with prototypes l_t ≥ 0.

    d² = Σ_t (k(l_t, x_i) − k(l_t, x_j))², loss Σ max(0, m − y(b − d²)), subgradient
    2y(k(l_t, x_i) − k(l_t, x_j))(∇k(l_t, x_i) − ∇k(l_t, x_j)) for every violating pair.
    """

    card: ClassVar[Card] = Card(
        name="nml",
        order=120,
        title="NML",
        paper=NML_PAPER,
        summary=("Compares each image with a small set of learned reference points, and moves these points until "
                 "similar pairs are close and dissimilar pairs are far apart. It helps for classes seen in training, "
                 "and its steps stay quick with many images."),
        idea=("Learn a set of prototypes, and describe each image by how similar its features are to each prototype "
              "under a kernel. Move the prototypes so that similar pairs are closer than a threshold and dissimilar "
              "pairs are farther apart. The cost of a step does not depend on the number of images. The features "
              "must be at least 0."),
        supervision="pairs",
        promise="may fall",
        source=("Paper, in words: at or above all baselines on materials, birds, objects and scenes, for classes of "
                "the training half. On unseen classes it may fall below its start; see the record 'NML and its "
                "baselines on digits' on the page Results."))

    bias: Annotated[float, Field(gt=0, le=10), Shown(symbol="b", step=0.01, high=1.0, label="Distance threshold")] = 0.1
    """Squared distance that separates similar from dissimilar pairs."""

    margin: Annotated[float, Field(ge=0, le=10), Shown(symbol="m", step=0.005, high=0.5)] = 0.02
    """Distance that each pair must keep from the bias; at most the bias."""

    learning_rate: Annotated[float, Field(gt=0, le=1000),
                             Shown(low=0.001, high=10.0, logarithmic=True)] = 0.3
    """Learning rate for each pair, in units of the mean entry of the initial prototypes. It then suits features of any
    width and all but very large batches."""

    kernel: Literal["chi2", "intersection", "hellinger", "rbf"] = "chi2"
    """Kernel: χ² as in the paper, the smoothed histogram intersection, Hellinger's, or the Gaussian (rbf)."""

    scale: Annotated[float, Field(gt=0, le=100), Shown(step=0.1, high=10.0, label="Kernel scale")] = 1.0
    """Temperature of the intersection in units of the mean feature 1/D, or width of the Gaussian in units of 1/√D."""

    beginning: Annotated[Literal["images", "random"], Shown(label="Initial prototypes")] = "images"
    """Initial prototypes: random training images, or uniform random numbers. Both are scaled until the median squared
    distance of pairs is close to the bias, except for the Gaussian kernel, which is largest at the images. Random
    numbers that cannot reach the bias are scaled to the largest median."""

    negative: Annotated[Literal["refuse", "split"], Shown(label="Negative features")] = "refuse"
    """Treatment of negative features: refuse them, or replace x by its positive and negative parts [x⁺, x⁻]."""

    @property
    def positive_only(self) -> bool:
        return self.negative == "refuse"

    def check(self, images: int, width: int | None) -> None:
        check_margin(type(self).__name__, self.margin, self.bias)
        if self.beginning == "images" and self.dimension > images:
            raise UserError(f"{type(self).__name__}.dimension must be at most the number of images {images} if "
                            f"prototypes start at images, got {self.dimension}. Lower the field 'dimension'.")

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        return steps_seconds(8e-10, self.dimension, width, self.batch)

    def _problem(self, data: TrainingData, setting: Setting) -> PairProblem:
        points = histograms(data.features.to(setting.device), self.negative == "split")
        self.check(len(points), points.shape[1])
        kernel = kernel_of(self.kernel, self.scale, points.shape[1])
        return PairProblem(points, PairHinge(kernel, self.bias, self.margin), self.learning_rate)

    def _first_rows(self, problem: PairProblem, data: TrainingData, seed: int) -> Tensor:
        random = generator(seed, 0)
        points = problem.points
        if self.beginning == "images":
            sample = torch.randperm(len(points), generator=random)[:self.dimension]
            rows = points[sample.to(points.device)]
        else:
            drawn = torch.rand(self.dimension, points.shape[1], generator=random)
            rows = histograms(drawn).to(points.device)
        return self._scale_to_bias(problem, rows, data) if problem.hinge.kernel.positive else rows

    def _scale_to_bias(self, problem: PairProblem, rows: Tensor, data: TrainingData) -> Tensor:
        """Scale the rows so that the median d² is close to the bias.

        The kernels are not homogeneous in l, so the factor is found by bisection of its logarithm.
        """
        pairs = data.pairs[0]
        sample = pairs[:: -(-len(pairs) // SCALED_ON)].to(rows.device)

        def median(exponent: float) -> Tensor:
            return problem.hinge.squared(problem.points, rows * 2.718**exponent, sample).median()

        # Images keep the fixed range that all stored runs began with: past its peak their median stays near it, so
        # bisection does not lose the bias. For random rows it falls far below.
        low, high = (LOWEST, 3.0) if self.beginning == "images" else _rising_side(median, self.bias)
        while high - low > PRECISION:
            middle = (low + high) / 2
            low, high = (middle, high) if median(middle) < self.bias else (low, middle)
        return rows * 2.718**low

    def _rate_unit(self, problem: PairProblem, first: Tensor) -> float:
        return float(first.mean())

    def _head(self, rows: Tensor, data: TrainingData) -> KernelHead:
        return KernelHead(rows, self.kernel, self.scale, self.negative == "split")

    def _prototypes(self, rows: Tensor) -> tuple[Prototypes, ...]:
        return (Prototypes(rows),)


def _rising_side(median: Callable[[float], Tensor], bias: float) -> tuple[float, float]:
    """Bracket the first exponent at which the median d² reaches the bias.

    The median rises with the factor up to a peak. Then it falls for kernels that saturate: with l far above x, the χ²
    kernel is 2Σx and the intersection Σx, both equal for all ℓ1-normalized x.

    Returns:
        Exponents (low, high) with the median below the bias at low and not below it at high. If the median never
        reaches the bias, both are the exponent of its peak.
    """
    peak, largest = LOWEST, median(LOWEST)
    exponent = LOWEST
    while exponent < HIGHEST:
        exponent += 1
        value = median(exponent)
        if value >= bias:
            return exponent - 1, exponent
        if value < largest / 2:
            break
        if value > largest:
            peak, largest = exponent, value
    # The peak lies within one step of the largest value. Halve the step around the best exponent.
    lower, step = peak - 1, 0.5
    while step > PRECISION:
        for exponent in (peak - step, peak + step):
            value = median(exponent)
            if value > largest:
                peak, largest = exponent, value
        step /= 2
    return (lower, peak) if largest >= bias else (peak, peak)
