"""Learning from pairs of similar and dissimilar images, shared by NML, ML and KML.

G. Sharma, B. Schiele, "Scalable Nonlinear Embeddings for Semantic Category-based Image Retrieval". The paper takes 10⁶
steps of one pair each. Batches of several pairs are a departure; `batch` = 1 is the paper's algorithm.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from udml_core.base.declaration import Shown
from udml_core.base.errors import UserError
from udml_core.data.training_data import TrainingData
from udml_core.methods.base import Epoch, Method, Setting, State
from udml_core.methods.embedder import Embedder, Head, KernelHead
from udml_core.methods.fields import Epochs, PairDimension
from udml_core.methods.shared.epoch_loop import EpochLoop, StepCurves
from udml_core.numerics.explanations import Pairs, Prototypes
from udml_core.numerics.losses.pair_hinge import PairHinge
from udml_core.numerics.sampling import balanced_draw

NML_PAPER = "G. Sharma, B. Schiele: Scalable Nonlinear Embeddings for Semantic Category-based Image Retrieval."
PAIRS_AN_EPOCH = 10_000
SHOWN_PAIRS = 2_000


@dataclass(frozen=True)
class PairProblem:
    """The optimization problem of a method on a training half.

    Attributes:
        points: Points (n, D), the features in the method's own form.
        hinge: The hinge loss with its kernel, bias b and margin m.
        learning_rate: The field of that name, before it is scaled to the data.
    """

    points: Tensor
    hinge: PairHinge
    learning_rate: float

    def step(self, rows: Tensor, gradient: Tensor, rate: float) -> Tensor:
        """Return l − rate·∂l, clamped at 0 if the kernel is positive.

        Positive kernels are defined for non-negative entries only.
        """
        moved = rows - rate * gradient
        return moved.clamp_min_(0) if self.hinge.kernel.positive else moved


class PairMethod(Method):
    """Stochastic subgradient descent on a hinge loss of pairs.

    The loss is Σ max(0, m − y(b − d²)).

    y is 1 for similar and −1 for dissimilar pairs; each batch holds both kinds in equal numbers. The learned rows
    l (d, D) define the embedding, one dimension each.
    """

    fields_when_continued: ClassVar[tuple[str, ...]] = ("epochs", "batch", "bias", "margin", "learning_rate")

    dimension: PairDimension = 32
    """Dimension of the embedding, which is the number of learned rows l."""

    batch: Annotated[int, Field(ge=1, le=10_000), Shown(step=1, high=1000, label="Batch size")] = 100
    """Pairs in a batch; the paper uses 1."""

    epochs: Epochs = 100
    """Epochs of 10,000 pairs each. The paper's million pairs are 100 epochs."""

    @abstractmethod
    def _problem(self, data: TrainingData, setting: Setting) -> PairProblem:
        """Return the points, the loss and the learning rate."""

    @abstractmethod
    def _first_rows(self, problem: PairProblem, data: TrainingData, seed: int) -> Tensor:
        """Return the initial rows l.

        Their scale makes the median d² of pairs close to the bias b.
        """

    @abstractmethod
    def _rate_unit(self, problem: PairProblem, first: Tensor) -> float:
        """Return the unit of the learning rate.

        The unit makes one default suit features of any scale.
        """

    @abstractmethod
    def _head(self, rows: Tensor, data: TrainingData) -> Head | KernelHead:
        """Return the head that embeds features with the rows."""

    def _prototypes(self, rows: Tensor) -> tuple[Prototypes, ...]:
        """Return the rows as a record if they lie in the space of the features."""
        return ()

    def initial(self, data: TrainingData, setting: Setting) -> Embedder:
        rows = self._first_rows(self._problem(data, setting), data, setting.seed)
        return Embedder(setting.encoder, self._head(rows, data).to(setting.device))

    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        yield from _PairLoop(self, data, setting, start).run()

    def continue_fit(self, data: TrainingData, setting: Setting, state: State, epochs: int) -> Iterator[Epoch]:
        return self.model_copy(update={"epochs": int(state["epoch"]) + epochs}).fit(data, setting, state)

    def state_to_continue(self, state: State) -> State:
        # Explanations compare distances before and after; for the new run, before is the finished model.
        return {**state, "first rows": state["rows"]}


class _PairLoop(EpochLoop[PairMethod]):
    """The rows, and the initial rows with their unit of the learning rate."""

    def __init__(self, method: PairMethod, data: TrainingData, setting: Setting, start: State | None) -> None:
        super().__init__(method, data, setting, start)
        self._problem = problem = method._problem(data, setting)
        if start is None:
            self._rows = self._first = method._first_rows(problem, data, setting.seed)
        else:
            self._rows, self._first = (start[name].to(setting.device) for name in ("rows", "first rows"))
        width, needed = problem.points.shape[1], self._rows.shape[1]
        if needed != width:
            raise UserError(f"To continue, {type(method).__name__} needs features of width {needed}, as at the start; "
                            f"got {width}. Use the same features, or start a new run.")
        # States of the first version do not hold the unit.
        self._unit = float(start["unit"]) if start and "unit" in start else method._rate_unit(problem, self._first)
        self._pairs, self._same = (part.to(setting.device) for part in data.pairs)
        self._shown = torch.arange(0, len(self._pairs), -(-len(self._pairs) // SHOWN_PAIRS))
        self._before = problem.hinge.squared(problem.points, self._first, self._pairs[self._shown])

    def _steps(self, epoch: int, random: torch.Generator) -> Iterator[StepCurves]:
        """Take the epoch's steps, and yield the curves of all its pairs together."""
        problem, hinge, batch = self._problem, self._problem.hinge, self.method.batch
        pairs, same, shown = self._pairs, self._same, self._shown
        drawn = balanced_draw(same.cpu(), PAIRS_AN_EPOCH, random).to(self.setting.device)
        arguments = []
        for position, part in enumerate(drawn.split(batch), 1):
            argument, gradient = hinge.gradient(problem.points, self._rows, pairs[part], same[part])
            # The gradient is of the batch's mean; times its size it is the sum of the steps of single pairs.
            self._rows = problem.step(self._rows, gradient, problem.learning_rate * self._unit * len(part))
            arguments.append(argument)
            self.setting.report(position * batch / PAIRS_AN_EPOCH)
        after = hinge.squared(problem.points, self._rows, pairs[shown])
        used = Pairs(pairs[shown], same[shown], self._before, after, hinge.argument(after, same[shown]))
        self.explained += [used, *self.method._prototypes(self._rows)]
        yield _curves(torch.cat(arguments))

    def _embedder(self) -> Embedder:
        return Embedder(self.setting.encoder, self.method._head(self._rows, self.data))

    def _state(self) -> dict[str, Tensor]:
        return {"rows": self._rows, "first rows": self._first, "unit": torch.tensor(self._unit, dtype=torch.float64)}


def check_margin(method: str, margin: float, bias: float) -> None:
    """Reject a margin above the bias, which would ask for squared distances below 0.

    Raises:
        UserError: The message names the field and both values.
    """
    if margin > bias:
        raise UserError(f"{method}.margin must be at most the bias {bias:g}, got {margin:g}: similar pairs would need "
                        "a squared distance below 0. Lower the field 'margin'.")


def steps_seconds(rate: float, dimension: int, width: int, batch: int) -> float:
    """Estimate the time of an epoch's steps.

    Args:
        rate: Time for one entry of the gradient and one pair.
        dimension: Number d of rows.
        width: Width D of the points.
        batch: Pairs in a batch.
    """
    return rate * PAIRS_AN_EPOCH * dimension * width + 3e-4 * PAIRS_AN_EPOCH / batch


def _curves(arguments: Tensor) -> dict[str, float]:
    """Return the mean loss and the share of pairs that violate their margin."""
    return {"loss": float(arguments.clamp_min(0).mean()), "violating": float((arguments > 0).float().mean())}
