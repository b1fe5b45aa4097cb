"""Instance discrimination losses: PSLR's four terms, ISIF, NCE and NPSoftmax.

NCE and NPSoftmax compare with a memory bank.

M. Ye, J. Shen, "Probabilistic Structural Latent Representation for Unsupervised Embedding". Equation numbers are from
this paper. A batch z (2m, l) holds the first views of m images, then their second views in the same order, so the other
view of row i is row i ± m. The paper leaves the extent of the softmax open. Here it covers both views in both
directions, as in the public code of ISIF (M. Ye et al., "Unsupervised Embedding Learning via Invariant and Spreading
Instance Feature").

The paper prints L_z, L_r and L_g as sums (eq. 5, 7, 11) and L_kl with the factor 1/4m (eq. 12). Here all four are
divided by the rows 2m, so that they keep the printed ratio.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, logsigmoid, normalize, smooth_l1_loss

Form = Literal["both", "printed"]

MIN_COMPLEMENT = 1e-6
"""Lower bound of 1 − P, so that log(1 − P) and its gradient stay finite."""
MIN_NORM = 1e-6
"""Smallest divisor when a row of Z is normalized, because ReLU can make a row zero."""


def instance_loss(rows: Tensor, temperature: float, eta: float = 1.0, form: Form = "both", detached: bool = False,
                  similar: Tensor | None = None) -> Tensor:
    """Compute L_z (eq. 3–5): classify each image as its other view and no other.

    Form "both": −(1/2m) Σ_i [S_ii' − log D_i + η Σ_{k≠i,i'} log(1 − e^{S_ik}/D_i)] with S = ZZᵀ/τ and
    D_i = e^{S_ii'} + η Σ_{k≠i,i'} e^{S_ik}. With η = 1 on instance features this is ISIF.
    Form "printed": only the second views are classified, among the m first views. The paper prints a sum; here it is
    divided by m, so that the form does not change the length of a training step.

    Args:
        rows: z (2m, l), unit or zero rows.
        temperature: τ.
        eta: η, at least 1. A smaller value would allow P > 1.
        form: "both" or "printed".
        detached: Stop the gradient to the rows that a row is compared with, as in the public code of ISIF.
        similar: (2m, 2m) bool, pairs that are not negatives of each other.
    """
    half = len(rows) // 2
    others = rows.detach() if detached else rows
    if form == "printed":
        similarities = rows[half:] @ others[:half].mT / temperature
        other_view = torch.arange(half, device=rows.device)
        similar = None if similar is None else similar[half:, :half]
    else:
        similarities = rows @ others.mT / temperature
        other_view = torch.arange(2 * half, device=rows.device).roll(half)
    return adaptable_softmax(similarities, other_view, negatives(similarities, other_view, similar), eta)


def negatives(similarities: Tensor, other_view: Tensor, similar: Tensor | None = None) -> Tensor:
    """Return which columns are negatives of each row, (q, c) bool.

    A row's negatives are all columns except the row itself, its other view, and the columns in `similar`.
    """
    is_negative = torch.ones_like(similarities, dtype=torch.bool).scatter_(1, other_view[:, None], False)
    is_negative.fill_diagonal_(False)
    return is_negative if similar is None else is_negative & ~similar


def adaptable_softmax(similarities: Tensor, positive: Tensor, negative: Tensor, eta: float) -> Tensor:
    """Compute the mean over rows of −log P(positive) − η Σ_negatives log(1 − P).

    P = e^S / (e^{S_positive} + η Σ_negatives e^S). A larger η gives the negatives more weight.

    Args:
        similarities: S (q, c), divided by τ.
        positive: (q,) int64, the column of each row's positive.
        negative: (q, c) bool.
        eta: η.
    """
    own = similarities.gather(1, positive[:, None])
    # −∞ removes a column from both sums: e^−∞ = 0, and log(1 − 0) = 0.
    others = similarities.masked_fill(~negative, -torch.inf)
    # The denominator stays in logarithms, because e^{1/τ} overflows float32 for a small τ. Inside logsumexp the factor
    # η becomes the summand log η.
    log_denominator = torch.logsumexp(torch.cat([own, others + math.log(eta)], dim=1), dim=1, keepdim=True)
    probability = (others - log_denominator).exp().clamp_max(1 - MIN_COMPLEMENT)
    return -(own - log_denominator + eta * torch.log1p(-probability).sum(1, keepdim=True)).mean()


def normalized_graph(adjacency: Tensor) -> Tensor:
    """Compute D^-½ A D^-½ (eq. 2) of A (b, b), whose row sums must be positive."""
    scale = adjacency.sum(1).rsqrt()
    return scale[:, None] * adjacency * scale


def latent(instance: Tensor, weight: Tensor, graph: Tensor | None = None) -> Tensor:
    """Compute the latent rows Z = ReLU(D^-½ A D^-½ X W) (eq. 2), (b, l).

    Each row is divided by max(‖z‖, 1e-6).

    Args:
        instance: X (b, d).
        weight: W (d, l).
        graph: D^-½ A D^-½ (b, b); None for A = I.
    """
    return normalize((graph_layer_input(instance, graph) @ weight).relu(), dim=1, eps=MIN_NORM)


def graph_layer_input(rows: Tensor, graph: Tensor | None) -> Tensor:
    """Return the input of a graph layer: D^-½ A D^-½ X, or X itself for A = I."""
    return rows if graph is None else graph @ rows


def reconstruction_loss(instance: Tensor, reconstructed: Tensor) -> Tensor:
    """Compute L_r = (1/2m) Σ_i Σ_c h(x_ic − x^r_ic) (eq. 7).

    h(t) = ½t² for |t| < 1, else |t| − ½. The paper prints |t| without −½, which would make h jump at |t| = 1.
    """
    return smooth_l1_loss(reconstructed, instance, reduction="sum") / len(instance)


def structure_loss(noisy: Tensor, adjacency: Tensor | None = None) -> Tensor:
    """Compute L_g = (1/2m) Σ_ij (A_ij − sigmoid(z*_iᵀ z*_j))² (eq. 10–11).

    The sum is over the pairs with A_ij > 0. The decoder predicts each edge of the graph from the noisy latent rows, so
    rows joined by an edge must stay similar under noise. With A = I the only edges join each row to itself.

    Args:
        noisy: z* (2m, l), rows of any length.
        adjacency: A (2m, 2m); None for A = I.
    """
    if adjacency is None:
        return (1 - noisy.square().sum(1).sigmoid()).square().mean()
    predicted = (noisy @ noisy.mT).sigmoid()
    return (adjacency - predicted)[adjacency > 0].square().sum() / len(noisy)


def divergence(rows: Tensor, log_sigma: Tensor) -> Tensor:
    """Compute L_kl = −(1/8m²) Σ_i Σ_c (1 + 2 log σ_ic − z_ic² − σ_ic²) (eq. 12 divided by 2m).

    Eq. 12 is the mean over rows of KL(N(z, σ²) ‖ N(0, 1)) ≥ 0. Its left side has a minus sign that the right side
    lacks. The right side is minimized: it keeps σ near 1, so that the noise cannot vanish.
    """
    return -(1 + 2 * log_sigma - rows.square() - (2 * log_sigma).exp()).sum() / (2 * len(rows) ** 2)


def softmax_loss(features: Tensor, bank: Tensor, own: Tensor, temperature: float) -> Tensor:
    """Compute NPSoftmax, the softmax loss over a memory bank.

    It is the mean over the batch of −log(e^{v_iᵀf/τ} / Σ_j e^{v_jᵀf/τ}).

    Args:
        features: f (b, l), unit rows.
        bank: v (n, l), unit rows, one per training image.
        own: (b,) int64, the bank row of each batch image.
        temperature: τ.

    References:
        Z. Wu et al., "Unsupervised Feature Learning via Non-Parametric Instance Discrimination", CVPR 2018.
    """
    return cross_entropy(features @ bank.mT / temperature, own)


def contrast(features: Tensor, bank: Tensor, own: Tensor, noise: Tensor, temperature: float) -> Tensor:
    """Return v_iᵀf/τ of each image's own bank row and q noise rows, (b, 1 + q).

    The own row comes first.

    Args:
        features: f (b, l), unit rows.
        bank: v (n, l), unit rows, one per training image.
        own: (b,) int64, the bank row of each batch image.
        noise: (q,) int64, the bank rows of the noise images.
        temperature: τ.
    """
    own_logit = (features * bank[own]).sum(1, keepdim=True)
    return torch.cat([own_logit, features @ bank[noise].mT], dim=1) / temperature


def log_normalizer(contrasts: Tensor, images: int) -> Tensor:
    """Estimate log Z, (), with Z = n · mean e^{vᵀf/τ}.

    The mean is over the result of `contrast` for the first batch; n is `images`.
    """
    return contrasts.detach().flatten().logsumexp(0) - math.log(contrasts.numel()) + math.log(images)


def nce_loss(contrasts: Tensor, log_z: Tensor, images: int) -> Tensor:
    """Compute NCE, the mean over the batch of −log h(i) − Σ_noise log(1 − h(j)).

    h = p/(p + q/n) is the probability that an image is the true one and not noise, with p(i) = e^{v_iᵀf/τ}/Z. The q
    noise images are drawn uniformly once per batch and may include an image of the batch.

    Args:
        contrasts: (b, 1 + q), the result of `contrast`.
        log_z: (), log Z.
        images: n, the number of training images.

    References:
        Z. Wu et al., CVPR 2018, section 3.2; M. Gutmann, A. Hyvärinen, AISTATS 2010.
    """
    # h = sigmoid(log p − log(q/n)), so everything stays in logarithms and cannot overflow.
    log_odds = contrasts - log_z - math.log((contrasts.shape[1] - 1) / images)
    return -(logsigmoid(log_odds[:, 0]) + logsigmoid(-log_odds[:, 1:]).sum(1)).mean()
