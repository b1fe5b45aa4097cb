"""Measures without labels: trustworthiness, continuity and the effective rank."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from udml_core.base.arrays import Array, smaller_product
from udml_core.numerics.evaluation.ranking import Distances, row_chunks

DISTORTION_NEIGHBORS = 12


def trustworthiness(space: Array, embedding: Array, k: int = DISTORTION_NEIGHBORS) -> Array:
    """Compute the trustworthiness of each point, (n,).

    It measures whether the point's neighbors in the embedding are neighbors in space. The value is 1 − 2/(k(2n−3k−1)) ·
    Σ_{j among the k nearest in the embedding} max(0, rank of j in the space − k). Its mean over the points equals
    scikit-learn's `trustworthiness`.

    Args:
        space: (n, D), the original vectors.
        embedding: (n, d).
        k: Number of neighbors.

    Raises:
        ValueError: k is not below n/2.
    """
    return distortion(space, embedding, k)[0]


def distortion(space: Array, embedding: Array, k: int = DISTORTION_NEIGHBORS,
               report: Callable[[float], None] = lambda _: None) -> tuple[Array, Array]:
    """Compute trustworthiness and continuity of each point, (n,) each.

    Continuity is trustworthiness with space and embedding exchanged: whether neighbors in the space are neighbors in
    the embedding.

    Args:
        space: (n, D), the original vectors.
        embedding: (n, d).
        k: Number of neighbors.
        report: Called with the finished share.

    Raises:
        ValueError: k is not below n/2.
    """
    count = len(space)
    if not 1 <= k < count / 2:
        raise ValueError(f"Trustworthiness needs 1 ≤ k < n/2, got k={k} for n={count}.")
    in_space, in_embedding = Distances(space), Distances(embedding)
    excess = np.zeros((2, count))
    for rows in row_chunks(count, count):
        space_keys, embedding_keys = in_space.keys(rows), in_embedding.keys(rows)
        excess[0, rows] = _rank_excess(space_keys, embedding_keys, k)
        excess[1, rows] = _rank_excess(embedding_keys, space_keys, k)
        report((int(rows[-1]) + 1) / count)
    trust, continuity = 1.0 - excess * 2.0 / (k * (2.0 * count - 3.0 * k - 1.0))
    return trust, continuity


def distortion_neighbors(count: int) -> int:
    """Return the number of neighbors for distortion: 12, or fewer if n is below 25.

    n is `count`.
    """
    return min(DISTORTION_NEIGHBORS, (count - 1) // 2)


def _rank_excess(keys: Tensor, other_keys: Tensor, k: int) -> Tensor:
    """Sum max(0, rank by `keys` − k) over the k nearest by `other_keys`, (q,).

    The keys are (q, n).
    """
    neighbor_keys = keys.gather(1, torch.topk(other_keys, k, dim=1, largest=False).indices)
    # Counting smaller keys k times costs O(kn) per row, less than sorting the whole row for all ranks.
    ranks = torch.stack([(keys <= column[:, None]).sum(1) for column in neighbor_keys.T])
    return (ranks - k).clamp_min(0).sum(0)


def effective_rank(embeddings: Array) -> float:
    """Compute the effective rank exp(−Σ p log p), between 1 and d.

    1 is a line; d means equal variance in all directions. p are the singular values of the centered embedding (n, d),
    divided by their sum.
    """
    points = np.asarray(embeddings)
    products = smaller_product(points, points.mean(axis=0, dtype=np.float64))
    values = np.sqrt(np.maximum(np.linalg.eigvalsh(products), 0.0))
    total = values.sum()
    if total == 0:
        return 1.0
    shares = values[values > total * 1e-12] / total
    return float(np.exp(-(shares * np.log(shares)).sum()))


def same_distances(points: Array) -> Array:
    """Return points (n, n) with the distances of fewer points than dimensions (n, d)."""
    values, vectors = np.linalg.eigh(smaller_product(points, points.mean(axis=0, dtype=np.float64)))
    turned: Array = (vectors * np.sqrt(np.maximum(values, 0.0))).astype(np.float32)
    return turned
