"""The search for a point on a manifold whose function changes from batch to batch."""

from __future__ import annotations

from collections.abc import Callable

from udml_core.methods.shared.distributed import agree_on_search
from udml_core.numerics.geometry import ConjugateGradient, Manifold, Point
from udml_core.numerics.geometry.conjugate_gradient import ManifoldFunction


class ManifoldSearch:
    """Few conjugate-gradient steps on each of many functions.

    Attributes:
        point: The current point; after `minimize` the same in every process.
        step: The length of the last step.
    """

    def __init__(self, manifold: Manifold, point: Point, step: float) -> None:
        self.point, self.step = point, step
        self._optimizer = ConjugateGradient(manifold)

    def minimize(self, function: ManifoldFunction, steps: int,
                 report: Callable[[float], None] = lambda _share: None) -> None:
        """Take some steps from the current point.

        Each function restarts the directions, because a direction of another one is not conjugate for it. The point and
        the step length are warm starts, as functions of the same method have a similar scale.

        Args:
            function: The function to minimize.
            steps: Number of steps.
            report: Called with the finished share of the steps.
        """
        progress = self._optimizer.start(function, self.point, self.step)
        for position in range(steps):
            progress = self._optimizer.step(function, progress)
            self.point = progress.point  # before the report, whose receiver may embed with it
            report((position + 1) / steps)
        self.step = agree_on_search(self.point, progress.step)
