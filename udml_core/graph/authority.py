"""Authority ascent shift: clusters as trees that climb a random walk's stationary distribution.

M. Cho, K. M. Lee, "Mode-seeking on graphs via random walks", CVPR 2012; equations are RPML's (3)–(4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import validate_data

from udml_core.arrays import Array
from udml_core.explanations import Clusters
from udml_core.neighbors import nearest


@dataclass
class AuthorityGraph:
    """The cached affinities of a kNN graph, from which clusters are re-formed for any ε and γ.

    Only edges that climb (ω_j > ω_i) can be followed. They are kept row by row, so the parent of a
    point is the best of its edges with ψ > ε. An edge behind a better one of at least its own ψ is never chosen: what
    is left without those is a short staircase per row, and moving ε costs a comparison for each of its steps.

    authority (n,): ω, the stationary distribution. rows, columns (e,) int64 and affinity (e,): the climbing edges.
    rescaled: use n·ω in the exponent of ψ, which gives γ an effect (the papers' ω makes it inert).
    """

    authority: Array
    rows: Array
    columns: Array
    affinity: Array
    rescaled: bool = False
    _staircase: tuple[float, Array, Array, Array] | None = field(default=None, repr=False)

    @staticmethod
    def build(points: Array, n_neighbors: int, rescaled: bool = False) -> AuthorityGraph:
        """W_ij = exp(−d²/2σ²) over the kNN edges of either direction; σ is the median neighbor distance."""
        squared, neighbors = nearest(points, n_neighbors)
        count = len(points)
        low, high, distance = _undirected_edges(neighbors, squared)
        spread = 2.0 * float(np.median(squared)) or 1.0
        affinity = np.exp(distance / -spread)
        degree = np.bincount(low, affinity, count) + np.bincount(high, affinity, count)
        authority = degree / degree.sum()
        gain = authority[high] - authority[low]
        climbing = gain != 0
        rows, columns = np.where(gain > 0, low, high)[climbing], np.where(gain > 0, high, low)[climbing]
        order = scipy.sparse.csr_array((np.arange(len(rows)), (rows, columns)), shape=(count, count)).data
        return AuthorityGraph(authority, rows[order], columns[order], affinity[climbing][order], rescaled)

    def relevancy(self, gamma: float) -> Array:
        """ψ (eq. 3) of each climbing edge: d_i P_ij exp(−γ(ω_j−ω_i)²) = W_ij exp(…), (e,)."""
        scale = len(self.authority) if self.rescaled else 1
        gain = scale * (self.authority[self.columns] - self.authority[self.rows])
        return self.affinity * np.exp(-gamma * gain**2)

    def clusters(self, epsilon: float = 0.65, gamma: float = 100.0) -> Clusters:
        """The clusters at ε and γ: `labels` (n,), `modes` (c,), `parents` (n,), int64, numbered as their modes are.

        parent(i) = argmax over {j : ψ(i,j) > ε} of P_ij (ω_j − ω_i), lowest j on ties; i itself where none climbs
        (eq. 4). Paths are followed by pointer jumping, in log n rounds.
        """
        rows, columns, psi = self._stairs(gamma)
        count = len(self.authority)
        parents = np.arange(count)
        relevant = np.flatnonzero(psi > epsilon)[::-1]
        parents[rows[relevant]] = columns[relevant]  # written backwards, so that a row's first relevant edge remains
        roots = parents
        while True:
            further = roots[roots]
            if np.array_equal(further, roots):
                break
            roots = further
        is_mode = parents == np.arange(count)
        labels = (np.cumsum(is_mode) - 1)[roots]
        return Clusters(labels=labels, modes=np.flatnonzero(is_mode), parents=parents)

    def _stairs(self, gamma: float) -> tuple[Array, Array, Array]:
        """Rows, columns and ψ of the edges that are first for some ε; kept for the γ last asked.

        Each round takes every row's best ascent and goes on with the row's edges of higher ψ: about as many rounds as
        the logarithm of the degree, over ever fewer edges.
        """
        if self._staircase is None or self._staircase[0] != gamma:
            rows, columns, psi = self.rows, self.columns, self.relevancy(gamma)
            ascent = self.affinity * (self.authority[columns] - self.authority[rows])
            level = np.zeros(len(self.authority))
            steps = []
            while len(rows):
                starts = np.flatnonzero(np.r_[True, rows[1:] != rows[:-1]])
                best = np.repeat(np.maximum.reduceat(ascent, starts), np.diff(np.r_[starts, len(rows)]))
                hits = np.flatnonzero(ascent == best)
                hits = hits[np.r_[True, rows[hits][1:] != rows[hits][:-1]]]  # the lowest column of equals
                steps.append((rows[hits], columns[hits], psi[hits]))
                level[rows[hits]] = psi[hits]
                higher = psi > level[rows]
                rows, columns, psi, ascent = rows[higher], columns[higher], psi[higher], ascent[higher]
            empty = np.zeros(0, np.int64)
            first = [(empty, empty, np.zeros(0)), *steps]
            all_rows, all_columns, all_psi = (np.concatenate(part) for part in zip(*first, strict=True))
            self._staircase = (gamma, all_rows, all_columns, all_psi)
        return self._staircase[1:]


def _undirected_edges(neighbors: Array, squared: Array) -> tuple[Array, Array, Array]:
    """Each edge of either direction once: lower end, higher end, squared distance (e,), by lower then higher end."""
    count, k = neighbors.shape
    rows = np.repeat(np.arange(count), k)
    columns = neighbors.ravel()
    key = np.minimum(rows, columns)
    key *= count
    key += np.maximum(rows, columns, out=rows)
    order = np.argsort(key)
    key = np.take(key, order, out=rows)
    distance = squared.ravel()[order]
    starts = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    closest = np.minimum.reduceat(distance, starts)  # max(W, Wᵀ); the two directions may differ in rounding
    low, high = np.divmod(key[starts], count)
    return low, high, closest.astype(np.float64)


class AuthorityShift(ClusterMixin, BaseEstimator):
    """Clustering by authority ascent on a kNN graph; the number of clusters is found, not given.

    Args:
        n_neighbors: k of the graph.
        epsilon: ε, the least relevancy of an edge that may be followed. Lower merges, higher shatters.
        gamma: γ, how much a steep rise in authority lowers relevancy.
        rescaled: multiply ω by n inside ψ; without it γ hardly matters.

    Attributes:
        labels_ (n,), modes_ (c,), parents_ (n,): see `udml_core.explanations.Clusters`.
        graph_: the cached `AuthorityGraph`; `graph_.clusters(epsilon, gamma)` re-forms the clusters.

    References:
        Cho and Lee, CVPR 2012; RPML eq. 3–4. Affinity, σ and symmetrization are open there: W = exp(−d²/2σ²), one σ,
        the median neighbor distance, and max(W, Wᵀ), so ω is the degree's share exactly.
    """

    def __init__(self, n_neighbors: int = 50, epsilon: float = 0.65, gamma: float = 100.0,
                 rescaled: bool = False) -> None:
        self.n_neighbors = n_neighbors
        self.epsilon = epsilon
        self.gamma = gamma
        self.rescaled = rescaled

    def fit(self, X: Any, y: Any = None) -> AuthorityShift:
        """Build the graph of the points X (n, d) and cluster it.

        Raises:
            ValueError: fewer than n_neighbors + 1 points.
        """
        points = validate_data(self, X, dtype=np.float32, ensure_min_samples=2)
        self.graph_ = AuthorityGraph.build(points, self.n_neighbors, self.rescaled)
        clusters = self.graph_.clusters(self.epsilon, self.gamma)
        self.labels_, self.modes_, self.parents_ = clusters.labels, clusters.modes, clusters.parents
        return self
