"""Conjugate gradient, compared with pymanopt 2.2.1.

The reference uses Hestenes–Stiefel and its default adaptive line search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pymanopt
import pytest
import torch
from torch import Tensor

from udml_core.numerics.geometry import ConjugateGradient, Euclidean, Evaluation, Grassmann, Manifold, Point, Product
from udml_core.numerics.geometry.conjugate_gradient import MAX_HALVINGS, DescentProgress, ManifoldFunction
from udml_core.numerics.losses.angular import WeightedAngular

ITERATIONS = 16


@dataclass
class KnownEvaluation(Evaluation):
    """A known value with a function that computes the gradient."""

    value: float
    compute_gradient: Callable[[], Point]

    def gradient(self) -> Point:
        return self.compute_gradient()


@dataclass
class Rayleigh(ManifoldFunction):
    """−½ tr(XᵀAX), smallest on the span of the leading eigenvectors of A (d, d).

    A is symmetric.
    """

    matrix: Tensor
    evaluations: int = 0

    def __call__(self, point: Point) -> KnownEvaluation:
        self.evaluations += 1
        product = self.matrix @ point[0]
        return KnownEvaluation(-0.5 * float((point[0] * product).sum()), lambda: (-product,))


@dataclass
class Problem:
    """The same problem for this project and for pymanopt.

    It consists of manifolds, objective and start.
    """

    manifold: Manifold
    theirs: pymanopt.manifolds.manifold.Manifold
    objective: ManifoldFunction
    start: Point


def dominant_subspace() -> Problem:
    generator = torch.Generator().manual_seed(0)
    basis = torch.linalg.qr(torch.randn(30, 30, generator=generator, dtype=torch.float64)).Q
    matrix = basis * torch.linspace(0.1, 3, 30, dtype=torch.float64) ** 2 @ basis.mT
    start = torch.linalg.qr(torch.randn(30, 4, generator=generator, dtype=torch.float64)).Q
    return Problem(Grassmann(30, 4), pymanopt.manifolds.Grassmann(30, 4), Rayleigh(matrix), (start,))


def probabilistic_angular() -> Problem:
    """Build RPML's J on R^{d×l} × Grassmann(l, d) with the bilinear weight.

    The unit points are in four groups.
    """
    generator = torch.Generator().manual_seed(1)
    groups = torch.arange(80) % 4
    points = torch.randn(80, 20, generator=generator, dtype=torch.float64)
    points += 2 * torch.randn(4, 20, generator=generator, dtype=torch.float64)[groups]
    points /= points.norm(dim=1, keepdim=True)
    triplets = torch.randint(80, (3000, 3), generator=generator)
    anchor, positive, negative = groups[triplets].unbind(1)
    triplets = triplets[(anchor == positive) & (anchor != negative) & (triplets[:, 0] != triplets[:, 1])]
    start = (torch.randn(20, 5, generator=generator, dtype=torch.float64) / 20**0.5,
             torch.linalg.qr(torch.randn(20, 5, generator=generator, dtype=torch.float64)).Q)
    theirs = pymanopt.manifolds.Product([pymanopt.manifolds.Euclidean(20, 5), pymanopt.manifolds.Grassmann(20, 5)])
    objective = WeightedAngular(points, triplets, 45.0, "bilinear")
    return Problem(Product(Euclidean(20, 5), Grassmann(20, 5)), theirs, objective, start)


PROBLEMS = [dominant_subspace, probabilistic_angular]
every_problem = pytest.mark.parametrize("problem", [make() for make in PROBLEMS], ids=[m.__name__ for m in PROBLEMS])


def ours(problem: Problem, iterations: int, start: DescentProgress | None = None) -> list[DescentProgress]:
    """Return the start and every iterate of this project."""
    solver = ConjugateGradient(problem.manifold)
    path = [start or solver.start(problem.objective, problem.start)]
    for _ in range(iterations):
        path.append(solver.step(problem.objective, path[-1]))
    return path


def theirs(problem: Problem, iterations: int) -> tuple[list[Point], list[float]]:
    """Return the start and every iterate of pymanopt, with their values."""
    @pymanopt.function.numpy(problem.theirs)
    def cost(*point: np.ndarray) -> float:
        return problem.objective(tuple(map(torch.from_numpy, point))).value

    @pymanopt.function.numpy(problem.theirs)
    def gradient(*point: np.ndarray) -> list[np.ndarray] | np.ndarray:
        parts = [part.numpy() for part in problem.objective(tuple(map(torch.from_numpy, point))).gradient()]
        return parts if len(parts) > 1 else parts[0]

    optimizer = pymanopt.optimizers.ConjugateGradient(max_iterations=iterations + 1, verbosity=0, log_verbosity=1)
    start = [part.numpy() for part in problem.start]
    log = optimizer.run(pymanopt.Problem(problem.theirs, cost, euclidean_gradient=gradient),
                        initial_point=start if len(start) > 1 else start[0]).log["iterations"]
    points = [point if len(start) > 1 else [point] for point in log["point"]]
    return [tuple(map(torch.from_numpy, point)) for point in points], log["cost"]


@every_problem
def test_iterates_equal_those_of_pymanopt(problem: Problem) -> None:
    path = ours(problem, ITERATIONS)
    points, values = theirs(problem, ITERATIONS)
    assert len(values) == len(path)
    np.testing.assert_allclose([now.value for now in path], values, rtol=1e-10)
    for now, point in zip(path, points, strict=True):
        torch.testing.assert_close(now.point, point, rtol=1e-8, atol=1e-8)
    assert path[-1].value < path[0].value - 0.01 * abs(path[0].value)


@every_problem
@pytest.mark.parametrize("interrupted_after", [0, 1, 5])
def test_resuming_is_bit_equal(problem: Problem, interrupted_after: int) -> None:
    whole = ours(problem, 9)
    stored = whole[interrupted_after]
    copied = DescentProgress(*(tuple(part.clone() for part in parts)
                        for parts in (stored.point, stored.gradient, stored.direction)), stored.step, stored.value)
    resumed = ours(problem, 9 - interrupted_after, copied)
    for first, second in zip(whole[interrupted_after:], resumed, strict=True):
        assert (first.step, first.value) == (second.step, second.value)
        for parts in ("point", "gradient", "direction"):
            assert all(map(torch.equal, getattr(first, parts), getattr(second, parts)))


@every_problem
def test_values_never_rise_and_points_stay_on_the_manifold(problem: Problem) -> None:
    path = ours(problem, 40)
    values = [now.value for now in path]
    assert all(later <= earlier for earlier, later in pairwise(values))
    frame = path[-1].point[-1]
    torch.testing.assert_close(frame.mT @ frame, torch.eye(frame.shape[1], dtype=frame.dtype), rtol=0, atol=1e-12)
    for now in path:
        assert now.value == problem.objective(now.point).value
        torch.testing.assert_close(now.gradient, problem.manifold.gradient(
            now.point, problem.objective(now.point).gradient()))


def test_the_dominant_subspace_is_found() -> None:
    problem = dominant_subspace()
    last = ours(problem, 150)[-1]
    values, vectors = torch.linalg.eigh(problem.objective.matrix)
    frame, leading = last.point[0], vectors[:, -4:]
    assert last.value == pytest.approx(-0.5 * float(values[-4:].sum()), rel=1e-12)
    torch.testing.assert_close(frame @ frame.mT, leading @ leading.mT, rtol=0, atol=1e-5)


def test_a_stationary_start_does_not_move() -> None:
    """Eigenvectors span a stationary point of the Rayleigh quotient.

    Here the gradient is exactly zero.
    """
    problem = replace(dominant_subspace(), start=(torch.eye(30, 4, dtype=torch.float64),),
                      objective=Rayleigh(torch.diag(torch.arange(30, 0, -1, dtype=torch.float64))))
    path = ours(problem, 3)
    assert all(torch.equal(now.point[0], problem.start[0]) and now.value == path[0].value for now in path)


def test_a_gradient_whose_square_underflows_does_not_move_the_point() -> None:
    """Float32 entries below 1e-23 are positive, but their squares are zero."""
    problem = dominant_subspace()
    tiny = Rayleigh(torch.diag(torch.linspace(1, 2, 30)) * 1e-30)
    start = tuple(part.float() for part in problem.start)
    solver = ConjugateGradient(problem.manifold)
    now = solver.start(tiny, start)
    assert bool(now.gradient[0].any())
    assert torch.equal(solver.step(tiny, now).point[0], start[0])


def test_if_no_step_descends_the_point_stays_and_the_direction_is_reset() -> None:
    """A gradient of the wrong sign makes every trial rise.

    This costs one evaluation plus one per halving.
    """
    problem = dominant_subspace()

    class WrongSign(Rayleigh):
        def __call__(self, point: Point) -> KnownEvaluation:
            correct = super().__call__(point)
            return KnownEvaluation(correct.value, lambda: tuple(-part for part in correct.gradient()))

    objective = WrongSign(problem.objective.matrix)
    solver = ConjugateGradient(problem.manifold)
    before = solver.start(objective, problem.start)
    objective.evaluations = 0
    after = solver.step(objective, before)
    assert objective.evaluations == MAX_HALVINGS + 1
    assert torch.equal(after.point[0], before.point[0])
    assert after.value == before.value
    assert torch.equal(after.direction[0], -before.gradient[0])
    assert 0 < after.step < 1 / float(problem.manifold.norm(before.point, before.direction))


@pytest.mark.parametrize("overflow", [float("nan"), float("inf")])
def test_a_trial_that_overflows_is_shortened(overflow: float) -> None:
    """A first step with a NaN or infinite objective is halved until it is finite."""
    problem = dominant_subspace()

    class FiniteNearStart(Rayleigh):
        def __call__(self, point: Point) -> KnownEvaluation:
            evaluation = super().__call__(point)
            far = float((point[0] - problem.start[0]).norm()) > 0.1
            return replace(evaluation, value=overflow) if far else evaluation

    solver = ConjugateGradient(problem.manifold)
    objective = FiniteNearStart(problem.objective.matrix)
    before = solver.start(objective, problem.start)
    after = solver.step(objective, before)
    assert after.value < before.value
    assert bool(torch.isfinite(after.point[0]).all())


def test_a_new_start_keeps_the_remembered_step() -> None:
    """Triplets are redrawn between epochs.

    A new start keeps the step length and resets gradient and direction.
    """
    problem = probabilistic_angular()
    solver = ConjugateGradient(problem.manifold)
    now = ours(problem, 4)[-1]
    restarted = solver.start(problem.objective, now.point, now.step)
    assert restarted.step == now.step > 0
    torch.testing.assert_close(restarted.gradient, now.gradient)
    assert all(torch.equal(direction, -gradient)
               for direction, gradient in zip(restarted.direction, restarted.gradient, strict=True))
