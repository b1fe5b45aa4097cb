"""Similarity by a random walk with restarts on the mutual neighbor graph, as mining on manifolds (MOM) uses it."""

from __future__ import annotations

import numpy as np

from udml_core.arrays import Array
from udml_core.graph.mutual_neighbors import mutual_pairs


def walk_similarity(points: Array, n_neighbors: int = 50, stay: float = 0.99) -> Array:
    """F = (1 − a)(I − aS)⁻¹ (n, n), S = D^−½ W D^−½, W the cosine cubed (at least 0) of mutual neighbors, 0 elsewhere.

    Args:
        points: (n, d) unit rows. stay: a, how rarely the walk starts anew.
    """
    left, right = mutual_pairs(points, n_neighbors).T
    weights = np.zeros((len(points), len(points)))
    weights[left, right] = weights[right, left] = np.einsum("pd,pd->p", points[left], points[right]).clip(0) ** 3
    degrees = weights.sum(1)
    scale = np.divide(1, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
    walk = scale[:, None] * weights * scale
    return (1 - stay) * np.linalg.inv(np.eye(len(points)) - stay * walk)
