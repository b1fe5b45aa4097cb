"""Neighbor search among the unit rows of a large gallery.

An exact search costs n²·d. From 20,000 images on, candidates are found in fewer dimensions, where the same search
costs a quarter at d = 512, and then compared by their exact cosine.
"""

from __future__ import annotations

import numpy as np

from udml_core.base.arrays import Array, Floats, Integers
from udml_core.numerics.neighbors import EXACT_UP_TO, approximate_nearest, largest_products, nearest, without_own
from udml_core.numerics.refinement.sparse_loops import compiled, in_threads

EXACT_BELOW = 20_000
"""Number of gallery images, and of queries, below which every search is exact."""
DIMENSION = 128
"""Number of principal directions in which candidates are searched."""
SAMPLE = 10_000
"""Number of rows, evenly spaced, from which the directions are computed."""
FEWEST, PER_NEIGHBOR, DEEPEST = 100, 2, 500
"""A search for k ≤ 500 neighbors compares 100 + 2k candidates; more neighbors are searched exactly."""


def nearest_unit(rows: Array, k: int, queries: Array | None = None) -> tuple[Floats, Integers]:
    """Find the k nearest unit rows, as `nearest` does; among 20,000 rows or more, not always all of them.

    Above 200,000 rows, 20,000 queries or more visit lists of rows; see `approximate_nearest`. Below, more than 99 % of
    the true neighbors were found in every measurement: on features of birds and pixels of clothes, frozen, whitened and
    averaged. The returned distances are always exact. A search for few queries is exact.

    Args:
        rows: Unit rows (n, d).
        k: Number of neighbors: at most n, or n − 1 without `queries`.
        queries: Unit rows (q, d). Without them each row is a query and is not its own neighbor.

    Returns:
        Squared distances (q, k) float32, ascending, and indices (q, k) int64.
    """
    few = min(len(rows), len(rows if queries is None else queries)) < EXACT_BELOW
    many = not few and len(rows) > EXACT_UP_TO
    if few or k > DEEPEST or rows.shape[1] < 2 * DIMENSION:
        if not many:
            return nearest(rows, k, queries)
        neighbors = approximate_nearest(rows, k, queries=queries)
        return neighbors.distances, neighbors.indices
    rows = np.ascontiguousarray(rows, np.float32)
    query_rows = rows if queries is None else np.ascontiguousarray(queries, np.float32)
    directions = search_directions(rows)
    # The product, not the distance, of the projections: the discarded parts of two rows are nearly orthogonal.
    count = min(FEWEST + PER_NEIGHBOR * k + 1, len(rows))
    search = _listed_products if many else largest_products
    candidates = search(rows @ directions, count, query_rows @ directions)
    distances, indices = np.empty((len(query_rows), k), np.float32), np.empty((len(query_rows), k), np.int64)
    in_threads(lambda start, stop: select_nearest(start, stop, query_rows, rows, candidates, queries is None, distances,
                                                  indices), len(query_rows))
    return distances, indices


def _listed_products(points: Floats, k: int, queries: Floats) -> Integers:
    """Find most of the points of the k largest inner products, as `largest_products` finds all of them.

    With the component √(1 − ‖x‖²) all points have length 1, so −2 q·x and the squared distance give one order.
    """
    length = np.sqrt(np.maximum(0, 1 - np.einsum("nd,nd->n", points, points)))[:, None]
    zeros = np.zeros((len(queries), 1), np.float32)
    return approximate_nearest(np.hstack([points, length]), k, queries=np.hstack([queries, zeros])).indices


def nearest_others(rows: Array, k: int, own: Integers | None = None, queries: Array | None = None
                   ) -> tuple[Floats, Integers]:
    """Find the k rows nearest to some of the rows, without the row itself.

    Args:
        rows: Unit rows (n, d).
        k: Number of neighbors, at most n − 1.
        own: Indices (q,) of the rows that are queries; all rows if None.
        queries: Vectors (q, d) that stand for the rows of `own`; by default these rows.

    Returns:
        Squared distances (q, k) float32, ascending, and indices (q, k) int64.
    """
    if own is None:
        return nearest_unit(rows, k)
    return without_own(*nearest_unit(rows, k + 1, rows[own] if queries is None else queries), own)


def search_directions(rows: Array) -> Floats:
    """Return the directions (d, 128) of the largest second moment of a sample of rows (n, d)."""
    sample = rows[:: max(1, len(rows) // SAMPLE)]
    vectors = np.linalg.eigh((sample.T @ sample).astype(np.float64)).eigenvectors
    return np.ascontiguousarray(vectors[:, -DIMENSION:], np.float32)


@compiled
def select_nearest(first: int, last: int, queries: Array, rows: Array, candidates: Array, inside: bool,
                   distances: Array, indices: Array) -> None:
    """Write the nearest candidates of each query, and their squared distances; `inside`, without the query itself."""
    squared = np.zeros(candidates.shape[1], np.float32)
    for query in range(first, last):
        for position in range(candidates.shape[1]):
            image = candidates[query, position]
            squared[position] = max(np.float32(0), 2 - 2 * np.dot(queries[query], rows[image]))
            if inside and image == query:
                squared[position] = np.inf
        order = np.argsort(squared, kind="mergesort")
        for rank in range(indices.shape[1]):
            distances[query, rank] = squared[order[rank]]
            indices[query, rank] = candidates[query, order[rank]]
