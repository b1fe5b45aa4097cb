"""Linear neighborhoods beside a loop of singular value decompositions, and their laws."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from torch import Tensor
from torch.nn.functional import normalize

from tests.graph.naive import naive_neighborhoods
from udml_core.explanations import LinearNeighborhoods, name_of, thinned, to_arrays
from udml_core.graph import linear_neighborhoods, linear_neighborhoods_at
from udml_core.graph import linear_neighborhoods as linear
from udml_core.neighbors import nearest

FASHION = Path(__file__).parents[2] / "assets" / "fashion-mini.npz"


def flats(groups: int, size: int, dimension: int, width: int, noise: float, seed: int = 0,
          spread: float = 8.0) -> Tensor:
    """Affine flats far from each other, `size` points on each one after the other, float64 (groups·size, width)."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    places = spread * normalize(normal(groups, 1, width), dim=2)
    within = normal(groups, size, dimension) @ torch.linalg.qr(normal(groups, width, dimension)).Q.mT
    return (places + within + noise * normal(groups, size, width)).reshape(-1, width)


@cache
def digits() -> Tensor:
    return normalize(torch.from_numpy(load_digits().data).float())


@cache
def fashion() -> Tensor:
    """40 images and the 4 nearest of each among 2,000, as a batch is put together; pixels, unit rows."""
    with np.load(FASHION) as stored:
        pixels = torch.from_numpy(stored["pixels"].reshape(-1, 784)).float()
    points = normalize(pixels[:2000])
    near = nearest(points.numpy(), 4)[1][:40]
    return points[np.unique(np.column_stack([np.arange(40), near]))]


def projectors(basis: Tensor) -> Tensor:
    return basis @ basis.mT


def apart(basis: Tensor, other: Tensor) -> float:
    """The greatest ‖PPᵀ − QQᵀ‖_F = √2 ‖P − QQᵀP‖_F, without a matrix (d, d)."""
    return float(2**0.5 * (basis - other @ (other.mT @ basis)).flatten(1).norm(dim=1).amax())


def assert_naive(points: Tensor, k: int, m: int, threshold: float) -> None:
    """Equal candidates and members; projectors, and the worst quality of every test, within 1e-4."""
    found = linear_neighborhoods(points, k, m, threshold)
    expected = naive_neighborhoods(points.double().numpy(), k, m, threshold)
    np.testing.assert_array_equal(found.neighbors.numpy(), [one.neighbors for one in expected])
    np.testing.assert_array_equal(found.members.numpy(), [one.members for one in expected])
    basis = torch.from_numpy(np.stack([one.basis for one in expected]))
    assert found.basis.dtype == points.dtype
    assert apart(found.basis.double(), basis) < 1e-4
    np.testing.assert_allclose(found.worst.numpy(), [one.worst for one in expected], atol=1e-4)
    offsets = points.double()[found.neighbors] - points.double()[:, None]
    quality = (offsets @ basis).square().sum(2) / offsets.square().sum(2)
    np.testing.assert_allclose(found.quality.numpy(), quality.numpy(), atol=1e-4)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("noise", [0.03, 0.3, 3.0])
def test_the_naive_loops_sets_and_flats(seed: int, noise: float) -> None:
    k, m, threshold = [(10, 3, 0.9), (12, 2, 0.8), (7, 5, 0.95), (9, 1, 0.5)][seed % 4]
    assert_naive(normalize(flats(4, 8, 3, 20, noise, seed)).float(), k, m, threshold)


@pytest.mark.parametrize(("k", "m", "threshold"), [(10, 3, 0.9), (15, 5, 0.7)])
def test_the_naive_loops_sets_and_flats_on_digits(k: int, m: int, threshold: float) -> None:
    assert_naive(digits()[:250], k, m, threshold)


@pytest.mark.parametrize(("k", "m", "threshold"), [(10, 3, 0.9), (12, 4, 0.75)])
def test_the_naive_loops_sets_and_flats_on_fashion(k: int, m: int, threshold: float) -> None:
    assert_naive(fashion(), k, m, threshold)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), groups=st.integers(1, 4), width=st.integers(1, 12), m=st.integers(1, 5),
       extra=st.integers(0, 6), threshold=st.floats(0.05, 1.0), noise=st.sampled_from([0.0, 1e-3, 0.1, 1.0]),
       copies=st.integers(1, 3), dtype=st.sampled_from([torch.float32, torch.float64]))
def test_laws(seed: int, groups: int, width: int, m: int, extra: int, threshold: float, noise: float, copies: int,
              dtype: torch.dtype) -> None:
    """Orthonormal; every accepted set is held by its best flat to T, the refused ones are not; whatever the ranks."""
    m = min(m, width)
    points = flats(groups, 8, min(2, width), width, noise, seed).repeat(copies, 1).to(dtype)
    k = min(m + extra, len(points) - 1)
    found = linear_neighborhoods(points, k, m, threshold)
    assert float((found.basis.mT @ found.basis - torch.eye(m)).abs().amax()) < 1e-5
    assert found.members[:, :m].all()
    assert ((found.quality >= 0) & (found.quality <= 1)).all()
    assert (found.quality[found.members] >= threshold - 1e-5).all()
    assert (found.worst[:, :m] == 1).all()
    assert (found.worst[found.members] >= threshold - 1e-6).all()
    assert (found.worst[~found.members] < threshold + 1e-6).all()
    offsets = points.double()[found.neighbors] - points.double()[:, None]
    for j in range(m, k):
        tested = found.members & (torch.arange(k) < j)
        tested[:, j] = True
        rows = offsets * tested[:, :, None]
        fitted = torch.linalg.svd(rows, full_matrices=False).Vh[:, :m].mT
        whole = rows.square().sum(2)
        quality = torch.where(whole > 0, (rows @ fitted).square().sum(2) / whole, 1)
        torch.testing.assert_close(quality.amin(1), found.worst[:, j].double(), atol=1e-5, rtol=0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("noise", "admitted", "overlap"), [(0.0, 1.0, 1 - 1e-6), (0.01, 0.97, 0.99)])
def test_planted_flats_are_recovered(seed: int, noise: float, admitted: float, overlap: float) -> None:
    """16 points on each of 12 flats of dimension 3, 19 candidates: the 15 others of a point's own flat and 4 strangers.
    The loop is greedy, so a point at its flat's edge may admit a stranger, and one whose nearest neighbor lies within
    the noise may miss its flat; both are rare."""
    points = flats(12, 16, 3, 40, noise, seed)
    found = linear_neighborhoods(points.float(), 19, 3)
    group = torch.arange(len(points)) // 16
    own = group[found.neighbors] == group[:, None]
    assert (own.sum(1) == 15).all()
    assert float(found.members[own].float().mean()) >= admitted
    assert float((found.members & ~own).any(1).float().mean()) <= 0.01
    centered = points.reshape(12, 16, 40) - points.reshape(12, 16, 40).mean(1, keepdim=True)
    planted = torch.linalg.svd(centered).Vh[:, :3].mT[group]
    least = torch.linalg.svdvals(planted.mT @ found.basis.double())[:, -1]
    assert float((least > overlap).double().mean()) >= 0.95


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), m=st.integers(1, 4), threshold=st.floats(0.3, 0.99))
def test_neither_the_order_of_the_points_nor_the_axes_nor_the_origin_matter(seed: int, m: int,
                                                                             threshold: float) -> None:
    points = flats(3, 10, 3, 8, 0.3, seed)
    before = linear_neighborhoods(points, 8, m, threshold)

    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(points), generator=generator)
    shuffled = linear_neighborhoods(points[order], 8, m, threshold)
    torch.testing.assert_close(order[shuffled.neighbors], before.neighbors[order])
    torch.testing.assert_close(shuffled.members, before.members[order])
    torch.testing.assert_close(projectors(shuffled.basis), projectors(before.basis)[order])

    rotation = torch.linalg.qr(torch.randn(8, 8, generator=generator, dtype=torch.float64)).Q
    turned = linear_neighborhoods(3 * points @ rotation + 5, 8, m, threshold)
    torch.testing.assert_close(turned.members, before.members)
    torch.testing.assert_close(turned.quality, before.quality)
    torch.testing.assert_close(turned.worst, before.worst)
    torch.testing.assert_close(projectors(turned.basis), rotation.mT @ projectors(before.basis) @ rotation)


def test_a_basis_begins_with_the_direction_of_most_variance() -> None:
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(40, 3, generator=generator) * torch.tensor([1.0, 10.0, 100.0])
    found = linear_neighborhoods(points, 39, 2, admission=False)
    assert (found.basis[:, 2, 0].abs() > 0.99).all()
    assert (found.basis[:, 1, 1].abs() > 0.99).all()


@pytest.mark.parametrize("distinct", [1, 2, 3, 12])
def test_duplicates_are_held_whole(distinct: int) -> None:
    """Also where fewer distinct points are left than the flat has dimensions."""
    points = digits()[:distinct].repeat(5, 1)
    found = linear_neighborhoods(points, 4 if distinct == 12 else 4 * distinct, 3)
    zero = (points[found.neighbors] == points[:, None]).all(2)
    assert zero[:, :4].all()
    assert (found.quality[zero] == 1).all()
    assert found.members[zero].all()
    assert all(bool(one.isfinite().all()) for one in (found.basis, found.quality, found.worst))
    torch.testing.assert_close(found.basis.mT @ found.basis, torch.eye(3).expand(len(points), 3, 3), atol=1e-6, rtol=0)


def test_a_near_duplicate_has_a_direction_of_its_own() -> None:
    """It is told apart from the point at a millionth of the others' distance, where a float32 Gram holds nothing."""
    points = torch.tensor([[0.0, 0, 0, 0], [0, 0, 1e-6, 0], [1, 0, 0, 0], [1, 1, 0, 0], [1, -1, 0, 0.9]])
    found = linear_neighborhoods_at(points[:1], points, torch.tensor([[1, 2, 3, 4]]), 3)
    assert found.members.tolist() == [[True, True, True, False]]
    torch.testing.assert_close(projectors(found.basis)[0], torch.diag(torch.tensor([1.0, 1, 1, 0])), atol=1e-5, rtol=0)


@pytest.mark.parametrize("m", [1, 3])
def test_as_many_neighbors_as_dimensions_are_all_members(m: int) -> None:
    found = linear_neighborhoods(digits()[:50], m, m, 1.0)
    assert found.members.all()
    assert (found.worst == 1).all()
    torch.testing.assert_close(found.quality, torch.ones(50, m))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_threshold_of_one_admits_what_lies_in_the_flat(dtype: torch.dtype) -> None:
    points = torch.cat([flats(1, 30, 3, 3, 0.0), torch.zeros(30, 5)], dim=1).to(dtype)
    assert linear_neighborhoods(points, 12, 3, 1.0).members.all()
    assert not linear_neighborhoods(points, 12, 2, 1.0).members[:, 2:].any()


def test_without_admission_all_candidates_are_fitted() -> None:
    points = digits()[:80]
    found = linear_neighborhoods(points, 10, 3, admission=False)
    assert found.members.all()
    assert (found.worst == 1).all()
    fitted = torch.linalg.svd((points[found.neighbors] - points[:, None]).double(), full_matrices=False).Vh[:, :3]
    torch.testing.assert_close(projectors(found.basis.double()), projectors(fitted.mT), atol=1e-5, rtol=0)
    assert float(found.quality.amin()) < 0.9


def test_chosen_points_of_a_large_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """With candidates found elsewhere, in pieces, and at a place that is none of the points."""
    points = digits()
    chosen = torch.arange(3, 1797, 90)
    neighbors = torch.from_numpy(nearest(points.numpy(), 10)[1])
    whole = linear_neighborhoods(points)
    monkeypatch.setattr(linear, "TOGETHER", 7)
    found = linear_neighborhoods_at(points[chosen], points, neighbors[chosen])
    for name in ("neighbors", "members", "basis", "quality", "worst"):
        torch.testing.assert_close(getattr(found, name), getattr(whole, name)[chosen])
    torch.testing.assert_close(linear_neighborhoods(points[:40]).quality, linear_neighborhoods(points[:40]).quality)
    between = points[:2].mean(0, keepdim=True)
    found = linear_neighborhoods_at(between, points, torch.tensor([[0, 1, 2, 3]]), 1)
    assert found.members[0, :2].all()
    torch.testing.assert_close(found.quality[0, :2], torch.ones(2))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_a_record_is_tensors_without_gradients(dtype: torch.dtype) -> None:
    points = digits()[:30].to(dtype).requires_grad_()
    found = linear_neighborhoods(points)
    assert found.neighbors.dtype == torch.int64
    assert found.members.dtype == torch.bool
    assert [one.dtype for one in (found.basis, found.quality, found.worst)] == 3 * [dtype]
    assert not any(one.requires_grad for one in (found.basis, found.quality, found.worst))


def test_the_record_is_stored_whole() -> None:
    found = linear_neighborhoods(digits()[:30], 6, 2)
    assert name_of(found) == "neighborhoods"
    assert thinned(found, 5) is found
    arrays = to_arrays(found)
    assert {name: one.shape for name, one in arrays.items()} == {
        "neighbors": (30, 6), "members": (30, 6), "basis": (30, 64, 2), "quality": (30, 6), "worst": (30, 6)}
    assert isinstance(LinearNeighborhoods(**arrays).members, np.ndarray)


@pytest.mark.parametrize(("change", "message"), [
    ({"n_neighbors": 2}, "flat of dimension 3 needs at least 3 neighbors, got 2"),
    ({"n_neighbors": 20}, "below the number of points, 20, got 20"),
    ({"n_neighbors": 0}, "must be at least 1 .* got 0"),
    ({"dimension": 6, "n_neighbors": 8}, "between 1 and the points' 5, got 6"),
    ({"dimension": 0}, "between 1 and the points' 5, got 0"),
    ({"threshold": 0.0}, "above 0 and at most 1, got 0.0"),
    ({"threshold": 1.1}, "above 0 and at most 1, got 1.1"),
    ({"threshold": float("nan")}, "above 0 and at most 1, got nan"),
    ({"points": torch.full((20, 5), torch.nan)}, "20 of 20 rows hold NaN or infinity"),
    ({"points": torch.full((20, 5), -torch.inf)}, "20 of 20 rows"),
    ({"points": torch.ones(20)}, r"matrix \(n, d\) of floats, got torch.float32 of shape \(20,\)"),
    ({"points": torch.ones(20, 5, dtype=torch.int64)}, "of floats, got torch.int64"),
])
def test_what_cannot_be_built_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        linear_neighborhoods(**{"points": flats(2, 10, 3, 5, 0.1), **change})


@pytest.mark.parametrize(("centers", "neighbors", "message"), [
    (torch.ones(2, 4), torch.zeros(2, 3, dtype=torch.int64), "same dimension, got 4 and 5"),
    (torch.ones(2, 5), torch.zeros(3, 3, dtype=torch.int64), r"got 2 centers and neighbors of shape \(3, 3\)"),
    (torch.ones(0, 5), torch.zeros(0, 3, dtype=torch.int64), "got 0 centers"),
    (torch.ones(2, 5), torch.zeros(2, 2, dtype=torch.int64), "needs at least 3 neighbors, got 2"),
    (torch.ones(2, 5), torch.full((2, 3), 10), "from 0 to 9, got torch.int64 from 10 to 10"),
    (torch.ones(2, 5), torch.full((2, 3), -1), "from 0 to 9"),
    (torch.ones(2, 5), torch.zeros(2, 3), "whole numbers from 0 to 9, got torch.float32"),
    (torch.full((2, 5), torch.nan), torch.zeros(2, 3, dtype=torch.int64), "2 of 2 rows"),
])
def test_centers_and_neighbors_that_do_not_fit_are_refused(centers: Tensor, neighbors: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        linear_neighborhoods_at(centers, torch.ones(10, 5), neighbors)
