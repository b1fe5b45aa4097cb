"""Slow references: linear neighborhoods (PLM section 3.2), dense propagation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udml_core.base.arrays import Array
from udml_core.numerics.graph import Through


@dataclass
class Naive:
    """The linear neighborhood of one point.

    Attributes:
        neighbors: (k,) int, nearest first.
        members: (k,) bool.
        worst: (k,), the lowest quality in each candidate's test.
        basis: (d, m).
    """

    neighbors: Array
    members: Array
    worst: Array
    basis: Array


def naive_neighborhoods(points: Array, k: int, m: int, threshold: float, full: bool = False,
                        through: Through = "point") -> list[Naive]:
    """Fit every neighborhood with one singular value decomposition per test.

    The precision is that of the points.

    Args:
        points: (n, d).
        k: Number of candidates.
        m: Dimension of the subspace.
        threshold: T.
        full: Let NumPy complete every decomposition to (d, d), which is NumPy's default.
        through: What a subspace passes through. The steps are the paper's in both readings: begin with the point and
            its m − 1 nearest neighbors, and test the m-th.
    """
    neighborhoods = []
    for i in range(len(points)):
        distances = np.linalg.norm(points - points[i], axis=1)
        distances[i] = np.inf
        neighbors = np.argsort(distances, kind="stable")[:k]
        vectors = points[[i, *neighbors]]  # row 0 is the point, row j its j-th neighbor
        if through == "point":
            vectors = vectors - points[i]
        chosen = list(range(m))
        worst = np.ones(k)
        for j in range(m, k + 1):
            tested = [*chosen, j]
            basis = np.linalg.svd(vectors[tested], full_matrices=full)[2][:m].T
            qualities = []
            for s in tested:
                squared = (vectors[s] ** 2).sum()
                qualities.append(((basis.T @ vectors[s]) ** 2).sum() / squared if squared > 0 else 1.0)
            worst[j - 1] = min(qualities)
            if worst[j - 1] >= threshold:
                chosen = tested
        basis = np.linalg.svd(vectors[chosen], full_matrices=full)[2][:m].T
        neighborhoods.append(Naive(neighbors, np.isin(np.arange(1, k + 1), chosen), worst, basis))
    return neighborhoods


def propagated(neighbors: Array, labels: Array, gamma: float) -> Array:
    """Compute affinities densely: the symmetrized (1−γ)(I − γQ)⁻¹W0, (n, n)."""
    count, k = neighbors.shape
    walk = np.zeros((count, count))
    walk[np.arange(count)[:, None], neighbors] = 1 / k
    labeled = np.flatnonzero(labels >= 0)
    initial = np.eye(count)
    initial[np.ix_(labeled, labeled)] = np.where(labels[labeled][:, None] == labels[labeled], 1.0, -1.0)
    directed = (1 - gamma) * np.linalg.solve(np.eye(count) - gamma * walk, initial)
    return (directed + directed.T) / 2
