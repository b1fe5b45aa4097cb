"""The laws of the manifolds in float64, after the tests of pymanopt and geoopt."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from udml_core.numerics.geometry import Euclidean, Grassmann, Manifold, Point, Product, Stiefel
from udml_core.numerics.geometry.stiefel import polar

SPACES: dict[str, Manifold] = {
    "euclidean": Euclidean(6, 3),
    "stiefel": Stiefel(7, 3),
    "stiefel, one column": Stiefel(5, 1),
    "stiefel, square": Stiefel(4, 4),
    "grassmann": Grassmann(9, 4),
    "grassmann, one column": Grassmann(6, 1),
    "product": Product(Euclidean(8, 2), Grassmann(8, 3), Stiefel(5, 2)),
}
every_space = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES.keys())
seeds = st.integers(0, 2**31 - 10)
laws = settings(max_examples=20, deadline=None, derandomize=True)


def draw_point(space: Manifold, seed: int) -> Point:
    """Draw a float64 point.

    Retracting by zero makes its float32 frame orthonormal to float64 precision.
    """
    rough = tuple(part.double() for part in space.random(seed))
    return space.retract(rough, tuple(torch.zeros_like(part) for part in rough))


def draw_ambient(point: Point, seed: int) -> Point:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(part.shape, generator=generator, dtype=part.dtype) for part in point)


def draw_tangent(space: Manifold, point: Point, seed: int) -> Point:
    """Draw a tangent vector of unit length."""
    vector = space.project(point, draw_ambient(point, seed))
    return scaled(1 / float(space.norm(point, vector)), vector)


def scaled(factor: float, vector: Point) -> Point:
    return tuple(factor * part for part in vector)


def assert_same(first: Point, second: Point, tolerance: float = 1e-12) -> None:
    torch.testing.assert_close(first, second, rtol=tolerance, atol=tolerance)


def departure_from_frame(space: Manifold, point: Point) -> float:
    """Return the largest entry of LᵀL − I over the Stiefel and Grassmann factors."""
    factors = space.factors if isinstance(space, Product) else (space,)
    return max((float((part.mT @ part - torch.eye(part.shape[1], dtype=part.dtype)).abs().max())
                for factor, part in zip(factors, point, strict=True) if isinstance(factor, Stiefel)), default=0.0)


def departure_from_tangent(space: Manifold, point: Point, vector: Point) -> float:
    """Return the violation of LᵀU = 0 (Grassmann) or LᵀU + UᵀL = 0 (Stiefel).

    `project` is not called.
    """
    factors = space.factors if isinstance(space, Product) else (space,)
    worst = 0.0
    for factor, part, tangent in zip(factors, point, vector, strict=True):
        if isinstance(factor, Stiefel):
            product = part.mT @ tangent
            worst = max(worst, float((product if isinstance(factor, Grassmann) else product + product.mT).abs().max()))
    return worst


@every_space
@laws
@given(seed=seeds, length=st.floats(0, 50))
def test_retraction_stays_on_the_manifold(space: Manifold, seed: int, length: float) -> None:
    point = draw_point(space, seed)
    reached = space.retract(point, scaled(length, draw_tangent(space, point, seed + 1)))
    assert departure_from_frame(space, reached) < 1e-12


@every_space
@laws
@given(seed=seeds)
def test_projection_onto_the_tangent_space_is_orthogonal(space: Manifold, seed: int) -> None:
    point = draw_point(space, seed)
    first, second = (draw_ambient(point, seed + shift) for shift in (1, 2))
    tangent, other = space.project(point, first), space.project(point, second)
    normal = tuple(ambient - part for ambient, part in zip(first, tangent, strict=True))
    assert departure_from_tangent(space, point, tangent) < 1e-12
    assert_same(space.project(point, tangent), tangent)
    assert abs(float(space.inner(point, normal, other))) < 1e-12


@every_space
@laws
@given(seed=seeds)
def test_the_gradient_is_the_projected_euclidean_gradient(space: Manifold, seed: int) -> None:
    point = draw_point(space, seed)
    euclidean = draw_ambient(point, seed + 1)
    assert_same(space.gradient(point, euclidean), space.project(point, euclidean))


@every_space
@laws
@given(seed=seeds)
def test_retraction_and_gradient_are_first_order(space: Manifold, seed: int) -> None:
    """Taylor test: the errors shrink like t².

    The errors are of ⟨grad, ξ⟩ for the cost and of p + tξ for the retraction.
    """
    point = draw_point(space, seed)
    target = draw_ambient(point, seed + 1)
    tangent = draw_tangent(space, point, seed + 2)

    def cost(at: Point) -> torch.Tensor:
        return torch.stack([(part * other).sin().sum() for part, other in zip(at, target, strict=True)]).sum()

    leaves = tuple(part.clone().requires_grad_() for part in point)
    gradient = space.gradient(point, torch.autograd.grad(cost(leaves), leaves))
    slope = float(space.inner(point, gradient, tangent))
    for length in (1e-2, 1e-3, 1e-4):
        reached = space.retract(point, scaled(length, tangent))
        cost_error = abs(float(cost(reached) - cost(point)) - length * slope)
        point_error = max(float((new - old - length * step).abs().max())
                          for new, old, step in zip(reached, point, tangent, strict=True))
        assert cost_error < 20 * length**2  # an error of 1 % in the slope gives about 100 t² at the shortest length
        assert point_error < 2 * length**2


@every_space
@laws
@given(seed=seeds)
def test_transport_ends_in_the_tangent_space_and_keeps_tangent_vectors(space: Manifold, seed: int) -> None:
    point, target = draw_point(space, seed), draw_point(space, seed + 5)
    tangent = draw_tangent(space, point, seed + 1)
    assert departure_from_tangent(space, target, space.transport(point, target, tangent)) < 1e-12
    assert_same(space.transport(point, point, tangent), tangent)


@every_space
@laws
@given(seed=seeds)
def test_inner_is_symmetric_and_bilinear_and_norm_is_its_root(space: Manifold, seed: int) -> None:
    point = draw_point(space, seed)
    first, second = (draw_tangent(space, point, seed + shift) for shift in (1, 2))
    total = tuple(2 * a + b for a, b in zip(first, second, strict=True))
    inner = float(space.inner(point, first, second))
    assert inner == pytest.approx(float(space.inner(point, second, first)), abs=1e-14)
    assert float(space.inner(point, total, second)) == pytest.approx(2 * inner + 1, abs=1e-12)
    assert float(space.norm(point, total)) ** 2 == pytest.approx(5 + 4 * inner, abs=1e-12)


@laws
@given(seed=seeds)
def test_grassmann_does_not_depend_on_the_basis(seed: int) -> None:
    """L → LB rotates the basis inside the subspace.

    Costs keep their value; gradients and steps rotate too.
    """
    space = Grassmann(9, 4)
    (frame,), (rotation,) = draw_point(space, seed), draw_point(Stiefel(4, 4), seed + 1)
    matrix = draw_ambient((frame @ frame.mT,), seed + 2)[0]
    symmetric = matrix + matrix.mT

    def value(at: torch.Tensor) -> torch.Tensor:
        return (at.mT @ symmetric @ at).trace()

    rotated = frame @ rotation
    (gradient,), (rotated_gradient,) = (space.gradient((at,), (2 * symmetric @ at,)) for at in (frame, rotated))
    torch.testing.assert_close(value(rotated), value(frame))
    assert_same((rotated_gradient,), (gradient @ rotation,))
    (reached,) = space.retract((frame,), (gradient,))
    (rotated_reached,) = space.retract((rotated,), (rotated_gradient,))
    assert_same((rotated_reached,), (reached @ rotation,))


@laws
@given(seed=seeds)
def test_product_operations_apply_to_each_factor(seed: int) -> None:
    factors = Euclidean(8, 2), Grassmann(8, 3), Stiefel(5, 2)
    space = Product(*factors)
    point, target = draw_point(space, seed), draw_point(space, seed + 5)
    first, second = draw_ambient(point, seed + 1), draw_ambient(point, seed + 2)
    inputs = [((p,), (q,), (a,), (b,)) for p, q, a, b in zip(point, target, first, second, strict=True)]
    for operation in ("gradient", "project", "retract"):
        parts = [getattr(factor, operation)(p, a) for factor, (p, _, a, _) in zip(factors, inputs, strict=True)]
        assert_same(getattr(space, operation)(point, first), tuple(part for (part,) in parts), 0)
    transported = [factor.transport(p, q, a) for factor, (p, q, a, _) in zip(factors, inputs, strict=True)]
    assert_same(space.transport(point, target, first), tuple(part for (part,) in transported), 0)
    inner = sum(float(factor.inner(p, a, b)) for factor, (p, _, a, b) in zip(factors, inputs, strict=True))
    assert float(space.inner(point, first, second)) == pytest.approx(inner, abs=1e-12)


@pytest.mark.parametrize(("rows", "columns"), [(3, 1), (3, 3), (40, 8)])
@pytest.mark.parametrize("spread", [1.0, 1e3])
def test_polar_equals_the_orthonormal_factor_of_the_svd(rows: int, columns: int, spread: float) -> None:
    space = Grassmann(rows, columns)
    point = draw_point(space, 3)
    matrix = point[0] + spread * space.project(point, draw_ambient(point, 4))[0]
    left, _, right = torch.linalg.svd(matrix, full_matrices=False)
    torch.testing.assert_close(polar(matrix), left @ right, rtol=0, atol=1e-9)


@pytest.mark.parametrize("space", [Stiefel(30, 7), Grassmann(128, 64)], ids=["stiefel", "grassmann"])
def test_float32_frames_stay_orthonormal(space: Stiefel) -> None:
    point = space.random(0)
    reached = space.retract(point, scaled(100.0, space.project(point, draw_ambient(point, 1))))
    assert reached[0].dtype is torch.float32
    assert departure_from_frame(space, point) < 1e-5
    assert departure_from_frame(space, reached) < 1e-5


@every_space
def test_random_points_depend_on_the_seed_only(space: Manifold) -> None:
    first, again, other = space.random(7), space.random(7), space.random(8)
    assert_same(first, again, 0)
    assert all(part.dtype is torch.float32 for part in first)
    assert all(not torch.equal(*parts) for parts in zip(first, other, strict=True))


def test_the_factors_of_a_random_point_are_independent_gaussians_of_consecutive_seeds() -> None:
    point = Product(Euclidean(8, 2), Euclidean(8, 2, scale=0.5)).random(7)
    gaussians = [torch.randn(8, 2, generator=torch.Generator().manual_seed(seed)) for seed in (7, 8)]
    assert_same(point, (gaussians[0], gaussians[1] / 2), 0)


def test_euclidean_random_has_the_given_scale() -> None:
    (values,) = Euclidean(200, 100, scale=0.25).random(0)
    assert float(values.std()) == pytest.approx(0.25, rel=0.02)


@pytest.mark.parametrize("shape", [(3, 4), (3, 0)])
@pytest.mark.parametrize("space", [Stiefel, Grassmann])
def test_frames_with_more_columns_than_rows_raise_an_error(space: type[Stiefel], shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=f"got {shape[1]} columns and 3 rows"):
        space(*shape)
