"""Approximate neighbors of many points by an inverted file.

An exact search costs n²·d. An inverted file divides the points among lists, one for each center of k-means, and a query
compares only the points of the lists whose centers are nearest. The number of these lists, the probes, is chosen on a
sample of the points whose neighbors are searched exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import faiss
import numpy as np

from udml_core.base.arrays import LARGE, Array, Floats, Integers
from udml_core.numerics.neighbors.centers import (
    SAMPLED_PER_LIST,
    Report,
    choose_lists,
    ignore_progress,
    nearest_center,
    nearest_centers,
    sample_rows,
    train_centers,
)
from udml_core.numerics.neighbors.exact import nearest, without_own

EXACT_UP_TO = LARGE
"""Number of points up to which the neighbors of all points are searched exactly."""
RECALL, MARGIN = 0.95, 0.01
"""The promised share of true neighbors, and what the choice of the probes adds to it, because it sees a sample."""
SAMPLE = 600
"""Points on which the recall is measured: the first half chooses the probes, the second half measures."""
BLOCK = 16_384
"""Points that are searched between two reports of progress."""


@dataclass(frozen=True, eq=False)
class Approximate:
    """Approximate neighbors.

    Attributes:
        distances: Squared distances (q, k) float32, ascending.
        indices: Indices (q, k) int64.
        recall: Share of the true neighbors that were found, on a sample of the queries.
        probes: Number of lists that each query compared.
        lists: Number of lists.
    """

    distances: Floats
    indices: Integers
    recall: float
    probes: int
    lists: int


def graph_neighbors(points: Array, k: int, report: Report = ignore_progress) -> tuple[Floats, Integers]:
    """Find the k nearest other points of each point: exact up to 200,000 points, approximate above.

    Args:
        points: Points (n, d), searched as float32.
        k: Number of neighbors, at most n − 1.
        report: Receives the progress of an approximate search; an exception that it raises cancels the search.

    Returns:
        Squared distances (n, k) float32, ascending, and indices (n, k) int64, as `nearest` does.

    Raises:
        ValueError: k is below 1 or above the number of other points.
    """
    if len(points) <= EXACT_UP_TO:
        return nearest(points, k)
    neighbors = approximate_nearest(points, k, report)
    return neighbors.distances, neighbors.indices


def approximate_nearest(points: Array, k: int, report: Report = ignore_progress, queries: Array | None = None
                        ) -> Approximate:
    """Find at least 95 % of the k nearest points.

    Args:
        points: Points (n, d), searched as float32.
        k: Number of neighbors: at most n, or n − 1 without `queries`.
        report: Receives the progress; an exception that it raises cancels the search.
        queries: Query points (q, d). Without them each point is a query and is not its own neighbor.

    Returns:
        The neighbors, with the recall that was measured on a sample of the queries.

    Raises:
        ValueError: k is below 1 or above the number of available points.
    """
    points = np.ascontiguousarray(points, np.float32)
    available = len(points) - (queries is None)
    if not 1 <= k <= available:
        raise ValueError(f"The number of neighbors must be between 1 and {available}, got {k}. Change k or add points.")
    lists = choose_lists(len(points))
    centers = train_centers(points[sample_rows(len(points), SAMPLED_PER_LIST * lists)], lists, report)
    index, assigned = _fill(points, centers, report)
    if queries is not None:
        queries = np.ascontiguousarray(queries, np.float32)
        assigned = nearest_center(queries, centers)
    search = _Search(points, queries, k, index, centers)
    rows = sample_rows(len(assigned), SAMPLE, seed=1)
    probes, recall = _choose_probes(search, np.random.default_rng(2).permutation(rows), report)
    distances = np.empty((len(assigned), k), np.float32)
    indices = np.empty((len(assigned), k), np.int64)
    # Queries of one list visit the same lists, which stay in the processor's cache.
    order = np.argsort(assigned, kind="stable")
    for start in range(0, len(order), BLOCK):
        report(start / len(order), "neighbors")
        block = order[start : start + BLOCK]
        distances[block], indices[block] = search.approximate(block, probes)
    report(1.0, "neighbors")
    return Approximate(distances, indices, recall, probes, lists)


@dataclass(frozen=True, eq=False)
class _Search:
    """The searched points, and the queries; None if the points are the queries."""

    points: Floats
    queries: Floats | None
    k: int
    index: faiss.IndexIVFFlat
    centers: Floats

    def approximate(self, rows: Integers, probes: int) -> tuple[Floats, Integers]:
        """Find the neighbors of some queries in the lists of their nearest centers.

        If these lists have fewer than k points, all lists are searched.
        """
        queries = (self.points if self.queries is None else self.queries)[rows]
        far, chosen = nearest_centers(queries, self.centers, probes)
        self.index.nprobe = probes
        search: Any = self.index.search_preassigned  # faiss's types describe the C++ function below the Python function
        distances, indices = search(queries, self._depth, chosen, far)
        short = np.flatnonzero(indices[:, -1] < 0)
        if len(short):
            distances[short], indices[short] = nearest(self.points, self._depth, queries[short])
        return self._others(np.maximum(distances, 0.0), indices, rows)

    def exact(self, rows: Integers) -> Integers:
        """Return the true neighbors of some queries."""
        queries = (self.points if self.queries is None else self.queries)[rows]
        return self._others(*nearest(self.points, self._depth, queries), rows)[1]

    @property
    def _depth(self) -> int:
        return self.k + (self.queries is None)

    def _others(self, distances: Floats, indices: Integers, rows: Integers) -> tuple[Floats, Integers]:
        return without_own(distances, indices, rows) if self.queries is None else (distances, indices)


def _fill(points: Floats, centers: Floats, report: Report) -> tuple[faiss.IndexIVFFlat, Integers]:
    """Return the inverted file of points, and the list (n,) of each point."""
    quantizer = faiss.IndexFlatL2(centers.shape[1])
    quantizer.add(centers)
    index = faiss.IndexIVFFlat(quantizer, centers.shape[1], len(centers))
    assigned = np.empty(len(points), np.int64)
    for start in range(0, len(points), BLOCK):
        report(start / len(points), "dividing the points among lists")
        block = points[start : start + BLOCK]
        assigned[start : start + BLOCK] = nearest_center(block, centers)
        index.add_core(len(block), faiss.swig_ptr(block), None, faiss.swig_ptr(assigned[start : start + BLOCK]))
    return index, assigned


def _choose_probes(search: _Search, sample: Integers, report: Report) -> tuple[int, float]:
    """Return the smallest power of two of probes that reaches the recall on half of a sample of queries.

    Returns:
        The probes, and the recall on the other half.
    """
    exact, half, most = search.exact(sample), len(sample) // 2, len(search.centers)
    probes = 1
    while True:
        report(np.log2(probes) / np.log2(2 * most), "measuring the recall")
        found = search.approximate(sample, probes)[1]
        if probes == most or recall_of(found[:half], exact[:half]) >= RECALL + MARGIN:
            return probes, recall_of(found[half:], exact[half:])
        probes = min(2 * probes, most)


def recall_of(neighbors: Integers, exact: Integers) -> float:
    """Return the share of the indices of each row of `exact` (q, k) that the same row of `neighbors` (q, m) has."""
    return float(np.mean([np.isin(truth, row).mean() for truth, row in zip(exact, neighbors, strict=True)]))
