"""Linear neighborhoods: their laws, and a loop of decompositions as reference."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from torch import Tensor
from torch.nn.functional import normalize

from tests.numerics.graph.naive import naive_neighborhoods
from udml_core.numerics.explanations import LinearNeighborhoods, thin, to_arrays
from udml_core.numerics.graph import Through, linear_neighborhoods, linear_neighborhoods_at
from udml_core.numerics.neighbors import nearest

THROUGH: tuple[Through, ...] = get_args(Through)
FASHION = Path(__file__).parents[3] / "assets" / "fashion-mini.npz"


def subspaces(groups: int, size: int, dimension: int, width: int, noise: float, seed: int = 0,
              spread: float = 8.0) -> Tensor:
    """Return points on affine subspaces far from each other, float64.

    The shape is (groups·size, width), with `size` points per subspace.
    """
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    centers = spread * normalize(normal(groups, 1, width), dim=2)
    within = normal(groups, size, dimension) @ torch.linalg.qr(normal(groups, width, dimension)).Q.mT
    return (centers + within + noise * normal(groups, size, width)).reshape(-1, width)


@cache
def digits() -> Tensor:
    return normalize(torch.from_numpy(load_digits().data).float())


@cache
def fashion() -> Tensor:
    """Return pixels as unit rows, like a PLM batch.

    It contains 40 images with the 4 nearest neighbors of each among 2,000.
    """
    with np.load(FASHION) as stored:
        pixels = torch.from_numpy(stored["pixels"].reshape(-1, 784)).float()
    points = normalize(pixels[:2000])
    neighbors = nearest(points.numpy(), 4)[1][:40]
    return points[np.unique(np.column_stack([np.arange(40), neighbors]))]


def projectors(basis: Tensor) -> Tensor:
    return basis @ basis.mT


def largest_distance(basis: Tensor, other: Tensor) -> float:
    """Return the largest ‖PPᵀ − QQᵀ‖_F = √2 ‖P − QQᵀP‖_F.

    No (d, d) matrix is formed.
    """
    return float(2**0.5 * (basis - other @ (other.mT @ basis)).flatten(1).norm(dim=1).amax())


def assert_naive(points: Tensor, k: int, m: int, threshold: float, through: Through) -> LinearNeighborhoods:
    """Check that neighborhoods equal the naive loop's.

    Candidates and members are equal; projectors and qualities agree within 1e-4.
    """
    record = linear_neighborhoods(points, k, m, threshold, through=through)
    expected = naive_neighborhoods(points.double().numpy(), k, m, threshold, through=through)
    np.testing.assert_array_equal(record.neighbors.numpy(), [point.neighbors for point in expected])
    np.testing.assert_array_equal(record.members.numpy(), [point.members for point in expected])
    basis = torch.from_numpy(np.stack([point.basis for point in expected]))
    assert record.basis.dtype == points.dtype
    assert largest_distance(record.basis.double(), basis) < 1e-4
    np.testing.assert_allclose(record.worst.numpy(), [point.worst for point in expected], atol=1e-4)
    centers = points.double()[:, None] if through == "point" else 0
    vectors = points.double()[record.neighbors] - centers
    quality = (vectors @ basis).square().sum(2) / vectors.square().sum(2)
    np.testing.assert_allclose(record.quality.numpy(), quality.numpy(), atol=1e-4)
    return record


@pytest.mark.parametrize("through", THROUGH)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("noise", [0.03, 0.3, 3.0])
def test_members_and_bases_equal_the_naive_loop(seed: int, noise: float, through: Through) -> None:
    k, m, threshold = [(10, 3, 0.9), (12, 2, 0.8), (7, 5, 0.95), (9, 1, 0.5)][seed % 4]
    assert_naive(normalize(subspaces(4, 8, 3, 20, noise, seed)).float(), k, m, threshold, through)


@pytest.mark.parametrize("through", THROUGH)
@pytest.mark.parametrize(("k", "m", "threshold"), [(10, 3, 0.9), (15, 5, 0.7)])
def test_members_and_bases_equal_the_naive_loop_on_digits(k: int, m: int, threshold: float, through: Through) -> None:
    assert_naive(digits()[:250], k, m, threshold, through)


@pytest.mark.slow
@pytest.mark.parametrize("through", THROUGH)
@pytest.mark.parametrize(("k", "m", "threshold"), [(10, 3, 0.9), (12, 4, 0.75)])
def test_members_and_bases_equal_the_naive_loop_on_fashion(k: int, m: int, threshold: float, through: Through) -> None:
    assert_naive(fashion(), k, m, threshold, through)


@pytest.mark.parametrize("m", [1, 3, 5])
@pytest.mark.parametrize(("through", "spent"), [("point", 0), ("origin", 1)])
def test_automatic_members_are_m_through_the_point_and_one_fewer_through_the_origin(
        m: int, through: Through, spent: int) -> None:
    """No candidate of random directions lies in another's subspace.

    At T = 0.999 only automatic members remain.
    """
    random = torch.Generator().manual_seed(0)
    points = normalize(torch.randn(60, 40, generator=random, dtype=torch.float64))
    record = assert_naive(points, 9, m, 0.999, through)
    assert (record.members == (torch.arange(9) < m - spent)).all()
    assert (record.worst[:, :m - spent] == 1).all()
    assert (record.worst[:, m - spent:] < 0.999).all()
    everyone = linear_neighborhoods(points, 9, m, 0.999, admission=False, through=through)
    assert everyone.members.all()


def test_a_subspace_through_the_origin_is_fitted_to_its_point_as_well() -> None:
    points = digits()[:60].double()
    record = linear_neighborhoods(points, 3, 3, 1.0, through="origin")
    assert record.members.sum(1).tolist() == [2] * 60
    inside = (points[:, None] @ record.basis).norm(dim=(1, 2))
    torch.testing.assert_close(inside, torch.ones_like(inside))  # m points without error: the point and 2 neighbors
    record = linear_neighborhoods(points, 10, 3, admission=False, through="origin")
    sets = torch.cat([points[:, None], points[record.neighbors]], dim=1)
    assert largest_distance(record.basis, torch.linalg.svd(sets, full_matrices=False).Vh[:, :3].mT) < 1e-6


def test_planted_subspaces_through_the_origin_are_recovered() -> None:
    """At T = 1 all candidates in the point's own subspace are members.

    The basis spans this subspace.
    """
    random = torch.Generator().manual_seed(1)
    frames = torch.linalg.qr(torch.randn(8, 30, 3, generator=random, dtype=torch.float64)).Q
    points = normalize(torch.randn(8, 25, 3, generator=random, dtype=torch.float64) @ frames.mT, dim=2).flatten(0, 1)
    record = linear_neighborhoods(points, 6, 3, 1.0, through="origin")
    same = record.neighbors // 25 == (torch.arange(200) // 25)[:, None]
    whole = same.all(1)
    assert int(whole.sum()) > 50
    assert record.members[whole].all()
    assert largest_distance(record.basis[whole], frames.repeat_interleave(25, 0)[whole]) < 1e-5


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), groups=st.integers(1, 4), width=st.integers(1, 12), m=st.integers(1, 5),
       extra=st.integers(0, 6), threshold=st.floats(0.05, 1.0), noise=st.sampled_from([0.0, 1e-3, 0.1, 1.0]),
       copies=st.integers(1, 3), dtype=st.sampled_from([torch.float32, torch.float64]))
def test_members_reach_the_threshold_and_rejected_candidates_do_not(
        seed: int, groups: int, width: int, m: int, extra: int, threshold: float, noise: float, copies: int,
        dtype: torch.dtype) -> None:
    """For data of any rank, bases are orthonormal.

    Each candidate's test agrees with a decomposition of its set.
    """
    m = min(m, width)
    points = subspaces(groups, 8, min(2, width), width, noise, seed).repeat(copies, 1).to(dtype)
    k = min(m + extra, len(points) - 1)
    record = linear_neighborhoods(points, k, m, threshold)
    assert float((record.basis.mT @ record.basis - torch.eye(m)).abs().amax()) < 1e-5
    assert record.members[:, :m].all()
    assert ((record.quality >= 0) & (record.quality <= 1)).all()
    assert (record.quality[record.members] >= threshold - 1e-5).all()
    assert (record.worst[:, :m] == 1).all()
    assert (record.worst[record.members] >= threshold - 1e-6).all()
    assert (record.worst[~record.members] < threshold + 1e-6).all()
    offsets = points.double()[record.neighbors] - points.double()[:, None]
    for j in range(m, k):
        tested = record.members & (torch.arange(k) < j)
        tested[:, j] = True
        rows = offsets * tested[:, :, None]
        fitted = torch.linalg.svd(rows, full_matrices=False).Vh[:, :m].mT
        squared = rows.square().sum(2)
        quality = torch.where(squared > 0, (rows @ fitted).square().sum(2) / squared, 1)
        torch.testing.assert_close(quality.amin(1), record.worst[:, j].double(), atol=1e-5, rtol=0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("noise", "admitted", "overlap"), [(0.0, 1.0, 1 - 1e-6), (0.01, 0.97, 0.99)])
def test_planted_subspaces_are_recovered(seed: int, noise: float, admitted: float, overlap: float) -> None:
    """The data are 12 subspaces of dimension 3 with 16 points each.

    Each point has 19 candidates. 15 candidates lie on the point's own subspace and 4 on others. Two failures are
    possible but rare, because the loop is greedy: a point at the edge of its subspace may admit an outsider, and a
    point whose nearest neighbor lies within the noise may miss its subspace.
    """
    points = subspaces(12, 16, 3, 40, noise, seed)
    record = linear_neighborhoods(points.float(), 19, 3)
    group = torch.arange(len(points)) // 16
    own = group[record.neighbors] == group[:, None]
    assert (own.sum(1) == 15).all()
    assert float(record.members[own].float().mean()) >= admitted
    assert float((record.members & ~own).any(1).float().mean()) <= 0.01
    centered = points.reshape(12, 16, 40) - points.reshape(12, 16, 40).mean(1, keepdim=True)
    planted = torch.linalg.svd(centered).Vh[:, :3].mT[group]
    least = torch.linalg.svdvals(planted.mT @ record.basis.double())[:, -1]
    assert float((least > overlap).double().mean()) >= 0.95


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), m=st.integers(1, 4), threshold=st.floats(0.3, 0.99))
def test_results_do_not_depend_on_the_order_the_axes_or_the_origin(seed: int, m: int, threshold: float) -> None:
    points = subspaces(3, 10, 3, 8, 0.3, seed)
    before = linear_neighborhoods(points, 8, m, threshold)

    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(points), generator=generator)
    shuffled = linear_neighborhoods(points[order], 8, m, threshold)
    torch.testing.assert_close(order[shuffled.neighbors], before.neighbors[order])
    torch.testing.assert_close(shuffled.members, before.members[order])
    torch.testing.assert_close(projectors(shuffled.basis), projectors(before.basis)[order])

    rotation = torch.linalg.qr(torch.randn(8, 8, generator=generator, dtype=torch.float64)).Q
    rotated = linear_neighborhoods(3 * points @ rotation + 5, 8, m, threshold)
    torch.testing.assert_close(rotated.members, before.members)
    torch.testing.assert_close(rotated.quality, before.quality)
    torch.testing.assert_close(rotated.worst, before.worst)
    torch.testing.assert_close(projectors(rotated.basis), rotation.mT @ projectors(before.basis) @ rotation)


def test_the_first_basis_vector_has_the_most_variance() -> None:
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(40, 3, generator=generator) * torch.tensor([1.0, 10.0, 100.0])
    record = linear_neighborhoods(points, 39, 2, admission=False)
    assert (record.basis[:, 2, 0].abs() > 0.99).all()
    assert (record.basis[:, 1, 1].abs() > 0.99).all()


@pytest.mark.parametrize("distinct", [1, 2, 3, 12])
def test_duplicates_have_quality_one(distinct: int) -> None:
    """This includes sets with fewer distinct points than the subspace has dimensions."""
    points = digits()[:distinct].repeat(5, 1)
    record = linear_neighborhoods(points, 4 if distinct == 12 else 4 * distinct, 3)
    duplicate = (points[record.neighbors] == points[:, None]).all(2)
    assert duplicate[:, :4].all()
    assert (record.quality[duplicate] == 1).all()
    assert record.members[duplicate].all()
    assert all(bool(values.isfinite().all()) for values in (record.basis, record.quality, record.worst))
    gram = record.basis.mT @ record.basis
    torch.testing.assert_close(gram, torch.eye(3).expand(len(points), 3, 3), atol=1e-6, rtol=0)


def test_a_near_duplicate_contributes_its_own_direction() -> None:
    """The duplicate's distance is a millionth of the other distances.

    Its square would vanish in a float32 Gram matrix.
    """
    points = torch.tensor([[0.0, 0, 0, 0], [0, 0, 1e-6, 0], [1, 0, 0, 0], [1, 1, 0, 0], [1, -1, 0, 0.9]])
    record = linear_neighborhoods_at(points[:1], points, torch.tensor([[1, 2, 3, 4]]), 3)
    assert record.members.tolist() == [[True, True, True, False]]
    torch.testing.assert_close(projectors(record.basis)[0], torch.diag(torch.tensor([1.0, 1, 1, 0])), atol=1e-5, rtol=0)


@pytest.mark.parametrize("m", [1, 3])
def test_the_first_m_candidates_are_always_members(m: int) -> None:
    record = linear_neighborhoods(digits()[:50], m, m, 1.0)
    assert record.members.all()
    assert (record.worst == 1).all()
    torch.testing.assert_close(record.quality, torch.ones(50, m))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_threshold_of_one_admits_exactly_the_points_in_the_subspace(dtype: torch.dtype) -> None:
    points = torch.cat([subspaces(1, 30, 3, 3, 0.0), torch.zeros(30, 5)], dim=1).to(dtype)
    assert linear_neighborhoods(points, 12, 3, 1.0).members.all()
    assert not linear_neighborhoods(points, 12, 2, 1.0).members[:, 2:].any()


def test_without_admission_all_candidates_are_members() -> None:
    points = digits()[:80]
    record = linear_neighborhoods(points, 10, 3, admission=False)
    assert record.members.all()
    assert (record.worst == 1).all()
    fitted = torch.linalg.svd((points[record.neighbors] - points[:, None]).double(), full_matrices=False).Vh[:, :3]
    torch.testing.assert_close(projectors(record.basis.double()), projectors(fitted.mT), atol=1e-5, rtol=0)
    assert float(record.quality.amin()) < 0.9


def test_selected_points_of_a_large_set_have_the_same_neighborhoods(monkeypatch: pytest.MonkeyPatch) -> None:
    """The candidates come from a separate search.

    The batches are small, and one center is not a data point.
    """
    points = digits()
    selected = torch.arange(3, 1797, 90)
    neighbors = torch.from_numpy(nearest(points.numpy(), 10)[1])
    whole = linear_neighborhoods(points)
    # The package exports a function with the name of this module.
    monkeypatch.setattr(import_module("udml_core.numerics.graph.linear_neighborhoods"), "BATCH", 7)
    record = linear_neighborhoods_at(points[selected], points, neighbors[selected])
    for name in ("neighbors", "members", "basis", "quality", "worst"):
        torch.testing.assert_close(getattr(record, name), getattr(whole, name)[selected])
    torch.testing.assert_close(linear_neighborhoods(points[:40]).quality, linear_neighborhoods(points[:40]).quality)
    between = points[:2].mean(0, keepdim=True)
    record = linear_neighborhoods_at(between, points, torch.tensor([[0, 1, 2, 3]]), 1)
    assert record.members[0, :2].all()
    torch.testing.assert_close(record.quality[0, :2], torch.ones(2))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_the_record_has_the_input_dtype_and_no_gradients(dtype: torch.dtype) -> None:
    points = digits()[:30].to(dtype).requires_grad_()
    record = linear_neighborhoods(points)
    assert record.neighbors.dtype == torch.int64
    assert record.members.dtype == torch.bool
    assert [values.dtype for values in (record.basis, record.quality, record.worst)] == 3 * [dtype]
    assert not any(values.requires_grad for values in (record.basis, record.quality, record.worst))


def test_the_record_is_stored_without_thinning() -> None:
    record = linear_neighborhoods(digits()[:30], 6, 2)
    assert record.stored_as == "neighborhoods"
    assert thin(record, 5) is record
    arrays = to_arrays(record)
    assert {name: values.shape for name, values in arrays.items()} == {
        "neighbors": (30, 6), "members": (30, 6), "basis": (30, 64, 2), "quality": (30, 6), "worst": (30, 6)}
    assert isinstance(LinearNeighborhoods(**arrays).members, np.ndarray)


@pytest.mark.parametrize(("change", "message"), [
    ({"n_neighbors": 2}, "dimension 3 needs at least 3 neighbors, got 2"),
    ({"n_neighbors": 20}, "below the number of points, 20, got 20"),
    ({"n_neighbors": 0}, "must be at least 1 .* got 0"),
    ({"dimension": 6, "n_neighbors": 8}, "between 1 and that of the points, 5, got 6"),
    ({"dimension": 0}, "between 1 and that of the points, 5, got 0"),
    ({"threshold": 0.0}, "above 0 and at most 1, got 0.0"),
    ({"threshold": 1.1}, "above 0 and at most 1, got 1.1"),
    ({"threshold": float("nan")}, "above 0 and at most 1, got nan"),
    ({"through": "mean"}, "through 'point' or 'origin', got 'mean'"),
    ({"points": torch.full((20, 5), torch.nan)}, "20 of 20 rows contain NaN or infinity"),
    ({"points": torch.full((20, 5), -torch.inf)}, "20 of 20 rows"),
    ({"points": torch.ones(20)}, r"matrix \(n, d\) of floats, got torch.float32 of shape \(20,\)"),
    ({"points": torch.ones(20, 5, dtype=torch.int64)}, "of floats, got torch.int64"),
])
def test_invalid_arguments_raise_an_error(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        linear_neighborhoods(**{"points": subspaces(2, 10, 3, 5, 0.1), **change})


@pytest.mark.parametrize(("centers", "neighbors", "message"), [
    (torch.ones(2, 4), torch.zeros(2, 3, dtype=torch.int64), "same dimension, got 4 and 5"),
    (torch.ones(2, 5), torch.zeros(3, 3, dtype=torch.int64), r"got 2 centers and neighbors of shape \(3, 3\)"),
    (torch.ones(0, 5), torch.zeros(0, 3, dtype=torch.int64), "got 0 centers"),
    (torch.ones(2, 5), torch.zeros(2, 2, dtype=torch.int64), "needs at least 3 neighbors, got 2"),
    (torch.ones(2, 5), torch.full((2, 3), 10), "from 0 to 9, got torch.int64 from 10 to 10"),
    (torch.ones(2, 5), torch.full((2, 3), -1), "from 0 to 9"),
    (torch.ones(2, 5), torch.zeros(2, 3), "integers from 0 to 9, got torch.float32"),
    (torch.full((2, 5), torch.nan), torch.zeros(2, 3, dtype=torch.int64), "2 of 2 rows"),
])
def test_mismatched_centers_and_neighbors_raise_an_error(centers: Tensor, neighbors: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        linear_neighborhoods_at(centers, torch.ones(10, 5), neighbors)
