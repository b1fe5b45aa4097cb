"""Ranking by diffusion on the graph of mutual neighbors (Iscen et al., CVPR 2017).

The affinity of two mutual neighbors is cosine^γ, and S = D^(−1/2) W D^(−1/2). The ranking of a query with the
activation y is f = (I − αS)^(−1) y, the limit of a random walk that returns to the query with probability 1 − α. The
system is solved by conjugate gradient on the images nearest to the query, as in the paper's truncation.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from udml_core.base.arrays import Array, Floats, Integers
from udml_core.numerics.graph.mutual_neighbors import mutual_pairs_of
from udml_core.numerics.neighbors import without_own
from udml_core.numerics.refinement.sparse_loops import compiled, in_threads
from udml_core.numerics.refinement.unit_neighbors import nearest_others, nearest_unit

ITERATIONS, TOLERANCE = 100, 1e-5
"""Conjugate gradient stops after this number of steps, or at this length of the residual relative to y."""


class DiffusionRanking:
    """The gallery's graph, for the ranking of its own images and of queries from outside.

    Attributes:
        rows: Unit rows (n, d) of the gallery.
        graph: Normalized affinities S (n, n).
    """

    def __init__(self, rows: Array, k: int = 50, alpha: float = 0.99, gamma: float = 3.0,
                 shortlist: int = 500) -> None:
        """Build the graph.

        Args:
            rows: Unit rows (n, d), n ≥ 2.
            k: Number of neighbors; all other images if there are fewer.
            alpha: Probability α that the walk continues.
            gamma: Exponent γ of the affinities.
            shortlist: Number of nearest images to which a query's walk is confined.
        """
        self.rows = np.ascontiguousarray(rows, np.float32)
        self.k, self.alpha, self.gamma, self.shortlist = min(k, len(rows) - 1), alpha, gamma, shortlist
        self.graph = mutual_graph(self.rows, self.k, gamma)

    def neighbors(self, k: int, own: Integers | None = None) -> tuple[Integers, Floats]:
        """Rank the gallery for its images; the activation is one at the image.

        Args:
            k: Number of images to return for each.
            own: Indices (q,) of the images to rank for; all n if None.

        Returns:
            Indices (q, k), nearest first and without the image itself, and scores (q, k).
        """
        k = min(k, len(self.rows) - 1)
        listed = nearest_others(self.rows, min(max(k, self.shortlist), len(self.rows) - 1), own)[1]
        own = np.arange(len(self.rows)) if own is None else own
        activation = np.zeros((len(listed), listed.shape[1] + 1))
        activation[:, 0] = 1
        indices, scores = self._rank(np.concatenate([own[:, None], listed], axis=1), activation, k + 1)
        scores, indices = without_own(scores, indices, own)
        return indices, scores

    def search(self, queries: Array, k: int) -> tuple[Integers, Floats]:
        """Rank the gallery for queries from outside; the activation is cosine^γ at the k nearest images.

        Args:
            queries: Unit rows (q, d).
            k: Number of images to return for each query.

        Returns:
            Indices (q, k), nearest first, and scores (q, k).
        """
        k = min(k, len(self.rows))
        distances, listed = nearest_unit(self.rows, min(max(k, self.shortlist), len(self.rows)), queries)
        activation = np.maximum(1 - distances.astype(np.float64) / 2, 0) ** self.gamma
        activation[:, self.k :] = 0
        return self._rank(listed, activation, k)

    def _rank(self, listed: Integers, activation: Array, k: int) -> tuple[Integers, Floats]:
        """Solve the system of each query on its listed images (q, s), and return the k of the largest f."""
        indices, scores = np.zeros((len(listed), k), np.int64), np.zeros((len(listed), k), np.float32)
        in_threads(lambda start, stop: solve_on_lists(
            start, stop, self.graph.indptr, self.graph.indices, self.graph.data, listed, activation, self.alpha,
            ITERATIONS, TOLERANCE, indices, scores), len(listed))
        return indices, scores


def mutual_graph(rows: Array, k: int, gamma: float) -> sparse.csr_matrix:
    """Return S = D^(−1/2) W D^(−1/2) of the affinities W of mutual neighbors, (n, n) float64."""
    affinities = mutual_affinities(rows, k, gamma)
    degree = np.asarray(affinities.sum(axis=1)).ravel()
    scale = sparse.diags(1 / np.sqrt(np.where(degree > 0, degree, 1)))
    return (scale @ affinities @ scale).tocsr()


def mutual_affinities(rows: Array, k: int, gamma: float) -> sparse.csr_matrix:
    """Return W (n, n) float64, the affinities cosine^γ of mutual neighbors."""
    first, second = mutual_pairs_of(nearest_unit(rows, k)[1]).T
    affinity = np.maximum(np.einsum("pd,pd->p", rows[first], rows[second]).astype(np.float64), 0) ** gamma
    upper = sparse.csr_matrix((affinity, (first, second)), shape=(len(rows), len(rows)))
    return (upper + upper.T).tocsr()


@compiled
def solve_on_lists(first: int, last: int, starts: Array, members: Array, values: Array, listed: Array,
                   activation: Array, alpha: float, iterations: int, tolerance: float, indices: Array,
                   scores: Array) -> None:
    """Solve (I − αS) f = y on each list by conjugate gradient; write the ranking by f and its values."""
    size = listed.shape[1]
    place = np.full(len(starts) - 1, -1, np.int64)
    bounds = np.zeros(size + 1, np.int64)
    for row in range(first, last):
        for position in range(size):
            place[listed[row, position]] = position
        edges = 0
        for position in range(size):
            image = listed[row, position]
            edges += starts[image + 1] - starts[image]
        columns, weights = np.zeros(edges, np.int64), np.zeros(edges)
        edges = 0
        for position in range(size):
            bounds[position] = edges
            image = listed[row, position]
            for edge in range(starts[image], starts[image + 1]):
                if place[members[edge]] >= 0:
                    columns[edges], weights[edges] = place[members[edge]], alpha * values[edge]
                    edges += 1
        bounds[size] = edges
        for position in range(size):
            place[listed[row, position]] = -1

        solution = np.zeros(size)
        residual = activation[row].copy()
        direction = residual.copy()
        squared = np.dot(residual, residual)
        goal = tolerance * tolerance * squared
        product = np.zeros(size)
        for _ in range(iterations):
            if squared <= goal:
                break
            for position in range(size):
                total = direction[position]
                for edge in range(bounds[position], bounds[position + 1]):
                    total -= weights[edge] * direction[columns[edge]]
                product[position] = total
            step = squared / np.dot(direction, product)
            solution += step * direction
            residual -= step * product
            before, squared = squared, np.dot(residual, residual)
            direction = residual + squared / before * direction
        # Images that the walk does not reach have f = 0 and keep their order.
        ranking = np.argsort(-solution, kind="mergesort")
        for rank in range(indices.shape[1]):
            indices[row, rank] = listed[row, ranking[rank]]
            scores[row, rank] = solution[ranking[rank]]
