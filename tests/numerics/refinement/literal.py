"""k-reciprocal encoding as the paper writes it, with dense matrices and sets."""

from __future__ import annotations

import numpy as np

from udml_core.base.arrays import Array


def k_reciprocal_distances(distances: Array, k1: int, k2: int, weight: float, strict: bool = False) -> Array:
    """Return d* of section 3 for all pairs.

    Args:
        distances: Original distances (n, n), zero on the diagonal. N(p, k) are the k + 1 nearest, p included.
        k1: k₁.
        k2: k₂.
        weight: λ.
        strict: Whether a set must have more than two thirds of its members in common, as in the authors' code. The
            paper asks for at least two thirds.
    """
    count = len(distances)
    order = np.argsort(distances, axis=1, kind="stable")

    def nearest(image: int, k: int) -> set[int]:  # equation 2
        return set(order[image, : k + 1].tolist())

    def reciprocal(image: int, k: int) -> set[int]:  # equation 3
        return {other for other in nearest(image, k) if image in nearest(other, k)}

    def expanded(image: int, k: int) -> set[int]:  # equation 4
        first = reciprocal(image, k)
        result = set(first)
        for other in first:
            second = reciprocal(other, round(k / 2))
            common, needed = 3 * len(first & second), 2 * len(second)
            if common > needed or (common == needed and not strict):
                result |= second
        return result

    encoding = np.zeros((count, count))
    for image in range(count):
        for other in expanded(image, k1):  # equation 7; the rows sum to one as in the authors' code
            encoding[image, other] = np.exp(-distances[image, other])
        encoding[image] /= encoding[image].sum()
    encoding = np.stack([encoding[order[image, :k2]].mean(axis=0) for image in range(count)])  # equation 11
    jaccard = np.empty((count, count))
    for first in range(count):
        for second in range(count):  # equation 10
            overlap = np.minimum(encoding[first], encoding[second]).sum()
            union = np.maximum(encoding[first], encoding[second]).sum()
            jaccard[first, second] = 1 - overlap / union
    return (1 - weight) * jaccard + weight * distances  # equation 12
