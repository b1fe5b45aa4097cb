"""RPML's weighted angular loss: literal loops, autograd, collapse under eq. 10."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from torch import Tensor

from udml_core.numerics.geometry import ConjugateGradient, Euclidean, Grassmann, Point, Product
from udml_core.numerics.graph import AuthorityShift
from udml_core.numerics.losses.angular import (
    Scale,
    SmoothAngular,
    Weight,
    WeightedAngular,
    angle,
    angular_argument,
    angular_loss,
    smooth_angular_loss,
    triplet_loss,
    weighted_angular_loss,
)

POINTS, DIMENSION, WIDTH = 40, 9, 4
every_weight = pytest.mark.parametrize("weight", ["bilinear", "concatenated"])
every_alpha = pytest.mark.parametrize("alpha", [5.0, 30.0, 45.0, 80.0])


def problem(weight: Weight, seed: int = 0) -> tuple[Tensor, Tensor, Point]:
    """Return unit points, triplets that share points, and a generic (R or r, L).

    Some points are in no triplet.
    """
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    points = torch.nn.functional.normalize(normal(POINTS, DIMENSION))
    triplets = torch.stack([torch.randperm(POINTS - 5, generator=generator)[:3] for _ in range(60)])
    parameter = normal(DIMENSION, WIDTH) if weight == "bilinear" else normal(2 * DIMENSION)
    return points, triplets, (parameter, torch.linalg.qr(normal(DIMENSION, WIDTH)).Q)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def literal(points: Tensor, triplets: Tensor, point: Point, alpha: float, weight: Weight) -> tuple[float, list[float]]:
    """Compute J and every w as printed in eq. 7–12 and 25–27, one triplet at a time."""
    parameter, projection = (part.numpy() for part in point)
    total, weights = 0.0, []
    for triplet in triplets.tolist():
        a, p, n = points[triplet].numpy()
        m = (a + p) / 2
        near, far = ((a - p) @ projection) ** 2, ((n - m) @ projection) ** 2
        z = near.sum() - 4 * math.tan(alpha * math.pi / 180) ** 2 * far.sum()
        if weight == "concatenated":
            w = sigmoid(parameter @ np.concatenate([m, n]))
        else:
            similar = sigmoid((a @ parameter) @ (p @ parameter))
            dissimilar = 1 - sigmoid((m @ parameter) @ (n @ parameter))
            w = (similar + dissimilar) / 2
        f = w * math.log1p(math.exp(z))
        total -= math.log(sigmoid(-f))  # eq. 11: the probability that the triplet is satisfied
        weights.append(w)
    return total, weights


@every_weight
@every_alpha
@pytest.mark.parametrize("length", [1.0, 3.0])
def test_value_and_weights_equal_the_printed_formulas(weight: Weight, alpha: float, length: float) -> None:
    """Longer rows bring z into the range where torch's default softplus is linear."""
    points, triplets, point = problem(weight)
    points = length * points
    evaluation = WeightedAngular(points, triplets, alpha, weight)(point)
    value, weights = literal(points, triplets, point, alpha, weight)
    assert evaluation.value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(evaluation.weight.numpy(), weights, rtol=1e-12)
    rows = (points[part] for part in triplets.unbind(1))
    assert float(weighted_angular_loss(*rows, *point, alpha, weight)) == pytest.approx(value, rel=1e-12)


@every_weight
@every_alpha
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("size", [0.1, 1.0, 3.0])
def test_the_gradient_equals_autograd(weight: Weight, alpha: float, seed: int, size: float) -> None:
    """The sizes avoid σ ≈ 1, where autograd's 1 − σ loses digits that σ(s)σ(−s) keeps."""
    points, triplets, (parameter, projection) = problem(weight, seed)
    point = size * parameter, projection
    leaves = tuple(part.clone().requires_grad_() for part in point)
    rows = (points[part] for part in triplets.unbind(1))
    expected = torch.autograd.grad(weighted_angular_loss(*rows, *leaves, alpha, weight), leaves)
    for ours, theirs in zip(WeightedAngular(points, triplets, alpha, weight)(point).gradient(), expected, strict=True):
        assert float((ours - theirs).norm()) <= 1e-10 * float(theirs.norm())


@every_weight
@pytest.mark.parametrize("seed", range(3))
def test_rotating_the_projection_changes_nothing(weight: Weight, seed: int) -> None:
    """J(R, LB) = J(R, L) for orthogonal B, and LᵀG is symmetric.

    The gradient in L therefore has no vertical part.
    """
    points, triplets, (parameter, projection) = problem(weight, seed)
    rotation = torch.linalg.qr(torch.randn(WIDTH, WIDTH, dtype=torch.float64,
                                           generator=torch.Generator().manual_seed(seed))).Q
    objective = WeightedAngular(points, triplets, 40.0, weight)
    original, rotated = objective((parameter, projection)), objective((parameter, projection @ rotation))
    assert rotated.value == pytest.approx(original.value, rel=1e-13)
    product = projection.mT @ original.gradient()[1]
    torch.testing.assert_close(product, product.mT, rtol=0, atol=1e-11)


@every_weight
def test_a_zero_parameter_gives_every_triplet_the_weight_one_half(weight: Weight) -> None:
    points, triplets, (parameter, projection) = problem(weight)
    evaluation = WeightedAngular(points, triplets, 45.0, weight)((0 * parameter, projection))
    assert bool((evaluation.weight == 0.5).all())
    stationary = not bool(evaluation.gradient()[0].any())
    assert stationary == (weight == "bilinear")  # therefore R starts at a Gaussian and not at 0


@every_weight
def test_float32_inputs_give_float32_gradients_close_to_float64(weight: Weight) -> None:
    points, triplets, point = problem(weight)
    exact = WeightedAngular(points, triplets, 45.0, weight)(point)
    single = WeightedAngular(points.float(), triplets, 45.0, weight)(tuple(part.float() for part in point))
    assert single.value == pytest.approx(exact.value, rel=1e-6)
    for ours, theirs in zip(single.gradient(), exact.gradient(), strict=True):
        assert ours.dtype is torch.float32
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-4, atol=1e-5)


vectors = st.lists(st.floats(-10, 10), min_size=3, max_size=3)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(anchor=vectors, positive=vectors, negative=vectors, alpha=st.floats(1, 89))
def test_the_angle_exceeds_alpha_exactly_if_z_is_positive(
        anchor: list[float], positive: list[float], negative: list[float], alpha: float) -> None:
    rows = tuple(torch.tensor([row], dtype=torch.float64) for row in (anchor, positive, negative))
    degrees = float(angle(*rows))
    assert 0 <= degrees <= 90
    if abs(degrees - alpha) > 1e-6 and anchor != positive:
        assert (float(angular_argument(*rows, alpha)) > 0) == (degrees > alpha)


def test_known_angles() -> None:
    """The angle is 45° at a distance of half the base, and 90° at distance 0.

    The distance is that of the negative from the midpoint.
    """
    anchor, positive = torch.tensor([[-1.0, 0]] * 4), torch.tensor([[1.0, 0]] * 4)
    negative = torch.tensor([[0, 1.0], [1.0, 0], [0, math.sqrt(3)], [0, 0]])
    torch.testing.assert_close(angle(anchor, positive, negative), torch.tensor([45.0, 45.0, 30.0, 90.0]))


def test_supervised_losses_equal_the_printed_formulas() -> None:
    generator = torch.Generator().manual_seed(3)
    rows = torch.randn(3, 50, 4, generator=generator, dtype=torch.float64)
    margin, alpha, triplet, angular = 1.5, 35.0, 0.0, 0.0
    for a, p, n in zip(*rows.numpy(), strict=True):
        near = ((a - p) ** 2).sum()
        triplet += max(0.0, near - ((a - n) ** 2).sum() + margin)
        angular += max(0.0, near - 4 * math.tan(math.radians(alpha)) ** 2 * ((n - (a + p) / 2) ** 2).sum())
    assert float(triplet_loss(*rows, margin)) == pytest.approx(triplet, rel=1e-12)
    assert float(angular_loss(*rows, alpha)) == pytest.approx(angular, rel=1e-12)


@pytest.fixture(scope="module")
def digits() -> tuple[Tensor, Tensor]:
    """Unit digits and 2,000 triplets from authority ascent clusters, without labels."""
    points = load_digits().data.astype(np.float32)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    clusters = AuthorityShift().fit_predict(points)
    generator = np.random.default_rng(0)
    triplets = []
    for anchor in generator.choice(np.flatnonzero(np.bincount(clusters)[clusters] > 1), 2000):
        members = np.flatnonzero(clusters == clusters[anchor])
        triplets.append((anchor, generator.choice(members[members != anchor]),
                         generator.choice(np.flatnonzero(clusters != clusters[anchor]))))
    return torch.from_numpy(points), torch.tensor(np.array(triplets))


def trained(digits: tuple[Tensor, Tensor], weight: Weight, seed: int, steps: int) -> tuple[float, float]:
    """Return the mean weight and J/t after conjugate gradient.

    The starts are the documented ones: r = 0, R Gaussian/√d.
    """
    objective = WeightedAngular(*digits, 45.0, weight)
    bilinear = weight == "bilinear"
    space = Product(Euclidean(64, 16, scale=1 / 8) if bilinear else Euclidean(128, scale=0), Grassmann(64, 16))
    solver = ConjugateGradient(space)
    now = solver.start(objective, space.random(seed))
    for _ in range(steps):
        now = solver.step(objective, now)
    return float(objective(now.point).weight.mean()), now.value / len(digits[1])


@pytest.mark.parametrize("seed", range(3))
def test_the_concatenated_weight_collapses(digits: tuple[Tensor, Tensor], seed: int) -> None:
    """The degenerate optimum of eq. 10: r drives w → 0 and J → t·log 2 for any L.

    Measured on the digits in float32 with l = 16 and α = 45°, starting from w = .5: the mean w is 4e-4 after 10 steps
    and 1e-7 after 30, where J/t equals log 2 to 5e-9.
    """
    weight, loss = trained(digits, "concatenated", seed, 30)
    assert weight < 1e-5
    assert loss == pytest.approx(math.log(2), abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_the_bilinear_weight_does_not_collapse(digits: tuple[Tensor, Tensor], seed: int) -> None:
    """w⁺ and w⁻ pull R in opposite directions, so their mean does not vanish.

    Measured in the same setting with seeds 0 and 1: the mean w is .505 at the start, .50 after 10 steps, .486 after 30,
    .45–.46 after 100, and .41–.42 after 300. J/t is .732–.734 after 100 steps, above log 2 = .693.
    """
    weight, loss = trained(digits, "bilinear", seed, 100)
    assert weight > 0.4
    assert loss > math.log(2) + 0.02


@pytest.mark.parametrize("scale", ["mean", "sum", "relative"])
def test_the_smooth_loss_and_its_gradient_equal_autograd(scale: Scale) -> None:
    random = torch.Generator().manual_seed(0)
    points = torch.nn.functional.normalize(torch.randn(12, 6, generator=random, dtype=torch.float64))
    triplets = torch.stack([torch.randperm(12, generator=random)[:3] for _ in range(20)])
    projection = torch.randn(6, 3, generator=random, dtype=torch.float64).requires_grad_()
    evaluation = SmoothAngular(points, triplets, 40.0, scale)((projection.detach(),))
    rows = (points[part] for part in triplets.unbind(1))
    loss = smooth_angular_loss(*rows, projection, 40.0, scale)
    (expected,) = torch.autograd.grad(loss, projection)
    assert evaluation.value == pytest.approx(loss.item(), rel=1e-12)
    torch.testing.assert_close(evaluation.gradient()[0], expected, rtol=1e-10, atol=1e-12)
    assert evaluation.measures()["loss"].shape == (20,)


@pytest.mark.parametrize(("alpha", "grows"), [(25.0, False), (30.0, None), (40.0, True)])
def test_uninformative_triplets_reward_growth_above_30_degrees_only(alpha: float, grows: bool | None) -> None:
    """As an equilateral triplet grows, the loss falls for α > 30° and rises below.

    The relative loss is constant.
    """
    corners = torch.eye(3, dtype=torch.float64)
    small, large = (float(smooth_angular_loss(*(size * corners).split(1), torch.eye(3, dtype=torch.float64), alpha))
                    for size in (0.1, 0.2))
    if grows is None:
        assert small == pytest.approx(large, rel=1e-12)
    else:
        assert (large < small) == grows
    values = [float(smooth_angular_loss(*(size * corners).split(1), torch.eye(3, dtype=torch.float64), alpha,
                                        "relative")) for size in (0.1, 0.2)]
    assert values[0] == pytest.approx(values[1], rel=1e-12)
