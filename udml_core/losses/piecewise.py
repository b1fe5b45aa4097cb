"""PLM's similarity along and across linear neighborhoods, and its three losses.

S. Bhatnagar, N. Ahuja, "Piecewise-Linear Manifolds for Deep Metric Learning"; equation numbers are that paper's. Rows
are points (n, d), and a basis (n, d, m) holds the orthonormal directions of the flat at each of them. Open in the paper
and decided here: s′(j,i) uses P_i (the text repeats P_j); proxies count with length 1; the sums are divided by |B|².
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import normalize

from udml_core.explanations import LinearNeighborhoods

Kind = Literal["linear", "binary"]

TINY = 1e-14
"""Squared distances below this share of the points' own squared lengths are zero: what float32 resolves."""


def split(points: Tensor, centers: Tensor, basis: Tensor) -> tuple[Tensor, Tensor]:
    """How far each point lies from each center across its flat and along it: o and p, (n, c) both.

    v = y_i − y_j, p = ‖P_jᵀv‖, o = √max(‖v‖² − p², 0). No (n, c, d) appears: ‖v‖² comes from a product in float64, as
    in float32 near points would lose half their digits, and P_jᵀv from (n, c, m).
    """
    squared = _squared_distances(points, centers)
    here = torch.einsum("cd,cdm->cm", centers, basis)
    held = (torch.einsum("nd,cdm->ncm", points, basis) - here).square().sum(2).to(squared.dtype)
    along = torch.minimum(held, squared)
    return _root(squared - along).to(points.dtype), _root(along).to(points.dtype)


def decay(across: Tensor, along: Tensor, n_alpha: float = 4.0, n_beta: float = 0.5) -> tuple[Tensor, Tensor]:
    """α = (1+o/2)^−Nα (eq. 3) and β = (1+p)^−Nβ (eq. 4).

    At equal distance α is the lower one, all the way to 2, exactly when Nα ≥ 2Nβ; the paper's Nα > Nβ is not enough.
    """
    return (1 + across / 2) ** -n_alpha, (1 + along) ** -n_beta


def directed_similarity(points: Tensor, centers: Tensor, basis: Tensor, n_alpha: float = 4.0,
                        n_beta: float = 0.5) -> Tensor:
    """s′ = αβ (eq. 2) of each point as the flats at the centers see it, (n, c)."""
    alpha, beta = decay(*split(points, centers, basis), n_alpha, n_beta)
    return alpha * beta


def similarity(points: Tensor, basis: Tensor, n_alpha: float = 4.0, n_beta: float = 0.5) -> Tensor:
    """s (eq. 5) among the points, (n, n): symmetric, in (0, 1], 1 only at distance zero."""
    directed = directed_similarity(points, points, basis, n_alpha, n_beta)
    return (directed + directed.mT) / 2


def cross_similarity(points: Tensor, basis: Tensor, others: Tensor, other_basis: Tensor, n_alpha: float = 4.0,
                     n_beta: float = 0.5) -> Tensor:
    """s (eq. 5) between the points and others that have flats of their own, (n, c)."""
    there = directed_similarity(points, others, other_basis, n_alpha, n_beta)
    back = directed_similarity(others, points, basis, n_alpha, n_beta)
    return (there + back.mT) / 2


def proxy_similarity(points: Tensor, basis: Tensor, proxies: Tensor, directions: Tensor, n_alpha: float = 4.0,
                     n_beta: float = 0.5) -> Tensor:
    """s between points and proxies ρ (c, d) of any length with directions Ψ (c, d, m), (n, c) (section 3.5)."""
    return cross_similarity(points, basis, normalize(proxies), directions, n_alpha, n_beta)


def binary_similarity(neighbors: Tensor, members: Tensor) -> Tensor:
    """Ablation 2, (n, n): 1 where one is a member of the other's neighborhood, and for each point itself; else 0."""
    count = len(neighbors)
    admits = torch.zeros(count, count, dtype=torch.bool, device=neighbors.device).scatter_(1, neighbors, members)
    admits.fill_diagonal_(True)
    return (admits | admits.mT).float()


def binary_proxy_similarity(points: Tensor, proxies: Tensor, n_neighbors: int) -> Tensor:
    """Ablation 2, (n, c): 1 where a proxy is among the point's k nearest, of all proxies and other points; else 0."""
    count = len(points)
    squared = _squared_distances(points, torch.cat([points, normalize(proxies)])).fill_diagonal_(torch.inf)
    nearest = squared.topk(n_neighbors, largest=False).indices
    return torch.zeros_like(squared, dtype=torch.bool).scatter_(1, nearest, True)[:, count:].float()


def point_loss(embeddings: Tensor, similarities: Tensor, scale: float = 2.0) -> Tensor:
    """Σ_i Σ_{j≠i} (δ(1−s(i,j)) − ‖f_i−f_j‖)² (eq. 6)."""
    error = scale * (1 - similarities) - _distances(embeddings, embeddings)
    own = torch.eye(len(embeddings), dtype=torch.bool, device=error.device)
    return error.masked_fill(own, 0).square().sum()


def proxy_loss(embeddings: Tensor, proxies: Tensor, similarities: Tensor, scale: float = 2.0) -> Tensor:
    """Σ_i Σ_j (δ(1−s(i,ρ_j)) − ‖f_i−ρ_j/‖ρ_j‖‖)² (eq. 7)."""
    return (scale * (1 - similarities) - _distances(embeddings, normalize(proxies))).square().sum()


def neighborhood_loss(basis: Tensor, directions: Tensor, similarities: Tensor) -> Tensor:
    """Σ_i Σ_j Σ_k (s(i,ρ_j) − cos θ_kji)², cos θ_kji = ‖P_iᵀψ_kj‖/‖ψ_kj‖ (eq. 8)."""
    within = torch.einsum("ndp,cdk->ncpk", basis, normalize(directions, dim=1))
    cosine = _root(within.square().sum(2))
    return (similarities[:, :, None] - cosine).square().sum()


@dataclass(frozen=True)
class PiecewiseLoss:
    """The three parts of eq. 9, each divided by |B|² already."""

    point: Tensor
    proxy: Tensor
    neighborhood: Tensor

    @property
    def total(self) -> Tensor:
        """L (eq. 9)."""
        return self.point + self.proxy + self.neighborhood


def piecewise_loss(embeddings: Tensor, teacher: Tensor, neighborhoods: LinearNeighborhoods, proxies: Tensor,
                   directions: Tensor, *, n_alpha: float = 4.0, n_beta: float = 0.5, scale: float = 2.0,
                   kind: Kind = "linear", similarity_gradient: bool = False) -> PiecewiseLoss:
    """The losses of a batch (eq. 6–9), with the paper's routes for the gradient.

    The network learns from the first two, the proxies' places from the second and their directions from the third;
    nothing reaches the teacher or the points' own flats.

    Args:
        embeddings: f_θ (B, d), unit rows, both views of every image.
        teacher: f_φ (B, d), unit rows in the same order.
        neighborhoods: of the teacher's rows, among themselves.
        proxies: ρ (c, d) of any length; c = 0 leaves the first loss alone.
        directions: Ψ (c, d, m), orthonormal. Their own step must keep them so.
        n_alpha, n_beta: Nα and Nβ. scale: δ.
        kind: "binary" gives similarities of 0 and 1 (ablation 2).
        similarity_gradient: let proxies and directions also learn through s(i, ρ_j). The paper leaves that open.
    """
    teacher, basis = teacher.detach(), neighborhoods.basis.detach()
    if kind == "binary":
        among = binary_similarity(neighborhoods.neighbors, neighborhoods.members)
        to_proxies = binary_proxy_similarity(teacher, proxies.detach(), neighborhoods.neighbors.shape[1])
    else:
        places, flats = (proxies, directions) if similarity_gradient else (proxies.detach(), directions.detach())
        among = similarity(teacher, basis, n_alpha, n_beta)
        to_proxies = proxy_similarity(teacher, basis, places, flats, n_alpha, n_beta)
    pairs = len(embeddings) ** 2
    return PiecewiseLoss(point_loss(embeddings, among, scale) / pairs,
                         proxy_loss(embeddings, proxies, to_proxies, scale) / pairs,
                         neighborhood_loss(basis, directions, to_proxies) / pairs)


def _squared_distances(points: Tensor, centers: Tensor) -> Tensor:
    """(n, c) float64, exactly zero between equal rows."""
    points, centers = points.double(), centers.double()
    lengths = points.square().sum(1)[:, None] + centers.square().sum(1)
    squared = lengths - 2 * points @ centers.mT
    return torch.where(squared > TINY * lengths, squared, 0)


def _distances(points: Tensor, centers: Tensor) -> Tensor:
    return _root(_squared_distances(points, centers)).to(points.dtype)


def _root(squared: Tensor) -> Tensor:
    """√ with the gradient 0 at 0: the root is taken of 1 there, since 0 · ∞ would be NaN."""
    positive = squared > TINY
    return torch.where(positive, torch.where(positive, squared, 1).sqrt(), 0)
