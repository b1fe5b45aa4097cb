"""Riemannian conjugate gradient with an adaptive line search, after pymanopt 2.2.1, which is its test oracle."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

from udml_core.geometry.manifold import Manifold, Point

MOST_HALVINGS = 10
SUFFICIENT_DECREASE = 0.5


class Evaluation(ABC):
    """An objective at one point. `gradient` reuses what `value` computed, so a line search pays for values only."""

    value: float

    @abstractmethod
    def gradient(self) -> Point:
        """The Euclidean gradient at this point."""


@dataclass(frozen=True)
class Progress:
    """Everything the next step depends on; a resumed optimization is exact only with all of it.

    point, gradient, direction: tensors of the factors' shapes. step: the remembered step length, 0 before the first.
    value: the objective at the point.
    """

    point: Point
    gradient: Point
    direction: Point
    step: float
    value: float


class Objective(ABC):
    """A smooth function on a manifold."""

    @abstractmethod
    def __call__(self, point: Point) -> Evaluation:
        """Evaluate the function at a point."""


class ConjugateGradient:
    """Conjugate gradient of Hestenes–Stiefel type on a manifold, minimizing.

    β = max(0, ⟨g₊, g₊−Tg⟩ / ⟨g₊−Tg, Td⟩), d₊ = −g₊ + βTd with T the projection transport, and −g₊ again where that
    does not descend. The objective may change between steps (redrawn triplets): `start` then begins anew from the same
    point and keeps the remembered step.
    """

    def __init__(self, manifold: Manifold) -> None:
        self.manifold = manifold

    def start(self, objective: Objective, point: Point, step: float = 0.0) -> Progress:
        """Begin at a point with the steepest descent direction."""
        evaluation = objective(point)
        gradient = self.manifold.gradient(point, evaluation.gradient())
        return Progress(point, gradient, _negative(gradient), step, evaluation.value)

    def step(self, objective: Objective, now: Progress) -> Progress:
        """One iteration: line search along the direction, then the next direction.

        Returns the same point, with the direction reset, when no step decreases the objective.
        """
        slope = float(self.manifold.inner(now.point, now.gradient, now.direction))
        if not slope < 0:
            now = replace(now, direction=_negative(now.gradient))
            slope = float(self.manifold.inner(now.point, now.gradient, now.direction))
            if not slope < 0:  # no gradient, or one whose square underflows
                return now
        point, evaluation, remembered = self._search(objective, now, slope)
        if evaluation is None:
            return replace(now, direction=_negative(now.gradient), step=remembered)
        gradient = self.manifold.gradient(point, evaluation.gradient())
        direction = self._next_direction(now, point, gradient)
        return Progress(point, gradient, direction, remembered, evaluation.value)

    def _search(self, objective: Objective, now: Progress,
                slope: float) -> tuple[Point, Evaluation | None, float]:
        """Backtracking that starts from the last accepted length: usually one or two evaluations."""
        length = float(self.manifold.norm(now.point, now.direction))
        trial = now.step if now.step > 0 else 1.0 / length
        for evaluations in range(1, MOST_HALVINGS + 2):
            point = self.manifold.retract(now.point, tuple(trial * part for part in now.direction))
            evaluation = objective(point)
            if evaluation.value <= now.value + SUFFICIENT_DECREASE * trial * slope:
                return point, evaluation, trial if evaluations == 2 else 2 * trial
            if evaluations <= MOST_HALVINGS:
                trial /= 2
        if evaluation.value <= now.value:
            return point, evaluation, 2 * trial
        return now.point, None, 2 * trial

    def _next_direction(self, now: Progress, point: Point, gradient: Point) -> Point:
        manifold = self.manifold
        carried_gradient = manifold.transport(now.point, point, now.gradient)
        carried_direction = manifold.transport(now.point, point, now.direction)
        change = tuple(new - old for new, old in zip(gradient, carried_gradient, strict=True))
        denominator = float(manifold.inner(point, change, carried_direction))
        beta = 0.0
        if denominator != 0:
            beta = max(0.0, float(manifold.inner(point, gradient, change)) / denominator)
        direction = tuple(beta * old - new for new, old in zip(gradient, carried_direction, strict=True))
        descends = float(manifold.inner(point, gradient, direction)) < 0
        return direction if descends else _negative(gradient)


def _negative(vector: Point) -> Point:
    return tuple(-part for part in vector)
