"""PLM's similarity and losses: plain loops, the laws of the decay, and who learns from what."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize

from udml_core.arrays import Array
from udml_core.explanations import LinearNeighborhoods
from udml_core.graph import linear_neighborhoods
from udml_core.losses.piecewise import (
    Kind,
    binary_proxy_similarity,
    binary_similarity,
    cross_similarity,
    decay,
    directed_similarity,
    neighborhood_loss,
    piecewise_loss,
    point_loss,
    proxy_loss,
    proxy_similarity,
    similarity,
    split,
)

BATCH, WIDTH, FLAT, PROXIES = 14, 6, 2, 5
every_route = pytest.mark.parametrize("similarity_gradient", [False, True])
every_kind = pytest.mark.parametrize("kind", ["linear", "binary"])
every_type = pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-14)])


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def frames(count: int, seed: int, width: int = WIDTH, dimension: int = FLAT,
           dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.linalg.qr(normal(count, width, dimension, seed=seed)).Q.to(dtype)


class Batch:
    """A batch of unit rows, its teacher's, their neighborhoods, and proxies of any length."""

    def __init__(self, seed: int = 0, dtype: torch.dtype = torch.float64, proxies: int = PROXIES) -> None:
        self.embeddings = normalize(normal(BATCH, WIDTH, seed=seed)).to(dtype)
        self.teacher = normalize(self.embeddings.double() + 0.1 * normal(BATCH, WIDTH, seed=seed + 1)).to(dtype)
        self.neighborhoods = linear_neighborhoods(self.teacher, 5, FLAT)
        self.proxies = 3 * normal(proxies, WIDTH, seed=seed + 2, dtype=dtype)
        self.directions = frames(proxies, seed + 3, dtype=dtype)

    @property
    def basis(self) -> Tensor:
        return self.neighborhoods.basis


def slow_split(point: Array, center: Array, basis: Array) -> tuple[float, float]:
    v = point - center
    p = float(np.linalg.norm(basis.T @ v))
    return math.sqrt(max(float(v @ v) - p**2, 0.0)), p


def slow_directed(point: Array, center: Array, basis: Array, n_alpha: float, n_beta: float) -> float:
    o, p = slow_split(point, center, basis)
    return 1 / (1 + o / 2) ** n_alpha * 1 / (1 + p) ** n_beta


def slow_cross(points: Tensor, basis: Tensor, others: Tensor, other_basis: Tensor, n_alpha: float,
               n_beta: float) -> Array:
    x, P, y, Q = (one.detach().double().numpy() for one in (points, basis, others, other_basis))
    return np.array([[(slow_directed(x[i], y[j], Q[j], n_alpha, n_beta)
                       + slow_directed(y[j], x[i], P[i], n_alpha, n_beta)) / 2
                      for j in range(len(y))] for i in range(len(x))]).reshape(len(x), len(y))


def slow_losses(batch: Batch, among: Array, to_proxies: Array, scale: float) -> tuple[float, float, float]:
    """Eq. 6, 7 and 8, one term at a time."""
    f, rho, psi, basis = (one.detach().double().numpy() for one in (batch.embeddings, batch.proxies, batch.directions,
                                                                   batch.basis))
    first = second = third = 0.0
    for i in range(len(f)):
        for j in range(len(f)):
            if j != i:
                first += (scale * (1 - among[i, j]) - np.linalg.norm(f[i] - f[j])) ** 2
        for j in range(len(rho)):
            second += (scale * (1 - to_proxies[i, j]) - np.linalg.norm(f[i] - rho[j] / np.linalg.norm(rho[j]))) ** 2
            for k in range(psi.shape[2]):
                axis = psi[j, :, k]
                cosine = np.linalg.norm(basis[i].T @ axis) / np.linalg.norm(axis)
                third += (to_proxies[i, j] - cosine) ** 2
    return first, second, third


@every_type
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("n_alpha", "n_beta"), [(4.0, 0.5), (1.0, 1.5), (6.0, 0.0)])
def test_similarities_are_the_plain_loops(dtype: torch.dtype, tolerance: float, seed: int, n_alpha: float,
                                          n_beta: float) -> None:
    """Squared parts to the type's precision; s to its root where a point lies in a flat, o² = ‖v‖² − p² being 0."""
    batch = Batch(seed, dtype)
    x, P, rho, psi = batch.teacher, batch.basis, batch.proxies, batch.directions
    across, along = split(x, rho, psi)
    parts = np.array([[slow_split(a, b, c) for b, c in zip(rho.double().numpy(), psi.double().numpy(), strict=True)]
                      for a in x.double().numpy()])
    np.testing.assert_allclose(torch.stack([across, along], 2).numpy() ** 2, parts**2, atol=10 * tolerance)
    directed = [[slow_directed(*one, n_alpha, n_beta) for one in zip(len(rho) * [a], rho.double().numpy(),
                                                                    psi.double().numpy(), strict=True)]
                for a in x.double().numpy()]
    np.testing.assert_allclose(directed_similarity(x, rho, psi, n_alpha, n_beta).numpy(), directed, atol=tolerance**0.5)
    found = similarity(x, P, n_alpha, n_beta)
    assert found.dtype == dtype
    np.testing.assert_allclose(found.numpy(), slow_cross(x, P, x, P, n_alpha, n_beta), atol=tolerance**0.5)
    torch.testing.assert_close(cross_similarity(x, P, x, P, n_alpha, n_beta), found)
    unit = rho / rho.norm(dim=1, keepdim=True)
    np.testing.assert_allclose(proxy_similarity(x, P, rho, psi, n_alpha, n_beta).numpy(),
                               slow_cross(x, P, unit, psi, n_alpha, n_beta), atol=tolerance**0.5)


def test_a_line_in_the_plane() -> None:
    """From (0, 0) with the flat along x, the point (0.6, 0.8) is 0.8 across and 0.6 along: s′ = 1.4⁻⁴ · 1.6^-½."""
    origin, there = torch.zeros(1, 2, dtype=torch.float64), torch.tensor([[0.6, 0.8]], dtype=torch.float64)
    flat = torch.tensor([[[1.0], [0.0]]], dtype=torch.float64)
    across, along = split(there, origin, flat)
    assert (float(across), float(along)) == pytest.approx((0.8, 0.6))
    assert float(directed_similarity(there, origin, flat)) == pytest.approx(1.4**-4 * 1.6**-0.5)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), count=st.integers(2, 12), width=st.integers(1, 8), dimension=st.integers(1, 3),
       n_alpha=st.floats(0.5, 6), n_beta=st.floats(0.1, 3), exponent=st.integers(-4, 0))
def test_similarity_is_symmetric_in_reach_and_one_only_at_distance_zero(
        seed: int, count: int, width: int, dimension: int, n_alpha: float, n_beta: float, exponent: int) -> None:
    """With duplicates, whose flats may differ, and at distances down to 10⁻⁴."""
    points = normalize(normal(1, width, seed=seed) + 10.0**exponent * normal(count, width, seed=seed + 1))
    points = torch.cat([points, points[:2]])
    basis = frames(len(points), seed + 2, width, min(dimension, width))
    for dtype in (torch.float64, torch.float32):
        x = points.to(dtype)
        s = similarity(x, basis.to(dtype), n_alpha, n_beta)
        assert torch.equal(s, s.mT)
        assert ((s > 0) & (s <= 1)).all()
        distance = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist")
        assert (s[distance == 0] == 1).all()
        assert (s[distance > 1e-5] < 1).all()


@settings(max_examples=200, deadline=None, derandomize=True)
@given(n_beta=st.floats(0.01, 4), ratio=st.one_of(st.just(1.0), st.floats(0.1, 0.999), st.floats(1.001, 10)))
def test_similarity_falls_faster_across_than_along_exactly_from_twice_on(n_beta: float, ratio: float) -> None:
    """At every distance in (0, 2] when Nα ≥ 2Nβ; below, it fails near the point. Nα > Nβ is not enough."""
    n_alpha = ratio * 2 * n_beta
    distance = torch.cat([torch.logspace(-6, 0, 200, dtype=torch.float64), torch.linspace(0.01, 2, 200).double()])
    alpha, beta = decay(distance, distance, n_alpha, n_beta)
    rate_across = n_alpha / (2 + distance)  # −(log α)′
    rate_along = n_beta / (1 + distance)
    if ratio >= 1:
        assert (rate_across > rate_along).all()
        assert (alpha[distance > 1e-3] < beta[distance > 1e-3]).all()
    else:
        assert rate_across[0] < rate_along[0]
        assert alpha[0] > beta[0]


@pytest.mark.parametrize(("n_alpha", "n_beta", "faster"), [(4.0, 0.5, True), (1.0, 0.5, True), (0.9, 0.5, False)])
def test_a_step_across_costs_more_than_one_along(n_alpha: float, n_beta: float, faster: bool) -> None:
    basis = frames(1, 0, WIDTH, WIDTH)[0]
    flat, outside = basis[None, :, :FLAT], basis[:, FLAT]
    center = normal(1, WIDTH)
    for length in (0.01, 0.5, 2.0):
        along = directed_similarity(center + length * flat[0, :, 1], center, flat, n_alpha, n_beta)
        across = directed_similarity(center + length * outside, center, flat, n_alpha, n_beta)
        if faster or length == 0.01:
            assert bool(across < along) == faster


def test_near_points_keep_their_distance_in_float32() -> None:
    """Two unit rows 10⁻⁴ apart: a float32 Gram would give a distance of anything up to 10⁻³."""
    point = normalize(normal(1, 128))
    across = torch.linalg.qr(torch.cat([point.mT, normal(128, 3, seed=1)], dim=1)).Q[:, 1:]
    other = (point + 1e-4 * across[:, :1].mT).float()
    found = split(other, point.float(), across[None, :, 1:].float())
    assert float(found[0]) == pytest.approx(1e-4, rel=0.01)
    assert float(found[1]) == pytest.approx(0, abs=1e-6)


@every_kind
@every_type
@pytest.mark.parametrize("seed", range(3))
def test_losses_are_the_plain_loops(kind: Kind, dtype: torch.dtype, tolerance: float, seed: int) -> None:
    batch = Batch(seed, dtype)
    n_alpha, n_beta, scale = 3.0, 0.8, 1.7
    found = piecewise_loss(batch.embeddings, batch.teacher, batch.neighborhoods, batch.proxies, batch.directions,
                           n_alpha=n_alpha, n_beta=n_beta, scale=scale, kind=kind)
    if kind == "linear":
        unit = normalize(batch.proxies)
        among = slow_cross(batch.teacher, batch.basis, batch.teacher, batch.basis, n_alpha, n_beta)
        to_proxies = slow_cross(batch.teacher, batch.basis, unit, batch.directions, n_alpha, n_beta)
    else:
        among = binary_similarity(batch.neighborhoods.neighbors, batch.neighborhoods.members).numpy()
        to_proxies = binary_proxy_similarity(batch.teacher, batch.proxies, 5).numpy()
    expected = np.array(slow_losses(batch, among, to_proxies, scale)) / BATCH**2
    np.testing.assert_allclose([float(found.point), float(found.proxy), float(found.neighborhood)], expected,
                               rtol=tolerance**0.5)
    assert float(found.total) == pytest.approx(expected.sum(), rel=tolerance**0.5)
    assert found.total.dtype == dtype


@pytest.mark.parametrize("seed", range(4))
def test_binary_similarities_are_the_plain_loops(seed: int) -> None:
    batch = Batch(seed)
    neighbors, members = (one.tolist() for one in (batch.neighborhoods.neighbors, batch.neighborhoods.members))
    sets = [{j for j, inside in zip(*row, strict=True) if inside} for row in zip(neighbors, members, strict=True)]
    expected = [[float(i == j or j in sets[i] or i in sets[j]) for j in range(BATCH)] for i in range(BATCH)]
    assert binary_similarity(batch.neighborhoods.neighbors, batch.neighborhoods.members).tolist() == expected

    unit = normalize(batch.proxies)
    candidates = torch.cat([batch.teacher, unit])
    rows = []
    for i in range(BATCH):
        order = [j for j in (candidates - batch.teacher[i]).norm(dim=1).argsort().tolist() if j != i][:6]
        rows.append([float(BATCH + j in order) for j in range(PROXIES)])
    assert binary_proxy_similarity(batch.teacher, batch.proxies, 6).tolist() == rows
    assert 0 < np.sum(rows) < BATCH * PROXIES


@every_route
@every_kind
def test_gradients_are_the_finite_differences(similarity_gradient: bool, kind: Kind) -> None:
    batch = Batch(1)
    leaves = tuple(one.clone().requires_grad_() for one in (batch.embeddings, batch.proxies, batch.directions))
    unmoved = Batch(1)  # without the route through s its values must not move either

    def losses(embeddings: Tensor, proxies: Tensor, directions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if similarity_gradient or kind == "binary":
            found = piecewise_loss(embeddings, batch.teacher, batch.neighborhoods, proxies, directions, kind=kind,
                                   similarity_gradient=similarity_gradient)
            return found.point, found.proxy, found.neighborhood
        s = proxy_similarity(batch.teacher, batch.basis, unmoved.proxies, unmoved.directions)
        return (point_loss(embeddings, similarity(batch.teacher, batch.basis)), proxy_loss(embeddings, proxies, s),
                neighborhood_loss(batch.basis, directions, s))

    assert torch.autograd.gradcheck(losses, leaves)
    if not similarity_gradient and kind == "linear":
        detached = piecewise_loss(leaves[0], batch.teacher, batch.neighborhoods, *leaves[1:])
        expected = torch.autograd.grad(sum(losses(*leaves)), leaves)  # type: ignore[arg-type]
        for ours, theirs in zip(torch.autograd.grad(detached.total, leaves), expected, strict=True):
            torch.testing.assert_close(BATCH**2 * ours, theirs)


@every_route
@every_kind
def test_everything_learns_only_by_its_routes(similarity_gradient: bool, kind: Kind) -> None:
    batch = Batch(2)
    leaves = {"embeddings": batch.embeddings, "teacher": batch.teacher, "basis": batch.basis.clone(),
              "proxies": batch.proxies, "directions": batch.directions}
    for leaf in leaves.values():
        leaf.requires_grad_()
    neighborhoods = replace(batch.neighborhoods, basis=leaves["basis"])
    found = piecewise_loss(batch.embeddings, batch.teacher, neighborhoods, batch.proxies, batch.directions, kind=kind,
                           similarity_gradient=similarity_gradient)
    through_s = similarity_gradient and kind == "linear"
    expected = {"point": {"embeddings"},
                "proxy": {"embeddings", "proxies"} | ({"directions"} if through_s else set()),
                "neighborhood": {"directions"} | ({"proxies"} if through_s else set())}
    for part, learners in expected.items():
        gradients = torch.autograd.grad(getattr(found, part), list(leaves.values()), retain_graph=True,
                                        allow_unused=True)
        learning = {name for name, one in zip(leaves, gradients, strict=True) if one is not None and bool(one.any())}
        assert learning == learners


@every_route
@every_kind
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_gradient_is_lost_at_distance_zero(similarity_gradient: bool, kind: Kind, dtype: torch.dtype) -> None:
    """Equal embeddings, proxies at a point and in each other's place, directions within a flat and across it."""
    batch = Batch(3, dtype)
    embeddings = batch.embeddings.clone()
    embeddings[1] = embeddings[0]
    teacher = embeddings.clone()
    basis = batch.basis.clone()
    proxies, directions = batch.proxies.clone(), batch.directions.clone()
    proxies[0], proxies[2] = 2 * embeddings[0], proxies[1]
    basis[0] = torch.eye(WIDTH, FLAT, dtype=dtype)
    directions[0], directions[1] = basis[0], torch.eye(WIDTH, dtype=dtype)[:, FLAT:2 * FLAT]
    leaves = [one.requires_grad_() for one in (embeddings, proxies, directions)]
    neighborhoods = replace(batch.neighborhoods, basis=basis)
    piecewise_loss(embeddings, teacher, neighborhoods, proxies, directions, kind=kind,
                   similarity_gradient=similarity_gradient).total.backward()
    for leaf in leaves:
        assert leaf.grad is not None
        assert leaf.grad.isfinite().all()
        assert float(leaf.grad.abs().amax()) < 10


@every_kind
def test_without_proxies_the_first_loss_is_left(kind: Kind) -> None:
    batch = Batch(4, proxies=0)
    found = piecewise_loss(batch.embeddings, batch.teacher, batch.neighborhoods, batch.proxies, batch.directions,
                           kind=kind)
    assert float(found.proxy) == float(found.neighborhood) == 0
    assert float(found.total) == float(found.point) > 0


def test_neither_a_proxys_length_nor_the_choice_of_a_basis_matters() -> None:
    batch = Batch(5)
    turn = torch.linalg.qr(normal(FLAT, FLAT, seed=9)).Q
    neighborhoods = LinearNeighborhoods(**{**vars(batch.neighborhoods), "basis": batch.basis @ turn})
    before = piecewise_loss(batch.embeddings, batch.teacher, batch.neighborhoods, batch.proxies, batch.directions)
    after = piecewise_loss(batch.embeddings, batch.teacher, neighborhoods, 7 * batch.proxies, batch.directions)
    torch.testing.assert_close(torch.stack([before.point, before.proxy, before.neighborhood]),
                               torch.stack([after.point, after.proxy, after.neighborhood]))


def test_embeddings_settle_where_their_similarities_put_them() -> None:
    """Three points and the similarities of a triangle with sides δ(1−s): gradient descent builds it."""
    s = torch.tensor([[1.0, 0.6, 0.5], [0.6, 1.0, 0.7], [0.5, 0.7, 1.0]])
    points = normal(3, 2, dtype=torch.float32).requires_grad_()
    descent = torch.optim.Adam([points], lr=0.05)
    for _ in range(300):
        descent.zero_grad()
        point_loss(points, s).backward()
        descent.step()
    torch.testing.assert_close(torch.cdist(points, points), 2 * (1 - s), atol=1e-3, rtol=0)
