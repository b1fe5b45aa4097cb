"""Softmax losses over all views of a batch: SimCLR's NT-Xent and the supervised contrastive loss.

A batch z (2m, l) holds the first views of m images, then their second views in the same order.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Sum = Literal["out", "in"]


def nt_xent(rows: Tensor, temperature: float) -> Tensor:
    """Compute NT-Xent, the normalized temperature-scaled cross-entropy.

    It is the mean over all 2m views i, with other view i', of −log(e^{z_iᵀz_i'/τ} / Σ_{k≠i} e^{z_iᵀz_k/τ}).

    Args:
        rows: z (2m, l), unit rows, the second views below the first.
        temperature: τ.

    References:
        T. Chen et al., "A Simple Framework for Contrastive Learning of Visual Representations", ICML 2020, eq. 1.
    """
    images = torch.arange(len(rows) // 2, device=rows.device)
    return supervised_contrastive(rows, images.repeat(2), temperature)


def supervised_contrastive(rows: Tensor, labels: Tensor, temperature: float, form: Sum = "out") -> Tensor:
    """Compute the supervised contrastive loss.

    With p_ik = e^{z_iᵀz_k/τ} / Σ_{a≠i} e^{z_iᵀz_a/τ} and the positives P(i), all other views with the label of i, it is
    the mean over all views i of −(1/|P(i)|) Σ_{k∈P(i)} log p_ik (form "out") or of −log((1/|P(i)|) Σ_{k∈P(i)} p_ik)
    (form "in"). The paper prints the sums over i.

    Args:
        rows: z (b, l), unit rows.
        labels: (b,) int64; every label must occur twice.
        temperature: τ.
        form: Whether the sum over positives is outside or inside the logarithm.

    References:
        P. Khosla et al., "Supervised Contrastive Learning", NeurIPS 2020, eq. 2 and 3.
    """
    itself = torch.eye(len(rows), dtype=torch.bool, device=rows.device)
    logits = (rows @ rows.mT / temperature).masked_fill(itself, -torch.inf)
    log_share = logits - logits.logsumexp(1, keepdim=True)
    positive = (labels[:, None] == labels) & ~itself
    counts = positive.sum(1)
    if form == "in":
        return (counts.log() - log_share.masked_fill(~positive, -torch.inf).logsumexp(1)).mean()
    return -(log_share.masked_fill(~positive, 0.0).sum(1) / counts).mean()
