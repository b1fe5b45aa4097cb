"""ML and KML: the linear and the kernelized baseline of NML.

They have the same loss on the same pairs.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from udml_core.base.declaration import Options, Shown
from udml_core.base.errors import UserError
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Card, Setting
from udml_core.methods.embedder import Head, KernelHead, histograms, unit
from udml_core.methods.fields import Beginning
from udml_core.methods.shared.pair_method import NML_PAPER, PairMethod, PairProblem, check_margin, steps_seconds
from udml_core.methods.shared.projection import check_projection, first_projection
from udml_core.numerics.losses.kernels import Linear, kernel_of
from udml_core.numerics.losses.pair_hinge import PairHinge

Bias = Annotated[float, Field(gt=0, le=100), Shown(symbol="b", step=0.1, high=10.0, label="Distance threshold")]
Margin = Annotated[float, Field(ge=0, le=100), Shown(symbol="m", step=0.1, high=10.0)]
RowRate = Annotated[float, Field(gt=0, le=1000), Shown(low=1e-4, high=1.0, logarithmic=True)]


class LinearRows(Options):
    """The fields of a linear projection of points, its loss and the unit of its learning rate."""

    bias: Bias = 1.0
    """Squared distance that separates similar from dissimilar pairs."""

    margin: Margin = 1.0
    """Distance that each pair must keep from the bias; at most the bias."""

    learning_rate: RowRate = 0.01
    """Learning rate for each pair, divided by the mean squared length of the points."""

    beginning: Beginning = "pca"
    """Initial projection: the principal components, or a random subspace as in the paper. Both are scaled so that the
    median squared distance of pairs is the bias."""

    def _linear_problem(self, points: Tensor) -> PairProblem:
        return PairProblem(points, PairHinge(Linear(), self.bias, self.margin), self.learning_rate)

    def _rate_unit(self, problem: PairProblem, first: Tensor) -> float:
        # With the inverse mean squared length of the points, a step changes distances equally for points of any length.
        return 1 / float(problem.points.square().sum(1).mean().clamp_min(1e-12))


class ML(LinearRows, PairMethod):
    """Linear metric learning on unit features.

    min_L Σ max(0, m − y(b − ‖L(x_i−x_j)‖²)) with m = b = 1.
    """

    card: ClassVar[Card] = Card(
        name="ml",
        order=130,
        title="ML, linear",
        paper=NML_PAPER,
        summary=("Looks at pairs of images marked as similar or dissimilar, and weights the features so that similar "
                 "pairs come closer and dissimilar pairs move apart. It is quick, and helps if a simple reweighting "
                 "of the features separates the pairs."),
        idea=("Learn a linear projection of unit features that brings similar pairs closer than a threshold and moves "
              "dissimilar pairs farther apart. It is NML with the dot product as its kernel. It is the strongest of "
              "NML's baselines."),
        supervision="pairs",
        promise="may fall",
        source="NML's paper uses it as a baseline and promises no gain.")

    def check(self, images: int, width: int | None) -> None:
        check_margin(type(self).__name__, self.margin, self.bias)
        check_projection(type(self).__name__, self.dimension, self.beginning, images, width)

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        return steps_seconds(2e-10, self.dimension, width, self.batch)

    def _problem(self, data: TrainingData, setting: Setting) -> PairProblem:
        points = unit(data.features.to(setting.device))
        self.check(*points.shape)
        return self._linear_problem(points)

    def _first_rows(self, problem: PairProblem, data: TrainingData, seed: int) -> Tensor:
        return _scaled_projection(problem, data, self.dimension, self.beginning, seed)

    def _head(self, rows: Tensor, data: TrainingData) -> Head:
        return Head(rows.mT.contiguous(), normalized=False)


class KML(LinearRows, PairMethod):
    """The kernelized form of ML: ‖A(K_i − K_j)‖².

    K_i is the column of the χ² kernel matrix of image i.

    A step costs O(dn), and embedding a new image takes n kernels; NML avoids both. K is centered, which changes no
    distance.
    """

    MOST_IMAGES: ClassVar[int] = 10_000

    card: ClassVar[Card] = Card(
        name="kml",
        order=140,
        title="KML, kernelized",
        paper=NML_PAPER,
        summary=("Describes each image by its similarity to every training image, then moves similar pairs closer "
                 "and dissimilar pairs apart. It can follow more complicated differences than ML, but takes long and "
                 "much memory with many images."),
        idea=("Describe each image by its χ² kernel with every training image, and learn a projection of this "
              "description. This is the usual way to make a linear metric nonlinear. Its cost grows with the number of "
              "training images. The features must be at least 0."),
        supervision="pairs",
        promise="may fall",
        source="Paper, in words: about as good as NML at many times the cost.")

    @property
    def positive_only(self) -> bool:
        return True

    @property
    def continues_on_new_vectors(self) -> bool:
        return False  # each entry of the description belongs to one training image

    def check(self, images: int, width: int | None) -> None:
        check_margin(type(self).__name__, self.margin, self.bias)
        if images > self.MOST_IMAGES:
            raise UserError(f"{type(self).__name__} stores the kernel matrix of all training images and accepts at "
                            f"most {self.MOST_IMAGES:,} images, got {images:,}. Use fewer images, or choose a method "
                            "that compares images with learned prototypes.")
        check_projection(type(self).__name__, self.dimension, self.beginning, images, images)

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        once = 3e-10 * images**2 * width + (2e-9 * images**3 if self.beginning == "pca" else 0.0)
        return once / self.epochs + steps_seconds(2e-10, self.dimension, images, self.batch)

    def expected_bytes(self, images: int, width: int) -> float:
        return super().expected_bytes(images, width) + 48.0 * images**2

    def _problem(self, data: TrainingData, setting: Setting) -> PairProblem:
        points = self._histograms(data, setting.device)
        self.check(len(points), points.shape[1])
        values = kernel_of("chi2", 1.0, points.shape[1]).values(points, points)
        return self._linear_problem(values - values.mean(0))

    def _histograms(self, data: TrainingData, device: torch.device) -> Tensor:
        return histograms(data.features.to(device))

    def _first_rows(self, problem: PairProblem, data: TrainingData, seed: int) -> Tensor:
        return _scaled_projection(problem, data, self.dimension, self.beginning, seed)

    def _head(self, rows: Tensor, data: TrainingData) -> KernelHead:
        return KernelHead(self._histograms(data, rows.device), "chi2", 1.0, weight=rows.mT.contiguous())


def _scaled_projection(problem: PairProblem, data: TrainingData, dimension: int, beginning: Beginning,
                       seed: int) -> Tensor:
    """Return initial rows (d, D), scaled to a median d² of pairs equal to the bias."""
    rows = first_projection(problem.points, dimension, beginning, seed).mT.contiguous().to(problem.points.device)
    pairs = data.pairs[0].to(problem.points.device)
    median = problem.hinge.squared(problem.points, rows, pairs).median()
    return rows * (problem.hinge.bias / median.clamp_min(1e-12)).sqrt()
