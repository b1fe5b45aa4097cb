"""Affinities propagated from few labels through a neighbor graph.

W. Liu, S. Ma, D. Tao, J. Liu, P. Liu, "Semi-Supervised Sparse Metric Learning using Alternating Linearization
Optimization", KDD 2010, as used by U. K. Dutta, M. Harandi, C. Chandra Sekhar, "Semi-Supervised Metric Learning: A Deep
Resurrection".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udml_core.base.arrays import Array


@dataclass(frozen=True)
class Propagation:
    """Affinities at the neighbor pairs before and after propagation.

    Attributes:
        before: (n, k), W0 at each point's neighbors.
        after: (n, k), the symmetrized W at each point's neighbors.
        reach: (n, c), the affinity (1−γ)Σ_a G_ia of each point to the labeled points a of each class. This is the
            probability that a random walk from the point, which ends with probability 1−γ before each step, ends at
            a label of that class.
        classes: (c,), the distinct labels in ascending order.
    """

    before: Array
    after: Array
    reach: Array
    classes: Array


def propagate_affinities(neighbors: Array, labels: Array, gamma: float = 0.99) -> Array:
    """Return the symmetrized W at the neighbor pairs, (n, k) float64; see `propagate`."""
    return propagate(neighbors, labels, gamma).after


def propagate(neighbors: Array, labels: Array, gamma: float = 0.99) -> Propagation:
    """Compute W = (W′ + W′ᵀ)/2 with W′ = (1−γ)(I − γQ)⁻¹W0 at neighbor pairs.

    The entries are exact; the others are not computed. W0 is 1 on the diagonal and between two labels of one class, −1
    between labels of different classes, and 0 elsewhere. Q_ij = 1/k if j is a neighbor of i.

    Args:
        neighbors: (n, k) int, the neighbors of each point, without the point itself.
        labels: (n,) int, −1 for unlabeled points.
        gamma: γ, the probability that the walk continues before each step.

    Raises:
        ValueError: γ is not between 0 and 1 (both excluded).
    """
    from scipy import sparse  # here and below: scipy.sparse slows the start of the command line

    from udml_core.numerics.graph.selected_inverse import selected_inverse

    if not 0 < gamma < 1:
        raise ValueError(f"gamma must be between 0 and 1 (both excluded), got {gamma}.")
    count, k = neighbors.shape
    walk = sparse.csr_array((np.full(count * k, gamma / k), neighbors.ravel(), np.arange(0, count * k + 1, k)),
                            (count, count))
    classes = np.unique(labels[labels >= 0])
    indicator = (labels[:, None] == classes).astype(np.float64)
    # Let G = (I − γQ)⁻¹. W0 differs from the identity only in the labeled block. So a column j of G·W0 is
    #   the column j of G                                                  if j is unlabeled,
    #   Σ_{a of j's class} G_ia − Σ_{a of other classes} G_ia              if j is labeled.
    # It takes G at the neighbor pairs (both directions) and G's labeled columns summed by class, never all of G.
    inverse, class_sums = selected_inverse(sparse.eye_array(count) - walk, indicator)
    reach = (1 - gamma) * class_sums
    contrast = 2 * reach - reach.sum(1, keepdims=True)  # own class minus all other classes
    class_number = np.searchsorted(classes, labels)

    def directed(rows: Array, columns: Array) -> Array:
        """Return W′ at the given entries."""
        values = (1 - gamma) * np.asarray(inverse[rows, columns])
        labeled = labels[columns] >= 0
        values[labeled] = contrast[rows[labeled], class_number[columns[labeled]]]
        return values

    rows, columns = np.repeat(np.arange(count), k), neighbors.ravel()
    after = (directed(rows, columns) + directed(columns, rows)) / 2
    both_labeled = (labels[rows] >= 0) & (labels[columns] >= 0)
    before = np.where(both_labeled, np.where(labels[rows] == labels[columns], 1.0, -1.0), 0.0)
    return Propagation(before.reshape(count, k), after.reshape(count, k), reach, classes)
