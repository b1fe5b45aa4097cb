"""Affinities that spread from few labels through a neighbor graph.

W. Liu, S. Ma, D. Tao, J. Liu, P. Liu, "Semi-Supervised Sparse Metric Learning using Alternating Linearization
Optimization", KDD 2010, as U. K. Dutta, M. Harandi, C. Chandra Sekhar, "Semi-Supervised Metric Learning: A Deep
Resurrection", use it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from udml_core.arrays import Array
from udml_core.graph.selected_inverse import selected_inverse


@dataclass(frozen=True)
class Propagation:
    """What labels say about a neighbor graph.

    before, after (n, k): W0 and the symmetrized W at each point's neighbors.
    reach (n, c): the affinity (1−γ)Σ_a G_ia of each point to the labeled points a of each class. It is the probability
    that a walk along the graph, which ends with probability 1−γ before each step, ends at a label of that class.
    classes (c,): the labels, ascending.
    """

    before: Array
    after: Array
    reach: Array
    classes: Array


def propagate_affinities(neighbors: Array, labels: Array, gamma: float = 0.99) -> Array:
    """The symmetrized W at the neighbor pairs, (n, k) float64; see `propagate`."""
    return propagate(neighbors, labels, gamma).after


def propagate(neighbors: Array, labels: Array, gamma: float = 0.99) -> Propagation:
    """W = (W′ + W′ᵀ)/2, W′ = (1−γ)(I − γQ)⁻¹W0, exactly, at the neighbor pairs.

    W0 is 1 on the diagonal and between two labels of one class, −1 between two labels of different classes, 0
    elsewhere; Q_ij = 1/k where j is a neighbor of i. With G = (I − γQ)⁻¹ a column of GW0 is that of G where j is
    unlabeled, and Σ_{a of j's class} G_ia − Σ_{a of others} G_ia where it is labeled. So G is needed at the neighbor
    pairs, in both directions, and its labeled columns summed by class; nothing else is computed.

    Args:
        neighbors: (n, k) int, self excluded. labels: (n,) int, −1 where there is none. gamma: γ.

    Raises:
        ValueError: γ is not between 0 and 1, both excluded.
    """
    if not 0 < gamma < 1:
        raise ValueError(f"gamma must be between 0 and 1, both excluded, got {gamma}")
    count, k = neighbors.shape
    walk = sparse.csr_array((np.full(count * k, gamma / k), neighbors.ravel(), np.arange(0, count * k + 1, k)),
                            (count, count))
    classes = np.unique(labels[labels >= 0])
    member = (labels[:, None] == classes).astype(np.float64)
    inverse, sums = selected_inverse(sparse.eye_array(count) - walk, member)
    reach = (1 - gamma) * sums
    contrast = 2 * reach - reach.sum(1, keepdims=True)
    place = np.searchsorted(classes, labels)

    def directed(rows: Array, columns: Array) -> Array:
        """W′ at some entries."""
        values = (1 - gamma) * np.asarray(inverse[rows, columns])
        known = labels[columns] >= 0
        values[known] = contrast[rows[known], place[columns[known]]]
        return values

    rows, columns = np.repeat(np.arange(count), k), neighbors.ravel()
    after = (directed(rows, columns) + directed(columns, rows)) / 2
    both = (labels[rows] >= 0) & (labels[columns] >= 0)
    before = np.where(both, np.where(labels[rows] == labels[columns], 1.0, -1.0), 0.0)
    return Propagation(before.reshape(count, k), after.reshape(count, k), reach, classes)
