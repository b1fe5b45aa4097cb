"""Slow reference implementations: linear neighborhoods (PLM section 3.2) as a loop, and dense propagation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udml_core.arrays import Array


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


def naive_neighborhoods(points: Array, k: int, m: int, threshold: float, full: bool = False) -> list[Naive]:
    """Fit every neighborhood in the precision of the points, with one singular value decomposition per test.

    Args:
        points: (n, d).
        k: Number of candidates.
        m: Dimension of the subspace.
        threshold: T.
        full: Let NumPy complete every decomposition to (d, d), which is NumPy's default.
    """
    neighborhoods = []
    for i in range(len(points)):
        distances = np.linalg.norm(points - points[i], axis=1)
        distances[i] = np.inf
        neighbors = np.argsort(distances, kind="stable")[:k]
        offsets = points[neighbors] - points[i]
        chosen = list(range(m - 1))
        worst = np.ones(k)
        for j in range(m - 1, k):
            tested = [*chosen, j]
            basis = np.linalg.svd(offsets[tested], full_matrices=full)[2][:m].T
            qualities = []
            for s in tested:
                squared = (offsets[s] ** 2).sum()
                qualities.append(((basis.T @ offsets[s]) ** 2).sum() / squared if squared > 0 else 1.0)
            worst[j] = min(qualities)
            if worst[j] >= threshold:
                chosen = tested
        basis = np.linalg.svd(offsets[chosen], full_matrices=full)[2][:m].T
        neighborhoods.append(Naive(neighbors, np.isin(np.arange(k), chosen), worst, basis))
    return neighborhoods


def propagated(neighbors: Array, labels: Array, gamma: float) -> Array:
    """Compute semi-supervised affinities densely: the symmetrized (1−γ)(I − γQ)⁻¹W0, (n, n)."""
    count, k = neighbors.shape
    walk = np.zeros((count, count))
    walk[np.arange(count)[:, None], neighbors] = 1 / k
    labeled = np.flatnonzero(labels >= 0)
    initial = np.eye(count)
    initial[np.ix_(labeled, labeled)] = np.where(labels[labeled][:, None] == labels[labeled], 1.0, -1.0)
    directed = (1 - gamma) * np.linalg.solve(np.eye(count) - gamma * walk, initial)
    return (directed + directed.T) / 2
