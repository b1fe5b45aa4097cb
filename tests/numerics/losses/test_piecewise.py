"""PLM's similarity and losses: loops, laws of the decay, routes of gradients."""

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

from udml_core.base.arrays import Array
from udml_core.numerics.explanations import LinearNeighborhoods
from udml_core.numerics.graph import linear_neighborhoods
from udml_core.numerics.losses.piecewise import (
    SimilarityKind,
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

BATCH, WIDTH, RANK, PROXIES = 14, 6, 2, 5
every_route = pytest.mark.parametrize("similarity_gradient", [False, True])
every_kind = pytest.mark.parametrize("kind", ["linear", "binary"])
every_type = pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-14)])


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def frames(count: int, seed: int, width: int = WIDTH, dimension: int = RANK,
           dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.linalg.qr(normal(count, width, dimension, seed=seed)).Q.to(dtype)


class Batch:
    """Student and teacher embeddings, neighborhoods, and proxies of any length.

    The neighborhoods are the teacher's.
    """

    def __init__(self, seed: int = 0, dtype: torch.dtype = torch.float64, proxies: int = PROXIES) -> None:
        self.embeddings = normalize(normal(BATCH, WIDTH, seed=seed)).to(dtype)
        self.teacher = normalize(self.embeddings.double() + 0.1 * normal(BATCH, WIDTH, seed=seed + 1)).to(dtype)
        self.neighborhoods = linear_neighborhoods(self.teacher, 5, RANK)
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
    x, P, y, Q = (tensor.detach().double().numpy() for tensor in (points, basis, others, other_basis))
    return np.array([[(slow_directed(x[i], y[j], Q[j], n_alpha, n_beta)
                       + slow_directed(y[j], x[i], P[i], n_alpha, n_beta)) / 2
                      for j in range(len(y))] for i in range(len(x))]).reshape(len(x), len(y))


def slow_losses(batch: Batch, among: Array, to_proxies: Array, scale: float) -> tuple[float, float, float]:
    """Compute eq. 6, 7 and 8 one term at a time."""
    tensors = (batch.embeddings, batch.proxies, batch.directions, batch.basis)
    f, rho, psi, basis = (tensor.detach().double().numpy() for tensor in tensors)
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
def test_similarities_equal_plain_loops(dtype: torch.dtype, tolerance: float, seed: int, n_alpha: float,
                                        n_beta: float) -> None:
    """Squared distances agree to the dtype's precision, and s to its square root.

    The reason is that o is a square root.
    """
    batch = Batch(seed, dtype)
    x, P, rho, psi = batch.teacher, batch.basis, batch.proxies, batch.directions
    across, along = split(x, rho, psi)
    parts = np.array([[slow_split(a, b, c) for b, c in zip(rho.double().numpy(), psi.double().numpy(), strict=True)]
                      for a in x.double().numpy()])
    np.testing.assert_allclose(torch.stack([across, along], 2).numpy() ** 2, parts**2, atol=10 * tolerance)
    directed = [[slow_directed(a, b, c, n_alpha, n_beta)
                 for b, c in zip(rho.double().numpy(), psi.double().numpy(), strict=True)] for a in x.double().numpy()]
    np.testing.assert_allclose(directed_similarity(x, rho, psi, n_alpha, n_beta).numpy(), directed, atol=tolerance**0.5)
    s = similarity(x, P, n_alpha, n_beta)
    assert s.dtype == dtype
    np.testing.assert_allclose(s.numpy(), slow_cross(x, P, x, P, n_alpha, n_beta), atol=tolerance**0.5)
    torch.testing.assert_close(cross_similarity(x, P, x, P, n_alpha, n_beta), s)
    unit = rho / rho.norm(dim=1, keepdim=True)
    np.testing.assert_allclose(proxy_similarity(x, P, rho, psi, n_alpha, n_beta).numpy(),
                               slow_cross(x, P, unit, psi, n_alpha, n_beta), atol=tolerance**0.5)


def test_the_similarity_of_a_point_in_the_plane() -> None:
    """With the neighborhood along the x axis, s′ = 1.4⁻⁴ · 1.6^-½.

    The point (0.6, 0.8) is 0.8 across and 0.6 along.
    """
    origin, point = torch.zeros(1, 2, dtype=torch.float64), torch.tensor([[0.6, 0.8]], dtype=torch.float64)
    basis = torch.tensor([[[1.0], [0.0]]], dtype=torch.float64)
    across, along = split(point, origin, basis)
    assert (float(across), float(along)) == pytest.approx((0.8, 0.6))
    assert float(directed_similarity(point, origin, basis)) == pytest.approx(1.4**-4 * 1.6**-0.5)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), count=st.integers(2, 12), width=st.integers(1, 8), dimension=st.integers(1, 3),
       n_alpha=st.floats(0.5, 6), n_beta=st.floats(0.1, 3), exponent=st.integers(-4, 0))
def test_similarity_is_symmetric_positive_and_one_only_at_distance_zero(
        seed: int, count: int, width: int, dimension: int, n_alpha: float, n_beta: float, exponent: int) -> None:
    """The points include duplicates with different neighborhoods.

    Distances go down to 10⁻⁴.
    """
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
def test_similarity_falls_faster_across_exactly_if_n_alpha_is_twice_n_beta_or_more(n_beta: float, ratio: float) -> None:
    """For Nα ≥ 2Nβ it falls faster across at every distance in (0, 2].

    Otherwise this fails at small distances, even if Nα > Nβ.
    """
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
def test_a_step_across_lowers_similarity_more_than_a_step_along(n_alpha: float, n_beta: float, faster: bool) -> None:
    basis = frames(1, 0, WIDTH, WIDTH)[0]
    tangent, normal_vector = basis[None, :, :RANK], basis[:, RANK]
    center = normal(1, WIDTH)
    for length in (0.01, 0.5, 2.0):
        along = directed_similarity(center + length * tangent[0, :, 1], center, tangent, n_alpha, n_beta)
        across = directed_similarity(center + length * normal_vector, center, tangent, n_alpha, n_beta)
        if faster or length == 0.01:
            assert bool(across < along) == faster


def test_close_points_keep_their_distance_in_float32() -> None:
    """The two unit rows are at distance 10⁻⁴.

    A float32 Gram matrix could give any distance up to 10⁻³.
    """
    point = normalize(normal(1, 128))
    across = torch.linalg.qr(torch.cat([point.mT, normal(128, 3, seed=1)], dim=1)).Q[:, 1:]
    other = (point + 1e-4 * across[:, :1].mT).float()
    o, p = split(other, point.float(), across[None, :, 1:].float())
    assert float(o) == pytest.approx(1e-4, rel=0.01)
    assert float(p) == pytest.approx(0, abs=1e-6)


@every_kind
@every_type
@pytest.mark.parametrize("seed", range(3))
def test_losses_equal_plain_loops(kind: SimilarityKind, dtype: torch.dtype, tolerance: float, seed: int) -> None:
    batch = Batch(seed, dtype)
    n_alpha, n_beta, scale = 3.0, 0.8, 1.7
    loss = piecewise_loss(batch.embeddings, batch.teacher, batch.neighborhoods, batch.proxies, batch.directions,
                          n_alpha=n_alpha, n_beta=n_beta, scale=scale, kind=kind)
    if kind == "linear":
        unit = normalize(batch.proxies)
        among = slow_cross(batch.teacher, batch.basis, batch.teacher, batch.basis, n_alpha, n_beta)
        to_proxies = slow_cross(batch.teacher, batch.basis, unit, batch.directions, n_alpha, n_beta)
    else:
        among = binary_similarity(batch.neighborhoods.neighbors, batch.neighborhoods.members).numpy()
        to_proxies = binary_proxy_similarity(batch.teacher, batch.proxies, 5).numpy()
    expected = np.array(slow_losses(batch, among, to_proxies, scale)) / BATCH**2
    np.testing.assert_allclose([float(loss.point), float(loss.proxy), float(loss.neighborhood)], expected,
                               rtol=tolerance**0.5)
    assert float(loss.total) == pytest.approx(expected.sum(), rel=tolerance**0.5)
    assert loss.total.dtype == dtype


@pytest.mark.parametrize("seed", range(4))
def test_binary_similarities_equal_plain_loops(seed: int) -> None:
    batch = Batch(seed)
    neighbors, members = (tensor.tolist() for tensor in (batch.neighborhoods.neighbors, batch.neighborhoods.members))
    sets = [{j for j, is_member in zip(*row, strict=True) if is_member} for row in zip(neighbors, members, strict=True)]
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
def test_gradients_equal_finite_differences(similarity_gradient: bool, kind: SimilarityKind) -> None:
    batch = Batch(1)
    leaves = tuple(tensor.clone().requires_grad_() for tensor in (batch.embeddings, batch.proxies, batch.directions))
    fixed = Batch(1)  # without gradients through s, finite differences must not change s either

    def losses(embeddings: Tensor, proxies: Tensor, directions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if similarity_gradient or kind == "binary":
            loss = piecewise_loss(embeddings, batch.teacher, batch.neighborhoods, proxies, directions, kind=kind,
                                  similarity_gradient=similarity_gradient)
            return loss.point, loss.proxy, loss.neighborhood
        s = proxy_similarity(batch.teacher, batch.basis, fixed.proxies, fixed.directions)
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
def test_each_loss_has_gradients_only_for_its_own_parameters(similarity_gradient: bool, kind: SimilarityKind) -> None:
    batch = Batch(2)
    leaves = {"embeddings": batch.embeddings, "teacher": batch.teacher, "basis": batch.basis.clone(),
              "proxies": batch.proxies, "directions": batch.directions}
    for leaf in leaves.values():
        leaf.requires_grad_()
    neighborhoods = replace(batch.neighborhoods, basis=leaves["basis"])
    loss = piecewise_loss(batch.embeddings, batch.teacher, neighborhoods, batch.proxies, batch.directions, kind=kind,
                          similarity_gradient=similarity_gradient)
    through_s = similarity_gradient and kind == "linear"
    expected = {"point": {"embeddings"},
                "proxy": {"embeddings", "proxies"} | ({"directions"} if through_s else set()),
                "neighborhood": {"directions"} | ({"proxies"} if through_s else set())}
    for part, learners in expected.items():
        gradients = torch.autograd.grad(getattr(loss, part), list(leaves.values()), retain_graph=True,
                                        allow_unused=True)
        learning = {name for name, gradient in zip(leaves, gradients, strict=True)
                    if gradient is not None and bool(gradient.any())}
        assert learning == learners


@every_route
@every_kind
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_are_finite_at_distance_zero(similarity_gradient: bool, kind: SimilarityKind,
                                               dtype: torch.dtype) -> None:
    """Embeddings and proxies coincide.

    Directions lie inside a neighborhood or are orthogonal to it.
    """
    batch = Batch(3, dtype)
    embeddings = batch.embeddings.clone()
    embeddings[1] = embeddings[0]
    teacher = embeddings.clone()
    basis = batch.basis.clone()
    proxies, directions = batch.proxies.clone(), batch.directions.clone()
    proxies[0], proxies[2] = 2 * embeddings[0], proxies[1]
    basis[0] = torch.eye(WIDTH, RANK, dtype=dtype)
    directions[0], directions[1] = basis[0], torch.eye(WIDTH, dtype=dtype)[:, RANK:2 * RANK]
    leaves = [tensor.requires_grad_() for tensor in (embeddings, proxies, directions)]
    neighborhoods = replace(batch.neighborhoods, basis=basis)
    piecewise_loss(embeddings, teacher, neighborhoods, proxies, directions, kind=kind,
                   similarity_gradient=similarity_gradient).total.backward()
    for leaf in leaves:
        assert leaf.grad is not None
        assert leaf.grad.isfinite().all()
        assert float(leaf.grad.abs().amax()) < 10


@every_kind
def test_without_proxies_only_the_point_loss_remains(kind: SimilarityKind) -> None:
    batch = Batch(4, proxies=0)
    loss = piecewise_loss(batch.embeddings, batch.teacher, batch.neighborhoods, batch.proxies, batch.directions,
                          kind=kind)
    assert float(loss.proxy) == float(loss.neighborhood) == 0
    assert float(loss.total) == float(loss.point) > 0


def test_losses_do_not_depend_on_proxy_lengths_or_the_choice_of_basis() -> None:
    batch = Batch(5)
    rotation = torch.linalg.qr(normal(RANK, RANK, seed=9)).Q
    neighborhoods = LinearNeighborhoods(**{**vars(batch.neighborhoods), "basis": batch.basis @ rotation})
    before = piecewise_loss(batch.embeddings, batch.teacher, batch.neighborhoods, batch.proxies, batch.directions)
    after = piecewise_loss(batch.embeddings, batch.teacher, neighborhoods, 7 * batch.proxies, batch.directions)
    torch.testing.assert_close(torch.stack([before.point, before.proxy, before.neighborhood]),
                               torch.stack([after.point, after.proxy, after.neighborhood]))


def test_the_point_loss_leaves_out_the_distance_of_a_point_to_itself() -> None:
    """With s = 0 the two distances √2 remain of eq. 6.

    A point has no target distance to itself.
    """
    assert point_loss(torch.eye(2), torch.zeros(2, 2)).item() == pytest.approx(2 * (2 - math.sqrt(2)) ** 2)


def test_gradient_descent_realizes_the_target_distances() -> None:
    """Three points with given similarities converge to a triangle with sides δ(1−s)."""
    s = torch.tensor([[1.0, 0.6, 0.5], [0.6, 1.0, 0.7], [0.5, 0.7, 1.0]])
    points = normal(3, 2, dtype=torch.float32).requires_grad_()
    descent = torch.optim.Adam([points], lr=0.05)
    for _ in range(300):
        descent.zero_grad()
        point_loss(points, s).backward()
        descent.step()
    torch.testing.assert_close(torch.cdist(points, points), 2 * (1 - s), atol=1e-3, rtol=0)
