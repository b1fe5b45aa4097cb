"""Linear neighborhoods one point and one singular value decomposition at a time: PLM section 3.2 as a loop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udml_core.arrays import Array


@dataclass
class Naive:
    """neighbors (k,), members (k,) bool, worst (k,) and basis (d, m) of one point."""

    neighbors: Array
    members: Array
    worst: Array
    basis: Array


def naive_neighborhoods(points: Array, k: int, m: int, threshold: float, full: bool = False) -> list[Naive]:
    """In the points' own precision. `full`: let NumPy complete every decomposition to (d, d), as it does unasked."""
    found = []
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
                whole = (offsets[s] ** 2).sum()
                qualities.append(((basis.T @ offsets[s]) ** 2).sum() / whole if whole > 0 else 1.0)
            worst[j] = min(qualities)
            if worst[j] >= threshold:
                chosen = tested
        basis = np.linalg.svd(offsets[chosen], full_matrices=full)[2][:m].T
        found.append(Naive(neighbors, np.isin(np.arange(k), chosen), worst, basis))
    return found


def propagated(neighbors: Array, labels: Array, gamma: float) -> Array:
    """Semi-supervised affinities by the dense closed form: the symmetrized (1−γ)(I − γQ)⁻¹W0, (n, n)."""
    count, k = neighbors.shape
    walk = np.zeros((count, count))
    walk[np.arange(count)[:, None], neighbors] = 1 / k
    known = np.flatnonzero(labels >= 0)
    start = np.eye(count)
    start[np.ix_(known, known)] = np.where(labels[known][:, None] == labels[known], 1.0, -1.0)
    spread = (1 - gamma) * np.linalg.solve(np.eye(count) - gamma * walk, start)
    return (spread + spread.T) / 2
