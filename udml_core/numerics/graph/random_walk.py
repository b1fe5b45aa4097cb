"""Similarity by a random walk with restarts on the mutual neighbor graph.

Mining on manifolds (MOM) uses it.
"""

from __future__ import annotations

import numpy as np

from udml_core.base.arrays import Array
from udml_core.numerics.graph.mutual_neighbors import mutual_pairs


def walk_similarity(points: Array, n_neighbors: int = 50, stay: float = 0.99) -> Array:
    """Return F = (1 − a)(I − aS)⁻¹, (n, n), with S = D^−½ W D^−½.

    W_ij is the cubed cosine of mutual neighbors, with negative cosines set to 0, and 0 for all other pairs.

    Args:
        points: (n, d), unit rows.
        n_neighbors: k of the mutual neighbor graph.
        stay: a, the probability that the walk continues instead of restarting.
    """
    left, right = mutual_pairs(points, n_neighbors).T
    weights = np.zeros((len(points), len(points)))
    weights[left, right] = weights[right, left] = np.einsum("pd,pd->p", points[left], points[right]).clip(0) ** 3
    degrees = weights.sum(1)
    # A point without mutual neighbors has degree 0. Its row of S stays 0.
    scale = np.divide(1, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
    transition = scale[:, None] * weights * scale
    return (1 - stay) * np.linalg.inv(np.eye(len(points)) - stay * transition)
