"""NML, and the two baselines that learn from the same pairs by the same loss: ML, linear, and KML, its dual form.

G. Sharma, B. Schiele, "Scalable Nonlinear Embeddings for Semantic Category-based Image Retrieval". The paper takes 10⁶
steps of one pair each; mini-batches are a departure from it, and `batch` = 1 is the paper's.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from udml_core.data.training import TrainingData
from udml_core.declaration import Shown
from udml_core.errors import UserError
from udml_core.explanations import Pairs, Prototypes
from udml_core.losses.kernels import Kernel, Linear, kernel_of
from udml_core.losses.pair_hinge import PairHinge
from udml_core.methods.base import Card, Epoch, Method, Setting, State
from udml_core.methods.embedder import Embedder, Head, KernelHead, histograms, unit
from udml_core.methods.shared.projection import Beginning, check_projection, first_projection
from udml_core.sampling import balanced_draw, generator

PAPER = "G. Sharma, B. Schiele: Scalable Nonlinear Embeddings for Semantic Category-based Image Retrieval."
PAIRS_AN_EPOCH = 10_000
SHOWN_PAIRS = 2_000
SCALED_ON = 500
"""Pairs whose median distance the start is scaled by."""


@dataclass(frozen=True)
class _Space:
    """What the rows l are learnt in: points (n, D), and the kernel between both."""

    points: Tensor
    kernel: Kernel

    def step(self, rows: Tensor, gradient: Tensor, rate: float) -> Tensor:
        """l − rate·∂l, and never below 0 where the kernel is of non-negative entries."""
        moved = rows - rate * gradient
        return moved.clamp_min_(0) if self.kernel.positive else moved


class PairMethod(Method):
    """What NML, ML and KML share: the hinge on d² of pairs, drawn half of each kind, and stochastic subgradient."""


    dimension: Annotated[int, Field(ge=1, le=4096), Shown(symbol="d", step=1, high=128)] = 32
    """Width of the embedding, the number of rows l."""

    batch: Annotated[int, Field(ge=1, le=10_000), Shown(step=1, high=1000)] = 100
    """Pairs whose steps are taken together; 1 is the paper's."""

    epochs: Annotated[int, Field(ge=1, le=1000), Shown(step=1, high=100)] = 100
    """Passes of 10,000 pairs each; 100 are the paper's million pairs."""

    fields_when_continued: ClassVar[tuple[str, ...]] = ("epochs", "batch", "bias", "margin", "learning_rate")

    bias: float
    margin: float
    learning_rate: float

    @abstractmethod
    def _space(self, data: TrainingData, setting: Setting) -> _Space:
        """The training half as this method sees it."""

    @abstractmethod
    def _first_rows(self, space: _Space, data: TrainingData, seed: int) -> Tensor:
        """l before the first step, with the median d² of pairs at b as far as that can be had."""

    @abstractmethod
    def _unit(self, space: _Space, first: Tensor) -> float:
        """What the learning rate is told in."""

    @abstractmethod
    def _head(self, rows: Tensor, data: TrainingData) -> Head | KernelHead:
        """What embeds as the rows say."""

    def _prototypes(self, rows: Tensor) -> tuple[Prototypes, ...]:
        """The rows as a record, where they are in the space of the features."""
        return ()

    def _check_bias(self) -> None:
        if self.margin > self.bias:
            raise UserError(f"{type(self).__name__}.margin must be at most the bias {self.bias:g}, got "
                            f"{self.margin:g}: no distance could be so small. Lower the field 'margin'.")

    def initial(self, data: TrainingData, setting: Setting) -> Embedder:
        rows = self._first_rows(self._space(data, setting), data, setting.seed)
        return Embedder(setting.encoder, self._head(rows, data).to(setting.device))

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        space = self._space(data, setting)
        done, rows, first, unit = self._resume(space, data, setting, start)
        pairs, same = (one.to(setting.device) for one in data.pairs)
        hinge = PairHinge(space.kernel, self.bias, self.margin)
        shown = torch.arange(0, len(pairs), -(-len(pairs) // SHOWN_PAIRS))
        before = hinge.squared(space.points, first, pairs[shown])
        rate = self.learning_rate * unit
        for epoch in range(done + 1, self.epochs + 1):
            drawn = balanced_draw(same.cpu(), PAIRS_AN_EPOCH, generator(setting.seed, epoch)).to(setting.device)
            seen = []
            for position, part in enumerate(drawn.split(self.batch), 1):
                argument, gradient = hinge.gradient(space.points, rows, pairs[part], same[part])
                rows = space.step(rows, gradient, rate * len(part))
                seen.append(argument)
                setting.report(position * self.batch / PAIRS_AN_EPOCH)
            after = hinge.squared(space.points, rows, pairs[shown])
            used = Pairs(pairs[shown], same[shown], before, after, hinge.argument(after, same[shown]))
            yield Epoch(epoch, _curves(torch.cat(seen)), Embedder(setting.encoder, self._head(rows, data)),
                        (used, *self._prototypes(rows)),
                        {"epoch": torch.tensor(epoch), "rows": rows, "first rows": first,
                         "unit": torch.tensor(unit, dtype=torch.float64)})

    def continue_fit(self, data: TrainingData, setting: Setting, state: State, epochs: int) -> Iterator[Epoch]:
        return self.model_copy(update={"epochs": int(state["epoch"]) + epochs}).fit(data, setting, state)

    def state_to_continue(self, state: State) -> State:
        return {**state, "first rows": state["rows"]}  # `before` in explanations is the finished model

    def _resume(self, space: _Space, data: TrainingData, setting: Setting,
                start: State | None) -> tuple[int, Tensor, Tensor, float]:
        """Epochs done, the rows, the rows that were the first, and what the learning rate is told in."""
        if start is None:
            rows = self._first_rows(space, data, setting.seed)
            return 0, rows, rows, self._unit(space, rows)
        rows, first = (start[name].to(setting.device) for name in ("rows", "first rows"))
        if rows.shape[1] != space.points.shape[1]:
            raise UserError(f"To go on, {type(self).__name__} needs points of the width {rows.shape[1]} that it began "
                            f"with, got {space.points.shape[1]}. Give the same features, or start anew.")
        unit = float(start["unit"]) if "unit" in start else self._unit(space, first)  # of before it was kept
        return int(start["epoch"]), rows, first, unit


class NML(PairMethod):
    """Nonlinear metric learning (algorithm 1): rows l ≥ 0 that an image is compared with by a kernel."""

    card: ClassVar[Card] = Card(
        name="nml",
        title="NML",
        paper=PAPER,
        idea=("Each dimension of the embedding is a learnt prototype, and its value how much an image's features, as "
              "a histogram, are like it by the χ² kernel. Pairs of the same are pulled below one distance and "
              "different ones pushed above another. The cost of a step does not grow with the number of images."),
        supervision="pairs",
        promise="may fall",
        source=("Paper, in words: at or above all baselines on materials, birds, objects and scenes, for classes that"
                " training saw. On others it may fall below its start (digits 0–4 to 5–9: MAP@R 42.8 to 36.7)."))

    kernel: Literal["chi2", "intersection", "hellinger", "rbf"] = "chi2"
    """χ² as in the paper, the smoothed histogram intersection, Hellinger's, or the Gaussian."""

    bias: Annotated[float, Field(gt=0, le=10), Shown(symbol="b", step=0.01, high=1.0)] = 0.1
    """Squared distance that divides the same from different."""

    margin: Annotated[float, Field(ge=0, le=10), Shown(symbol="m", step=0.005, high=0.5)] = 0.02
    """How far from the bias a pair's squared distance has to stay; at most the bias."""

    scale: Annotated[float, Field(gt=0, le=100), Shown(step=0.1, high=10.0)] = 1.0
    """Temperature of the intersection, in units of the mean feature 1/D, or width of the Gaussian, in units of 1/√D."""

    learning_rate: Annotated[float, Field(gt=0, le=1000),
                             Shown(symbol="η", low=0.001, high=10.0, logarithmic=True)] = 0.3
    """Step of the rows for each pair, in units of their mean entry at the start, so that it suits features of any width
    and batches of any but very large size."""

    beginning: Literal["images", "random"] = "images"
    """Rows start at random training images, or at uniform random numbers; either scaled until the median squared
    distance is the bias, or as near as so few rows can come. Those of the Gaussian kernel are not scaled: it is largest
    at the images."""

    negative: Literal["refuse", "split"] = "refuse"
    """What to do about negative features: refuse them, or take [x⁺, x⁻] in place of x."""

    @property
    def positive_only(self) -> bool:
        return self.negative == "refuse"

    def check(self, images: int, width: int | None) -> None:
        self._check_bias()
        if self.beginning == "images" and self.dimension > images:
            raise UserError(f"NML.dimension must be at most the number of images {images} where rows start at images, "
                            f"got {self.dimension}. Lower the field 'dimension'.")

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        return 8e-10 * PAIRS_AN_EPOCH * self.dimension * width + 3e-4 * PAIRS_AN_EPOCH / self.batch

    def _space(self, data: TrainingData, setting: Setting) -> _Space:
        points = histograms(data.features.to(setting.device), self.negative == "split")
        self.check(len(points), points.shape[1])
        return _Space(points, kernel_of(self.kernel, self.scale, points.shape[1]))

    def _first_rows(self, space: _Space, data: TrainingData, seed: int) -> Tensor:
        random = generator(seed, 0)
        if self.beginning == "images":
            chosen = torch.randperm(len(space.points), generator=random)[:self.dimension]
            rows = space.points[chosen.to(space.points.device)]
        else:
            drawn = torch.rand(self.dimension, space.points.shape[1], generator=random)
            rows = histograms(drawn).to(space.points.device)
        return self._scaled(space, rows, data) if space.kernel.positive else rows

    def _scaled(self, space: _Space, rows: Tensor, data: TrainingData) -> Tensor:
        """The rows times the factor, found by bisection of its logarithm, at which the median d² is the bias."""
        pairs = data.pairs[0]
        some = pairs[:: -(-len(pairs) // SCALED_ON)].to(rows.device)
        hinge = PairHinge(space.kernel, self.bias, self.margin)
        low, high = -8.0, 3.0
        for _ in range(12):
            middle = (low + high) / 2
            below = hinge.squared(space.points, rows * 2.718**middle, some).median() < self.bias
            low, high = (middle, high) if below else (low, middle)
        return rows * 2.718**low

    def _unit(self, space: _Space, first: Tensor) -> float:
        return float(first.mean())

    def _head(self, rows: Tensor, data: TrainingData) -> KernelHead:
        return KernelHead(rows, self.kernel, self.scale, self.negative == "split")

    def _prototypes(self, rows: Tensor) -> tuple[Prototypes, ...]:
        return (Prototypes(rows),)


class LinearPairs(PairMethod):
    """What ML and KML share: rows L that points are multiplied by, and the margin 1."""

    bias: Annotated[float, Field(gt=0, le=100), Shown(symbol="b", step=0.1, high=10.0)] = 1.0
    """Squared distance that divides the same from different."""

    margin: Annotated[float, Field(ge=0, le=100), Shown(symbol="m", step=0.1, high=10.0)] = 1.0
    """How far from the bias a pair's squared distance has to stay; at most the bias."""

    learning_rate: Annotated[float, Field(gt=0, le=1000),
                             Shown(symbol="η", low=1e-4, high=1.0, logarithmic=True)] = 0.01
    """Step of the rows for each pair, over the points' mean squared length."""

    beginning: Beginning = "pca"
    """Rows start at the principal components, or at a random subspace as in the paper; either scaled so that the median
    squared distance is the bias."""

    def _first_rows(self, space: _Space, data: TrainingData, seed: int) -> Tensor:
        rows = first_projection(space.points, self.dimension, self.beginning, seed).mT.contiguous()
        rows, pairs = rows.to(space.points.device), data.pairs[0].to(space.points.device)
        median = PairHinge(space.kernel, self.bias, self.margin).squared(space.points, rows, pairs).median()
        return rows * (self.bias / median.clamp_min(1e-12)).sqrt()

    def _unit(self, space: _Space, first: Tensor) -> float:
        return 1 / float(space.points.square().sum(1).mean().clamp_min(1e-12))


class ML(LinearPairs):
    """Linear metric learning by the same loss: min_L Σ max(0, m − y(b − ‖L(x_i−x_j)‖²)) on unit features."""

    card: ClassVar[Card] = Card(
        name="ml",
        title="ML, linear",
        paper=PAPER,
        idea=("A matrix projects unit features so that pairs of the same come closer than one distance and different "
              "ones stay beyond another. It is NML with the dot product for a kernel, and the strongest of its "
              "baselines."),
        supervision="pairs",
        promise="may fall",
        source="It is the baseline that NML is measured beside.")

    def check(self, images: int, width: int | None) -> None:
        self._check_bias()
        check_projection("ML", self.dimension, self.beginning, images, width)

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        return 2e-10 * PAIRS_AN_EPOCH * self.dimension * width + 3e-4 * PAIRS_AN_EPOCH / self.batch

    def _space(self, data: TrainingData, setting: Setting) -> _Space:
        points = unit(data.features.to(setting.device))
        self.check(*points.shape)
        return _Space(points, Linear())

    def _head(self, rows: Tensor, data: TrainingData) -> Head:
        return Head(rows.mT.contiguous(), normalized=False)


class KML(LinearPairs):
    """The kernelized form of ML: ‖A(K_i − K_j)‖², K_i the column of the χ² kernel matrix of all training images.

    Its step costs O(dn) and its embedding of a new image n kernels, which is what NML saves (the paper's complexity).
    K is centered, which changes no distance.
    """

    card: ClassVar[Card] = Card(
        name="kml",
        title="KML, kernelized",
        paper=PAPER,
        idea=("An image is described by its χ² kernels with every training image, and a matrix projects that. It is "
              "the usual way to make a linear metric nonlinear; its cost grows with the number of training images."),
        supervision="pairs",
        promise="may fall",
        source="Paper, in words: about as good as NML, at many times its cost.")

    MOST_IMAGES: ClassVar[int] = 10_000

    @property
    def positive_only(self) -> bool:
        return True

    @property
    def continues_on_new_vectors(self) -> bool:
        return False  # the kernel's columns are the training images

    def check(self, images: int, width: int | None) -> None:
        self._check_bias()
        if images > self.MOST_IMAGES:
            raise UserError(f"KML keeps a kernel of every two training images and takes at most {self.MOST_IMAGES:,}, "
                            f"got {images:,}. Choose NML, whose cost does not depend on them.")
        check_projection("KML", self.dimension, self.beginning, images, images)

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        once = 3e-10 * images**2 * width + (2e-9 * images**3 if self.beginning == "pca" else 0.0)
        steps = 2e-10 * PAIRS_AN_EPOCH * self.dimension * images + 3e-4 * PAIRS_AN_EPOCH / self.batch
        return once / self.epochs + steps

    def expected_bytes(self, images: int, width: int) -> float:
        return super().expected_bytes(images, width) + 48.0 * images**2

    def _space(self, data: TrainingData, setting: Setting) -> _Space:
        points = self._points(data, setting.device)
        self.check(len(points), points.shape[1])
        values = kernel_of("chi2", 1.0, points.shape[1]).values(points, points)
        return _Space(values - values.mean(0), Linear())

    def _points(self, data: TrainingData, device: torch.device) -> Tensor:
        return histograms(data.features.to(device))

    def _head(self, rows: Tensor, data: TrainingData) -> KernelHead:
        return KernelHead(self._points(data, rows.device), "chi2", 1.0, weight=rows.mT.contiguous())


def _curves(argument: Tensor) -> dict[str, float]:
    """The mean loss, and the share of pairs that break their margin."""
    return {"loss": float(argument.clamp_min(0).mean()), "violating": float((argument > 0).float().mean())}
