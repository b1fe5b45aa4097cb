"""Losses that tell every image from the others: the adaptable softmax of PSLR and ISIF, PSLR's variational and
structural parts, and NCE and NPSoftmax on a memory bank.

M. Ye, J. Shen, "Probabilistic Structural Latent Representation for Unsupervised Embedding"; equation numbers are that
paper's. Two-view rows z (2m, l) hold the first views of m images above the second ones, so row i's other view is row
i ± m. Open in the paper and decided here: the softmax runs over both views and in both directions, as the public code
of ISIF (M. Ye et al., "Unsupervised Embedding Learning via Invariant and Spreading Instance Feature") has it.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, logsigmoid, normalize, smooth_l1_loss

Form = Literal["both", "printed"]

LEAST = 1e-6
"""What 1 − P is kept above, so that log(1 − P) and its gradient stay finite."""
SHORTEST = 1e-6
"""What a row of Z is divided by at least: ReLU can make it zero."""


def instance_loss(rows: Tensor, temperature: float, eta: float = 1.0, form: Form = "both", detached: bool = False,
                  alike: Tensor | None = None) -> Tensor:
    """L_z (eq. 3–5): an image is to be told by its other view, and not to be taken for any other.

    Both: −(1/2m) Σ_i [S_ii' − log D_i + η Σ_{k≠i,i'} log(1 − e^{S_ik}/D_i)], S = ZZᵀ/τ,
    D_i = e^{S_ii'} + η Σ_{k≠i,i'} e^{S_ik}. With η = 1, on instance features, this is ISIF.
    Printed: from the second views to the first ones alone, k ≠ i among the m; here divided by m, which the paper does
    not, so that the form does not change the step's length.

    Args:
        rows: z (2m, l), unit or zero rows.
        eta: at least 1; below, P could exceed 1.
        detached: no gradient reaches the rows that a row is compared with, as in the public code of ISIF.
        alike: (2m, 2m) bool, pairs that are no negatives of each other.
    """
    half = len(rows) // 2
    others = rows.detach() if detached else rows
    if form == "printed":
        similarities = rows[half:] @ others[:half].mT / temperature
        other_view = torch.arange(half, device=rows.device)
        alike = None if alike is None else alike[half:, :half]
    else:
        similarities = rows @ others.mT / temperature
        other_view = torch.arange(2 * half, device=rows.device).roll(half)
    return adaptable_softmax(similarities, other_view, negatives(similarities, other_view, alike), eta)


def negatives(similarities: Tensor, other_view: Tensor, alike: Tensor | None = None) -> Tensor:
    """Which columns are other images than the row's, (q, c) bool: neither itself, nor its other view, nor alike."""
    found = torch.ones_like(similarities, dtype=torch.bool).scatter_(1, other_view[:, None], False)
    found.fill_diagonal_(False)
    return found if alike is None else found & ~alike


def adaptable_softmax(similarities: Tensor, positive: Tensor, negative: Tensor, eta: float) -> Tensor:
    """Mean over rows of −log P(positive) − η Σ_negatives log(1 − P), P = e^S / (e^{S_positive} + η Σ_negatives e^S).

    Args:
        similarities: S (q, c), divided by τ. positive: (q,) columns. negative: (q, c) bool.
    """
    own = similarities.gather(1, positive[:, None])
    others = similarities.masked_fill(~negative, -torch.inf)
    denominator = torch.logsumexp(torch.cat([own, others + math.log(eta)], dim=1), dim=1, keepdim=True)
    taken = (others - denominator).exp().clamp_max(1 - LEAST)
    return -(own - denominator + eta * torch.log1p(-taken).sum(1, keepdim=True)).mean()


def normalized_graph(adjacency: Tensor) -> Tensor:
    """D^-½ A D^-½ (eq. 2) of A (b, b), whose rows do not sum to zero."""
    scale = adjacency.sum(1).rsqrt()
    return scale[:, None] * adjacency * scale


def latent(instance: Tensor, weight: Tensor, graph: Tensor | None = None) -> Tensor:
    """Z = ReLU(D^-½ A D^-½ X W) (eq. 2) with rows z/max(‖z‖, 1e-6), (b, l).

    Args:
        instance: X (b, d). weight: W (d, l). graph: D^-½ A D^-½ (b, b); None for A = I.
    """
    return normalize((mixed(instance, graph) @ weight).relu(), dim=1, eps=SHORTEST)


def mixed(rows: Tensor, graph: Tensor | None) -> Tensor:
    """What a graph layer multiplies its weights with: D^-½ A D^-½ X, or X itself for A = I."""
    return rows if graph is None else graph @ rows


def reconstruction_loss(instance: Tensor, reconstructed: Tensor) -> Tensor:
    """L_r = (1/2m) Σ_i Σ_c h(x_ic − x^r_ic), h(t) = ½t² where |t| < 1, else |t| − ½ (eq. 7, printed without the −½)."""
    return smooth_l1_loss(reconstructed, instance, reduction="sum") / len(instance)


def structure_loss(noisy: Tensor, adjacency: Tensor | None = None) -> Tensor:
    """L_g: the mean over A_ij > 0 of (A_ij − sigmoid(z*_iᵀ z*_j))² (eq. 10–11); A = I holds each row with itself alone.

    Args:
        noisy: z* (2m, l), of any length. adjacency: A (2m, 2m); None for A = I.
    """
    if adjacency is None:
        return (1 - noisy.square().sum(1).sigmoid()).square().mean()
    found = (noisy @ noisy.mT).sigmoid()
    edges = adjacency > 0
    return (adjacency - found)[edges].square().mean()


def divergence(rows: Tensor, log_sigma: Tensor) -> Tensor:
    """L_kl = −(1/4m) Σ_i Σ_c (1 + 2 log σ_ic − z_ic² − σ_ic²) (eq. 12): KL(N(z, σ²) ‖ N(0, 1)) ≥ 0, a row's mean.

    The paper's left side has a minus that its right side lacks: it is minimized.
    """
    return -(1 + 2 * log_sigma - rows.square() - (2 * log_sigma).exp()).sum() / (2 * len(rows))


def softmax_loss(features: Tensor, bank: Tensor, own: Tensor, temperature: float) -> Tensor:
    """NPSoftmax: the batch's mean of −log(e^{v_iᵀf/τ} / Σ_j e^{v_jᵀf/τ}) over a memory bank.

    Args:
        features: f (b, l), unit rows. bank: v (n, l), unit rows. own: (b,) rows of the bank.

    References:
        Z. Wu et al., "Unsupervised Feature Learning via Non-Parametric Instance Discrimination", CVPR 2018.
    """
    return cross_entropy(features @ bank.mT / temperature, own)


def contrast(features: Tensor, bank: Tensor, own: Tensor, noise: Tensor, temperature: float) -> Tensor:
    """v_iᵀf/τ of each row's own entry of the bank, then of the noise, (b, 1 + q)."""
    mine = (features * bank[own]).sum(1, keepdim=True)
    return torch.cat([mine, features @ bank[noise].mT], dim=1) / temperature


def log_normalizer(contrasts: Tensor, images: int) -> Tensor:
    """log Z, Z = n · the mean of e^{vᵀf/τ} over what `contrast` gave for the first batch, ()."""
    return contrasts.detach().flatten().logsumexp(0) - math.log(contrasts.numel()) + math.log(images)


def nce_loss(contrasts: Tensor, log_z: Tensor, images: int) -> Tensor:
    """NCE: the batch's mean of −log h(i) − Σ_noise log(1 − h(j)), h = p/(p + q/n), p(i) = e^{v_iᵀf/τ}/Z.

    The q noise entries are drawn once for a batch, uniformly; a row's own entry may be among them.

    Args:
        contrasts: what `contrast` gives, (b, 1 + q). log_z: (). images: n.

    References:
        Z. Wu et al., CVPR 2018, section 3.2; M. Gutmann, A. Hyvärinen, AISTATS 2010.
    """
    odds = contrasts - log_z - math.log((contrasts.shape[1] - 1) / images)
    return -(logsigmoid(odds[:, 0]) + logsigmoid(-odds[:, 1:]).sum(1)).mean()
