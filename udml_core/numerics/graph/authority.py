"""Authority ascent shift: cluster trees that climb a stationary distribution.

The distribution is that of a random walk.

M. Cho, K. M. Lee, "Mode-seeking on graphs via random walks", CVPR 2012. Equation numbers are RPML's (3)–(4).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from udml_core.base.arrays import Array
from udml_core.numerics.explanations import Clusters
from udml_core.numerics.neighbors import Report, graph_neighbors, ignore_progress


@dataclass(frozen=True)
class _Staircase:
    """The edges that can be a row's best edge for some ε, at one γ.

    Attributes:
        gamma: The γ that ψ was computed for.
        rows: (s,) int64, the lower end of each edge; a row's edges follow in the order of falling ascent.
        columns: (s,) int64, the upper end of each edge.
        psi: (s,), ψ of each edge; it rises along a row's edges.
    """

    gamma: float
    rows: Array
    columns: Array
    psi: Array


@dataclass
class AuthorityGraph:
    """The affinities of a kNN graph.

    Clusters are formed from them for any ε and γ. Only an edge that climbs (ω_j > ω_i) can lead to a parent, so only
    these edges are stored, sorted by row. The parent of a point is its edge of steepest ascent among the edges with ψ >
    ε. An edge is never chosen if a steeper edge of its row has at least the same ψ. Removing these edges leaves a short
    staircase per row, and a new ε costs one comparison per step of the staircase.

    Attributes:
        authority: (n,), ω, the stationary distribution.
        rows: (e,) int64, the lower end of each climbing edge.
        columns: (e,) int64, the upper end of each climbing edge.
        affinity: (e,), W of each climbing edge.
        rescaled: Use n·ω in the exponent of ψ. This gives γ an effect; with the papers' ω it has almost none.
    """

    authority: Array
    rows: Array
    columns: Array
    affinity: Array
    rescaled: bool = False
    _staircase: _Staircase | None = field(default=None, repr=False)

    @staticmethod
    def build(points: Array, n_neighbors: int, rescaled: bool = False,
              report: Report = ignore_progress) -> AuthorityGraph:
        """Build the graph of points (n, d).

        W_ij = exp(−d²/2σ²) on the kNN edges of either direction. σ is the median neighbor distance. Above 200,000
        points the neighbors are approximate; see `graph_neighbors`.
        """
        return AuthorityGraph.of_neighbors(*graph_neighbors(points, n_neighbors, report), rescaled)

    @staticmethod
    def of_neighbors(squared: Array, neighbors: Array, rescaled: bool = False) -> AuthorityGraph:
        """Build the graph of squared distances (n, k) and indices (n, k) of the nearest neighbors; see `build`."""
        import scipy.sparse  # at first use, because it slows the start of the command line

        count = len(neighbors)
        low, high, distance = _undirected_edges(neighbors, squared)
        spread = 2.0 * float(np.median(squared)) or 1.0
        affinity = np.exp(distance / -spread)
        # A random walk on an undirected graph visits each node in proportion to its degree, so ω needs no iteration.
        degree = np.bincount(low, affinity, count) + np.bincount(high, affinity, count)
        authority = degree / degree.sum()
        gain = authority[high] - authority[low]
        climbing = gain != 0
        rows, columns = np.where(gain > 0, low, high)[climbing], np.where(gain > 0, high, low)[climbing]
        # The conversion to CSR sorts the edge numbers by row, then column, and is faster than a lexicographic sort.
        order = scipy.sparse.csr_array((np.arange(len(rows)), (rows, columns)), shape=(count, count)).data
        return AuthorityGraph(authority, rows[order], columns[order], affinity[climbing][order], rescaled)

    def relevancy(self, gamma: float) -> Array:
        """Return ψ (eq. 3) of each climbing edge, (e,).

        ψ = d_i P_ij exp(−γ(ω_j−ω_i)²) = W_ij exp(−γ(ω_j−ω_i)²).
        """
        scale = len(self.authority) if self.rescaled else 1
        gain = scale * (self.authority[self.columns] - self.authority[self.rows])
        return self.affinity * np.exp(-gamma * gain**2)

    def clusters(self, epsilon: float = 0.65, gamma: float = 100.0) -> Clusters:
        """Form the clusters at ε and γ.

        parent(i) = argmax over {j : ψ(i,j) > ε} of P_ij (ω_j − ω_i), with the lowest j on ties. A point without such
        an edge is its own parent (eq. 4).

        Returns:
            The clusters, numbered in the order of their modes: `labels` (n,), `modes` (c,), `parents` (n,), int64.
        """
        staircase = self._staircase_at(gamma)
        count = len(self.authority)
        parents = np.arange(count)
        # Of several assignments to one index NumPy keeps the last. Written in reverse order, the steepest edge stays.
        relevant = np.flatnonzero(staircase.psi > epsilon)[::-1]
        parents[staircase.rows[relevant]] = staircase.columns[relevant]
        # Pointer jumping: each round doubles the length of path that a pointer spans, so log n rounds reach the roots.
        # Authority rises strictly along a path; there is no cycle and the loop ends.
        roots = parents
        while True:
            further = roots[roots]
            if np.array_equal(further, roots):
                break
            roots = further
        is_mode = parents == np.arange(count)
        labels = (np.cumsum(is_mode) - 1)[roots]
        return Clusters(labels=labels, modes=np.flatnonzero(is_mode), parents=parents)

    def steps(self, gamma: float = 100.0) -> tuple[Array, Array, Array]:
        """Return the edges that can lead to a parent at some ε, for a viewer that forms the clusters itself.

        Returns:
            The lower ends, the upper ends and ψ, (s,) each; a row's parent is its first edge with ψ > ε.
        """
        staircase = self._staircase_at(gamma)
        return staircase.rows, staircase.columns, staircase.psi

    def _staircase_at(self, gamma: float) -> _Staircase:
        """Return the staircase at γ, from the cache if the last call had the same γ.

        Browser sessions share one graph, and another session can replace the cache at any time. The cache is
        therefore read once, and the caller gets the local object, whose γ and arrays belong together.
        """
        staircase = self._staircase
        if staircase is None or staircase.gamma != gamma:
            staircase = self._build_staircase(gamma)
            self._staircase = staircase
        return staircase

    def _build_staircase(self, gamma: float) -> _Staircase:
        """Collect the edges that are the steepest relevant edge of their row for some ε.

        Each round takes the steepest edge of every row and keeps only the row's edges of higher ψ. The number of
        rounds grows with the logarithm of the degree, and each round has fewer edges.
        """
        rows, columns, psi = self.rows, self.columns, self.relevancy(gamma)
        # P_ij = W_ij / d_i, and d_i is the same for all edges of a row, so W ranks a row's ascents as P does.
        ascent = self.affinity * (self.authority[columns] - self.authority[rows])
        highest_psi = np.zeros(len(self.authority))
        empty = np.zeros(0, np.int64)
        steps = [(empty, empty, np.zeros(0))]
        while len(rows):
            starts = np.flatnonzero(np.r_[True, rows[1:] != rows[:-1]])
            steepest = np.repeat(np.maximum.reduceat(ascent, starts), np.diff(np.r_[starts, len(rows)]))
            chosen = np.flatnonzero(ascent == steepest)
            chosen = chosen[np.r_[True, rows[chosen][1:] != rows[chosen][:-1]]]  # the lowest column on ties
            steps.append((rows[chosen], columns[chosen], psi[chosen]))
            highest_psi[rows[chosen]] = psi[chosen]
            # An edge of lower or equal ψ is relevant only when the steeper edge is relevant too: it never wins.
            higher = psi > highest_psi[rows]
            rows, columns, psi, ascent = rows[higher], columns[higher], psi[higher], ascent[higher]
        all_rows, all_columns, all_psi = (np.concatenate(part) for part in zip(*steps, strict=True))
        return _Staircase(gamma, all_rows, all_columns, all_psi)


def _undirected_edges(neighbors: Array, squared: Array) -> tuple[Array, Array, Array]:
    """List each pair of neighbors once: lower end, higher end, squared distance.

    Each is (e,), sorted by the ends.
    """
    count, k = neighbors.shape
    rows = np.repeat(np.arange(count), k)
    columns = neighbors.ravel()
    # One integer key per pair, computed in place: at a million edges each further copy costs time and memory.
    key = np.minimum(rows, columns)
    key *= count
    key += np.maximum(rows, columns, out=rows)
    order = np.argsort(key)
    key = np.take(key, order, out=rows)
    distance = squared.ravel()[order]
    starts = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    # The smaller distance gives max(W, Wᵀ). The distances of the two directions may differ in rounding.
    closest = np.minimum.reduceat(distance, starts)
    low, high = np.divmod(key[starts], count)
    return low, high, closest.astype(np.float64)
