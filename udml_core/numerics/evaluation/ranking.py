"""Rankings of points by distance, the same on every machine.

Neighbors are nearest by Euclidean distance, which for unit embeddings is the order by cosine. Ties go to the lowest
index, so the measures are defined for duplicates.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from udml_core.base.arrays import WIDE, Array, Integers, blocks
from udml_core.numerics.neighbors.centers import nearest_centers

CHUNK_ENTRIES = 1_500_000
"""Number of distances computed at once, few enough to stay in the processor's cache."""
LEAST_ROWS = 16
"""Fewest queries of a chunk: among 300,000 points a query alone takes several times longer than as one of 16."""
QUANTUM = 1e-9
"""Resolution of a squared distance, as a share of itself and the query's squared norm. It is coarser than the rounding
errors of a pair, whatever the size of other points: the other point's squared norm is at most twice the sum of both."""
CENTERED_ON = 1_000
"""Most points whose medians are the origin."""
MANY, FEW = 2_000, 0.05
"""Number of points from which distances are computed in float32 first, and the largest share of them as neighbors."""
SPARE = 32
"""Further candidates, so that most runs of close distances end before the last one."""
QUERIES = 4_096
"""Most queries that are ranked in float32 at once."""
REPORTS = 8
"""Least number of chunks, whose end a caller can report as progress."""
LAMBDA = 8.0
"""A rounding error exceeds the bound with a probability below 2 exp(−λ²/2), 3 in 10¹⁴."""


class Distances:
    """Distances of points as integer keys that contain the distance and the index.

    Squared distances are rounded to steps of `QUANTUM`, which removes rounding errors. Ties are then exact, and the
    index in the key decides them.
    """

    def __init__(self, embeddings: Array) -> None:
        self._points = np.asarray(embeddings)
        self.is_wide = self._points.shape[1] >= WIDE
        # A common offset would cost digits without changing distances, and so would a mean that one far point moves.
        some = self._points[:: -(-len(self._points) // CENTERED_ON)]
        self._center = np.concatenate([torch.from_numpy(np.array(some[:, columns])).median(0).values.double().numpy()
                                       for columns in blocks(some.shape[1], len(some))])
        if not self.is_wide:
            self._points = self._points.astype(np.float64)
            self._points -= self._center
            self._center = np.zeros(len(self._center))
        self.norms = torch.zeros(len(self._points), dtype=torch.float64)
        for columns in self._columns():
            for rows in blocks(len(self._points), min(WIDE, self._points.shape[1])):
                self.norms[rows] += self._block(rows, columns).square().sum(1)
        self._scales = self.norms.clamp_min(1e-300)

    def narrow_points(self) -> Array:
        """Return the centered points (n, d) float32, rounded from float64 without a copy in float64."""
        narrow = np.empty(self._points.shape, np.float32)
        return np.subtract(self._points, self._center, out=narrow, casting="same_kind")

    def _columns(self) -> Iterator[slice]:
        return blocks(self._points.shape[1], len(self._points)) if self.is_wide else iter([slice(None)])

    def _block(self, rows: Integers | slice, columns: slice) -> Tensor:
        """Return some rows and columns of the centered points in float64."""
        some = self._points[rows, columns]
        if self.is_wide:
            some = some.astype(np.float64)
            some -= self._center[columns]
        return torch.from_numpy(some)

    def keys(self, rows: Tensor) -> Tensor:
        """Return the keys (q, n) int64 from points (q,) to all points.

        They are distinct and ascend with the distance; the own key is largest.
        """
        indices = torch.arange(len(self._points))
        squared = self.norms[rows, None] + self.norms
        for columns in self._columns():
            points = self._block(slice(None), columns)
            squared.addmm_(points[rows], points.T, alpha=-2)
        keys = self._keys(squared, self._scales[rows, None], indices)
        keys[torch.arange(len(rows)), rows] = torch.iinfo(torch.int64).max
        return keys

    def nearest(self, rows: Tensor, k: int) -> Tensor:
        """Return the k nearest other points (q, k) of points (q,)."""
        return torch.topk(self.keys(rows), k, dim=1, largest=False, sorted=True).indices

    def keys_of(self, rows: Integers, others: Integers) -> Integers:
        """Return the keys (p,) of pairs of points."""
        keys = np.empty(len(rows), np.int64)
        step = max(1, CHUNK_ENTRIES // self._points.shape[1])
        for start in range(0, len(rows), step):
            first, second = rows[start : start + step], others[start : start + step]
            products = (self._block(first, slice(None)) * self._block(second, slice(None))).sum(1)
            squared = self.norms[first] + self.norms[second] - 2 * products
            keys[start : start + step] = self._keys(squared, self._scales[first], torch.from_numpy(second)).numpy()
        return keys

    def _keys(self, squared: Tensor, scales: Tensor, others: Tensor) -> Tensor:
        """Return the keys of squared distances, which are overwritten, from queries to points with these indices.

        A step of log(1 + d² / scale) is a step of d² that grows with d² + scale.
        """
        steps = squared.clamp_min_(0).div_(scales).log1p_().div_(QUANTUM).round_()
        return steps.to(torch.int64).mul_(len(self._points)).add_(others)


def rankings(embeddings: Array, k: int, asked: Integers | None = None) -> Iterator[tuple[Array, Array]]:
    """Yield the k nearest other points of each point, or of some points, in chunks.

    A chunk has queries (q,) and neighbors (q, k). Of many points the few nearest are found in float32, and distances
    that float32 cannot tell apart are computed again, so that the result is the same.

    Args:
        embeddings: (n, d).
        k: Number of neighbors, at most n − 1.
        asked: Rows (m,) of the queries; all points if None.
    """
    rows = np.arange(len(embeddings)) if asked is None else np.asarray(asked)
    distances = Distances(embeddings)
    if len(embeddings) >= MANY and not distances.is_wide and k + SPARE <= len(embeddings) * FEW:
        yield from _checked_rankings(distances, k, rows)
        return
    for chunk in row_chunks(len(rows), len(embeddings)):
        queries = torch.from_numpy(rows)[chunk]
        yield queries.numpy(), distances.nearest(queries, k).numpy()


def _checked_rankings(distances: Distances, k: int, rows: Integers) -> Iterator[tuple[Array, Array]]:
    """Yield rankings from distances in float32, of which the close ones are computed again."""
    small, largest = distances.narrow_points(), float(distances.norms.max())
    # Rounding errors of sums of d products grow with √d: Higham, Mary, SIAM J. Sci. Comput. 41(5), 2019.
    error = LAMBDA * (2 * np.sqrt(small.shape[1]) + 4) * np.finfo(np.float32).eps / 2 * largest
    width = min(k + 1 + SPARE, len(small))
    step = min(QUERIES, -(-len(rows) // REPORTS))
    for start in range(0, len(rows), step):
        queries = rows[start : start + step]
        values, found = nearest_centers(small[queries], small, width)
        yield queries, _put_in_order(distances, queries, values, found.astype(np.int64), k, 2 * error)


def _put_in_order(distances: Distances, queries: Integers, values: Array, found: Integers, k: int,
                  gap: float) -> Integers:
    """Return the k nearest other points (q, k) from candidates in the order of distances that carry an error.

    Neighbors in this order whose distances differ by less than `gap` form a run, which is sorted again by exact keys. A
    run that reaches the end of the candidates may lack points, so that its query is ranked again.

    Args:
        distances: The exact distances.
        queries: Rows (q,).
        values: Distances (q, w) of the candidates, ascending.
        found: The candidates (q, w), which contain the queries.
        k: Number of neighbors.
        gap: Twice the largest error of a distance.
    """
    is_joined = np.diff(values, axis=1) <= gap
    starts = np.concatenate([np.ones((len(queries), 1), bool), ~is_joined], axis=1)
    in_run = np.concatenate([is_joined, np.zeros((len(queries), 1), bool)], axis=1) | ~starts
    at = np.flatnonzero(in_run)
    of_query = at // found.shape[1]
    keys = distances.keys_of(queries[of_query], found.ravel()[at])
    run = np.cumsum(starts.ravel())[at]
    found = found.copy()
    found.ravel()[at] = found.ravel()[at][np.lexsort((keys, run))]
    own = found == queries[:, None]
    own[~own.any(axis=1), -1] = True
    neighbors = found[~own].reshape(len(queries), -1)[:, :k]
    open_end = is_joined[:, k:].all(axis=1)
    for row in np.array_split(np.flatnonzero(open_end), max(1, open_end.sum() // 16)):
        if len(row):
            neighbors[row] = distances.nearest(torch.from_numpy(queries[row]), k).numpy()
    return neighbors


def row_chunks(count: int, width: int) -> tuple[Tensor, ...]:
    """Split the row numbers into chunks (q,) whose distances are computed together.

    Args:
        count: Number of rows.
        width: Number of points to which each row has a distance.
    """
    return torch.arange(count).split(max(LEAST_ROWS, CHUNK_ENTRIES // width))
