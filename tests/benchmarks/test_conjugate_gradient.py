"""Conjugate gradient on RPML's bilinear objective against pymanopt, at d = 1024, l = 128 and 4,000 triplets."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pymanopt
import pytest
import torch
from scipy.special import expit

from tests.benchmarks.measure import medians
from udml_core.base.arrays import Array
from udml_core.numerics.geometry import ConjugateGradient, Euclidean, Grassmann, Point, Product
from udml_core.numerics.losses.angular import WeightedAngular

POINTS, DIMENSION, WIDTH, TRIPLETS, ALPHA, ITERATIONS = 2_000, 1024, 128, 4_000, 45.0, 50

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]


def mixture() -> tuple[Array, Array]:
    """Return 2,000 unit points of 50 Gaussians, whose means vary as much as the points, and triplets by Gaussian."""
    generator = np.random.default_rng(0)
    groups = np.arange(POINTS) % 50
    points = generator.normal(size=(50, DIMENSION))[groups] + generator.normal(size=(POINTS, DIMENSION))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    anchors = generator.integers(0, POINTS, TRIPLETS)
    positives = (anchors + 50 * generator.integers(1, POINTS // 50, TRIPLETS)) % POINTS
    negatives = (anchors + 50 * generator.integers(0, POINTS // 50, TRIPLETS)
                 + generator.integers(1, 50, TRIPLETS)) % POINTS
    return points, np.stack([anchors, positives, negatives], axis=1)


@dataclass
class LiteralObjective:
    """J and its closed-form gradients in NumPy, computed literally.

    Attributes:
        a: Anchors A (t, d).
        p: Positives P (t, d).
        n: Negatives N (t, d).
        kappa: 4tan²α.
    """

    a: Array
    p: Array
    n: Array
    kappa: float = 4 * math.tan(math.radians(ALPHA)) ** 2

    def forward(self, R: Array, L: Array) -> tuple[Array, ...]:
        """Compute all terms in the rows' precision, because pymanopt turns float32 points into float64."""
        R, L = R.astype(self.a.dtype), L.astype(self.a.dtype)
        m = (self.a + self.p) / 2
        to_positive, to_negative = (self.a - self.p) @ L, (self.n - m) @ L
        ar, pr, nr, mr = self.a @ R, self.p @ R, self.n @ R, m @ R
        z = (to_positive**2).sum(axis=1) - self.kappa * (to_negative**2).sum(axis=1)
        similar, dissimilar = (ar * pr).sum(axis=1), (mr * nr).sum(axis=1)
        mu, w = np.logaddexp(0, z), (expit(similar) + expit(-dissimilar)) / 2
        return m, to_positive, to_negative, ar, pr, nr, mr, z, similar, dissimilar, mu, w

    def cost(self, R: Array, L: Array) -> float:
        *_, mu, w = self.forward(R, L)
        return float(np.logaddexp(0, w * mu).sum(dtype=np.float64))

    def gradient(self, R: Array, L: Array) -> list[Array]:
        m, to_positive, to_negative, ar, pr, nr, mr, z, similar, dissimilar, mu, w = self.forward(R, L)
        g = expit(w * mu)
        u = (g * w * expit(z))[:, None]
        plus = (g * mu * expit(similar) * expit(-similar))[:, None]
        minus = (g * mu * expit(dissimilar) * expit(-dissimilar))[:, None]
        on_r = self.a.T @ (plus * pr) + self.p.T @ (plus * ar) - m.T @ (minus * nr) - self.n.T @ (minus * mr)
        on_l = 2 * (self.a - self.p).T @ (u * to_positive) - 2 * self.kappa * (self.n - m).T @ (u * to_negative)
        return [on_r / 2, on_l]


def test_an_iteration_is_three_times_as_fast_as_pymanopts_and_reaches_the_same_value() -> None:
    points, triplets = mixture()
    flat, subspaces = Euclidean(DIMENSION, WIDTH, scale=DIMENSION**-0.5), Grassmann(DIMENSION, WIDTH)
    space = Product(flat, subspaces)
    start = space.random(0)
    exact = WeightedAngular(torch.from_numpy(points), torch.from_numpy(triplets), ALPHA, "bilinear")
    reached: dict[str, Point] = {}

    def ours() -> None:
        objective = WeightedAngular(torch.from_numpy(points).float(), torch.from_numpy(triplets), ALPHA, "bilinear")
        solver = ConjugateGradient(space)
        progress = solver.start(objective, start)
        for _ in range(ITERATIONS):
            progress = solver.step(objective, progress)
        reached["ours"] = progress.point

    def theirs(kind: str) -> None:
        manifold = pymanopt.manifolds.Product([pymanopt.manifolds.Euclidean(DIMENSION, WIDTH),
                                               pymanopt.manifolds.Grassmann(DIMENSION, WIDTH)])
        problem = LiteralObjective(*points.astype(kind)[triplets.T])
        cost, gradient = (pymanopt.function.numpy(manifold)(call) for call in (problem.cost, problem.gradient))
        optimizer = pymanopt.optimizers.ConjugateGradient(max_iterations=ITERATIONS + 1, verbosity=0)
        result = optimizer.run(pymanopt.Problem(manifold, cost, euclidean_gradient=gradient),
                               initial_point=[part.numpy().astype(kind) for part in start])
        assert result.iterations == ITERATIONS + 1
        reached[kind] = tuple(map(torch.from_numpy, result.point))

    times = medians(3, ours=ours, float32=lambda: theirs("float32"), float64=lambda: theirs("float64"))
    values = {name: exact(tuple(part.double() for part in point)).value for name, point in reached.items()}
    print(f"\nd={DIMENSION}, l={WIDTH}, {TRIPLETS} triplets of {POINTS} points, {ITERATIONS} iterations, start "
          f"{exact(tuple(part.double() for part in start)).value:.4f}")
    for name, time in times.items():
        print(f"{name:>8}: {1000 * time / ITERATIONS:6.1f} ms an iteration, {time / times['ours']:5.2f} × ours, "
              f"value {values[name]:.6f}")
    assert min(times["float32"], times["float64"]) > 3 * times["ours"]
    assert max(values.values()) < values["ours"] * 1.05
    assert values["ours"] <= min(values["float32"], values["float64"]) * (1 + 1e-4)
