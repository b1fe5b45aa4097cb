"""Riemannian conjugate gradient with an adaptive line search.

It follows pymanopt 2.2.1, which the tests compare with.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

from udml_core.numerics.geometry.manifold import Manifold, Point

MAX_HALVINGS = 10
SUFFICIENT_DECREASE = 0.5
"""Share of the decrease predicted by the slope that a step must reach (Armijo's condition)."""


class Evaluation(ABC):
    """An objective evaluated at one point.

    The line search needs values only. The gradient is computed on request, from what `value` computed already.

    Attributes:
        value: The objective at the point.
    """

    value: float

    @abstractmethod
    def gradient(self) -> Point:
        """Compute the Euclidean gradient at this point."""


@dataclass(frozen=True)
class DescentProgress:
    """Everything that the next step depends on.

    Resuming an optimization exactly takes all of it.

    Attributes:
        point: The current point, one tensor per factor of the manifold.
        gradient: The Riemannian gradient at the point, in the same shapes.
        direction: The search direction of the next step, in the same shapes.
        step: The step length that the line search tries first; 0 before the first step.
        value: The objective at the point.
    """

    point: Point
    gradient: Point
    direction: Point
    step: float
    value: float


class ManifoldFunction(ABC):
    """A smooth function on a manifold."""

    @abstractmethod
    def __call__(self, point: Point) -> Evaluation:
        """Evaluate the function at a point."""


class ConjugateGradient:
    """Minimization by conjugate gradient of Hestenes–Stiefel type on a manifold.

    With g₊ the gradient at the new point, d₊ the next direction and T the transport from the old to the new point:
    β = max(0, ⟨g₊, g₊−Tg⟩ / ⟨g₊−Tg, Td⟩), d₊ = −g₊ + βTd. If d₊ is no descent direction, d₊ = −g₊.

    The objective may change between steps, for example when triplets are redrawn. Then call `start` with the current
    point and the remembered step length.
    """

    def __init__(self, manifold: Manifold) -> None:
        self.manifold = manifold

    def start(self, objective: ManifoldFunction, point: Point, step: float = 0.0) -> DescentProgress:
        """Begin at a point, with the direction of steepest descent."""
        evaluation = objective(point)
        gradient = self.manifold.gradient(point, evaluation.gradient())
        return DescentProgress(point, gradient, _negative(gradient), step, evaluation.value)

    def step(self, objective: ManifoldFunction, progress: DescentProgress) -> DescentProgress:
        """Take one step: a line search along the direction, then the next direction.

        Returns:
            The progress after the step. If no step length decreases the objective, the point stays the same and the
            direction is reset to steepest descent.
        """
        slope = float(self.manifold.inner(progress.point, progress.gradient, progress.direction))
        if not slope < 0:
            # Rounding can turn the direction uphill, or make the slope NaN. Steepest descent always descends, unless
            # the gradient is zero or so small that its square underflows: then the point is stationary.
            progress = replace(progress, direction=_negative(progress.gradient))
            slope = float(self.manifold.inner(progress.point, progress.gradient, progress.direction))
            if not slope < 0:
                return progress
        point, evaluation, next_step = self._search(objective, progress, slope)
        if evaluation is None:
            # The shorter remembered step and the reset direction give the next call a new chance.
            return replace(progress, direction=_negative(progress.gradient), step=next_step)
        gradient = self.manifold.gradient(point, evaluation.gradient())
        direction = self._next_direction(progress, point, gradient)
        return DescentProgress(point, gradient, direction, next_step, evaluation.value)

    def _search(self, objective: ManifoldFunction, progress: DescentProgress,
                slope: float) -> tuple[Point, Evaluation | None, float]:
        """Halve the remembered step length until the decrease is sufficient.

        Returns:
            The new point, its evaluation (None if no trial decreased the objective), and the length to try first next
            time.
        """
        norm = float(self.manifold.norm(progress.point, progress.direction))
        trial = progress.step if progress.step > 0 else 1.0 / norm  # the first trial moves by a distance of 1
        for evaluations in range(1, MAX_HALVINGS + 2):
            point = self.manifold.retract(progress.point, tuple(trial * part for part in progress.direction))
            evaluation = objective(point)
            # A NaN or infinite value fails this comparison too, so a step that overflows is halved like any other.
            if evaluation.value <= progress.value + SUFFICIENT_DECREASE * trial * slope:
                # One halving means that the length fits: keep it. Otherwise try twice the accepted length next time:
                # after no halving because longer steps may work too, after several so that the length can recover.
                return point, evaluation, trial if evaluations == 2 else 2 * trial
            if evaluations <= MAX_HALVINGS:
                trial /= 2
        # The shortest trial is still accepted if it does not raise the objective.
        if evaluation.value <= progress.value:
            return point, evaluation, 2 * trial
        return progress.point, None, 2 * trial

    def _next_direction(self, progress: DescentProgress, point: Point, gradient: Point) -> Point:
        manifold = self.manifold
        # The old gradient and direction lie in the tangent space of the old point. Differences and inner products are
        # defined within one tangent space only, so both are transported to the new point first.
        transported_gradient = manifold.transport(progress.point, point, progress.gradient)
        transported_direction = manifold.transport(progress.point, point, progress.direction)
        change = tuple(new - old for new, old in zip(gradient, transported_gradient, strict=True))
        denominator = float(manifold.inner(point, change, transported_direction))
        beta = 0.0
        if denominator != 0:
            # A negative β would lead back along the old direction; max(0, ·) restarts with steepest descent instead.
            beta = max(0.0, float(manifold.inner(point, gradient, change)) / denominator)
        direction = tuple(beta * old - new for new, old in zip(gradient, transported_direction, strict=True))
        # An inexact line search can make the combined direction point uphill. Restart in that case.
        descends = float(manifold.inner(point, gradient, direction)) < 0
        return direction if descends else _negative(gradient)


def _negative(vector: Point) -> Point:
    return tuple(-part for part in vector)
