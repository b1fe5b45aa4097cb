"""PLM's similarity along and across linear neighborhoods, and its three losses.

S. Bhatnagar, N. Ahuja, "Piecewise-Linear Manifolds for Deep Metric Learning". Equation numbers are from this paper.
Rows are points (n, d). A basis (n, d, m) holds orthonormal directions of the linear neighborhood at each point. Three
points are open in the paper and decided here: s′(j,i) uses P_i (the text repeats P_j), proxies are scaled to length 1,
and the sums are divided by |B|².
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import normalize

from udml_core.numerics.explanations import LinearNeighborhoods

SimilarityKind = Literal["linear", "binary"]

TINY = 1e-14
"""Squared distances below this share of the points' squared lengths count as zero: float32 inputs resolve no less."""


def split(points: Tensor, centers: Tensor, basis: Tensor) -> tuple[Tensor, Tensor]:
    """Split each point's distance from each center into o and p, (n, c) each.

    o is across the neighborhood and p is along it. With v = y_i − y_j: p = ‖P_jᵀv‖ and o = √max(‖v‖² − p², 0).

    Args:
        points: (n, d).
        centers: (c, d).
        basis: (c, d, m), P_j at each center.
    """
    # P_jᵀv is computed as P_jᵀy_i − P_jᵀy_j, (n, c, m), so that no array (n, c, d) is needed. ‖v‖² comes from a matrix
    # product, which loses half of the digits for close points and is therefore in float64.
    squared = _squared_distances(points, centers)
    projected_centers = torch.einsum("cd,cdm->cm", centers, basis)
    projected = (torch.einsum("nd,cdm->ncm", points, basis) - projected_centers).square().sum(2).to(squared.dtype)
    along = torch.minimum(projected, squared)  # rounding must not make the part along larger than the whole
    return _root(squared - along).to(points.dtype), _root(along).to(points.dtype)


def decay(across: Tensor, along: Tensor, n_alpha: float = 4.0, n_beta: float = 0.5) -> tuple[Tensor, Tensor]:
    """Compute α = (1+o/2)^−Nα (eq. 3) and β = (1+p)^−Nβ (eq. 4).

    The similarity should fall faster across the neighborhood than along it. This holds at every distance in (0, 2]
    exactly if Nα ≥ 2Nβ, because o is halved. The paper's condition Nα > Nβ is not sufficient.

    Args:
        across: o.
        along: p.
        n_alpha: Nα.
        n_beta: Nβ.
    """
    return (1 + across / 2) ** -n_alpha, (1 + along) ** -n_beta


def directed_similarity(points: Tensor, centers: Tensor, basis: Tensor, n_alpha: float = 4.0,
                        n_beta: float = 0.5) -> Tensor:
    """Compute s′ = αβ (eq. 2) of each point, (n, c).

    It is measured with the neighborhoods at the centers.
    """
    alpha, beta = decay(*split(points, centers, basis), n_alpha, n_beta)
    return alpha * beta


def similarity(points: Tensor, basis: Tensor, n_alpha: float = 4.0, n_beta: float = 0.5) -> Tensor:
    """Compute s (eq. 5) among the points, (n, n).

    It is symmetric, in (0, 1], and 1 only at distance zero.
    """
    directed = directed_similarity(points, points, basis, n_alpha, n_beta)
    return (directed + directed.mT) / 2


def cross_similarity(points: Tensor, basis: Tensor, others: Tensor, other_basis: Tensor, n_alpha: float = 4.0,
                     n_beta: float = 0.5) -> Tensor:
    """Compute s (eq. 5) between points (n, d) and others (c, d), (n, c).

    Each has a basis of its own.
    """
    forward = directed_similarity(points, others, other_basis, n_alpha, n_beta)
    backward = directed_similarity(others, points, basis, n_alpha, n_beta)
    return (forward + backward.mT) / 2


def proxy_similarity(points: Tensor, basis: Tensor, proxies: Tensor, directions: Tensor, n_alpha: float = 4.0,
                     n_beta: float = 0.5) -> Tensor:
    """Compute s, (n, c), between points and proxies ρ (c, d) of any length.

    The proxies have directions Ψ (c, d, m).
    """
    return cross_similarity(points, basis, normalize(proxies), directions, n_alpha, n_beta)


def binary_similarity(neighbors: Tensor, members: Tensor) -> Tensor:
    """Compute the binary similarity of ablation 2, (n, n).

    It is 1 if either point is a member of the other's neighborhood, and for a point with itself; otherwise 0.
    """
    count = len(neighbors)
    is_member = torch.zeros(count, count, dtype=torch.bool, device=neighbors.device).scatter_(1, neighbors, members)
    is_member.fill_diagonal_(True)
    return (is_member | is_member.mT).float()


def binary_proxy_similarity(points: Tensor, proxies: Tensor, n_neighbors: int) -> Tensor:
    """Return 1 if a proxy is among a point's k nearest, else 0, (n, c) (ablation 2).

    The k nearest are among the proxies and the other points.
    """
    count = len(points)
    squared = _squared_distances(points, torch.cat([points, normalize(proxies)])).fill_diagonal_(torch.inf)
    nearest = squared.topk(n_neighbors, largest=False).indices
    return torch.zeros_like(squared, dtype=torch.bool).scatter_(1, nearest, True)[:, count:].float()


def point_loss(embeddings: Tensor, similarities: Tensor, scale: float = 2.0) -> Tensor:
    """Compute Σ_i Σ_{j≠i} (δ(1−s(i,j)) − ‖f_i−f_j‖)² (eq. 6), with δ the `scale`."""
    error = scale * (1 - similarities) - _distances(embeddings, embeddings)
    own = torch.eye(len(embeddings), dtype=torch.bool, device=error.device)
    return error.masked_fill(own, 0).square().sum()


def proxy_loss(embeddings: Tensor, proxies: Tensor, similarities: Tensor, scale: float = 2.0) -> Tensor:
    """Compute Σ_i Σ_j (δ(1−s(i,ρ_j)) − ‖f_i−ρ_j/‖ρ_j‖‖)² (eq. 7), with δ the `scale`."""
    return (scale * (1 - similarities) - _distances(embeddings, normalize(proxies))).square().sum()


def neighborhood_loss(basis: Tensor, directions: Tensor, similarities: Tensor) -> Tensor:
    """Compute Σ_i Σ_j Σ_k (s(i,ρ_j) − cos θ_kji)² (eq. 8).

    cos θ_kji = ‖P_iᵀψ_kj‖/‖ψ_kj‖.
    """
    projected = torch.einsum("ndp,cdk->ncpk", basis, normalize(directions, dim=1))
    cosine = _root(projected.square().sum(2))
    return (similarities[:, :, None] - cosine).square().sum()


@dataclass(frozen=True)
class PiecewiseLoss:
    """The three terms of eq. 9, each already divided by |B|².

    Attributes:
        point: L_point (eq. 6).
        proxy: L_proxy (eq. 7).
        neighborhood: L_neigh (eq. 8).
    """

    point: Tensor
    proxy: Tensor
    neighborhood: Tensor

    @property
    def total(self) -> Tensor:
        """The total loss L (eq. 9)."""
        return self.point + self.proxy + self.neighborhood


def piecewise_loss(embeddings: Tensor, teacher: Tensor, neighborhoods: LinearNeighborhoods, proxies: Tensor,
                   directions: Tensor, *, n_alpha: float = 4.0, n_beta: float = 0.5, scale: float = 2.0,
                   kind: SimilarityKind = "linear", similarity_gradient: bool = False) -> PiecewiseLoss:
    """Compute the losses of a batch (eq. 6–9), with gradients as in the paper.

    The network learns from the point and proxy losses, the proxies from the proxy loss, and their directions from the
    neighborhood loss. No gradient reaches the teacher or the points' neighborhoods.

    Args:
        embeddings: f_θ (B, d), unit rows, both views of every image.
        teacher: f_φ (B, d), unit rows in the same order.
        neighborhoods: The linear neighborhoods among the teacher's rows.
        proxies: ρ (c, d) of any length; c = 0 leaves only the point loss.
        directions: Ψ (c, d, m), orthonormal. The caller must keep them orthonormal after each step.
        n_alpha: Nα.
        n_beta: Nβ.
        scale: δ.
        kind: "linear", or "binary" for similarities of 0 and 1 (ablation 2).
        similarity_gradient: Let proxies and directions also learn through s(i, ρ_j). The paper leaves this open.
    """
    teacher, basis = teacher.detach(), neighborhoods.basis.detach()
    if kind == "binary":
        among = binary_similarity(neighborhoods.neighbors, neighborhoods.members)
        to_proxies = binary_proxy_similarity(teacher, proxies.detach(), neighborhoods.neighbors.shape[1])
    else:
        # The targets δ(1−s) of the losses come from the teacher and stay fixed unless the caller asks for gradients.
        rho, psi = (proxies, directions) if similarity_gradient else (proxies.detach(), directions.detach())
        among = similarity(teacher, basis, n_alpha, n_beta)
        to_proxies = proxy_similarity(teacher, basis, rho, psi, n_alpha, n_beta)
    pairs = len(embeddings) ** 2
    return PiecewiseLoss(point_loss(embeddings, among, scale) / pairs,
                         proxy_loss(embeddings, proxies, to_proxies, scale) / pairs,
                         neighborhood_loss(basis, directions, to_proxies) / pairs)


def _squared_distances(points: Tensor, centers: Tensor) -> Tensor:
    """Compute squared distances, (n, c) float64, exactly zero between equal rows."""
    points, centers = points.double(), centers.double()
    lengths = points.square().sum(1)[:, None] + centers.square().sum(1)
    squared = lengths - 2 * points @ centers.mT
    return torch.where(squared > TINY * lengths, squared, 0)


def _distances(points: Tensor, centers: Tensor) -> Tensor:
    return _root(_squared_distances(points, centers)).to(points.dtype)


def _root(squared: Tensor) -> Tensor:
    """Compute √ with the gradient 0 at 0."""
    positive = squared > TINY
    # The derivative of √ is infinite at 0, and autograd would multiply it by 0 to NaN. So √1 is computed there instead.
    return torch.where(positive, torch.where(positive, squared, 1).sqrt(), 0)
