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

from udml_core.arrays import Array, Floats, Integers
from udml_core.neighbors.centers import (
    SAMPLED_PER_LIST,
    Report,
    assign,
    choose_lists,
    ignore_progress,
    nearest_centers,
    sample_rows,
    train_centers,
)
from udml_core.neighbors.exact import nearest, without_self

EXACT_UP_TO = 200_000
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
    found = approximate_nearest(points, k, report)
    return found.distances, found.indices


def approximate_nearest(points: Array, k: int, report: Report = ignore_progress) -> Approximate:
    """Find at least 95 % of the k nearest other points of each point.

    Args:
        points: Points (n, d), searched as float32.
        k: Number of neighbors, at most n − 1.
        report: Receives the progress; an exception that it raises cancels the search.

    Returns:
        The neighbors, with the recall that was measured on a sample of the points.

    Raises:
        ValueError: k is below 1 or above the number of other points.
    """
    points = np.ascontiguousarray(points, np.float32)
    if not 1 <= k < len(points):
        raise ValueError(f"The number of neighbors must be between 1 and {len(points) - 1}, got {k}. Change k or add "
                         "points.")
    lists = choose_lists(len(points))
    centers = train_centers(points[sample_rows(len(points), SAMPLED_PER_LIST * lists)], lists, report)
    index, assigned = _fill(points, centers, report)
    rows = sample_rows(len(points), SAMPLE, seed=1)
    probes, recall = choose_probes(points, rows, k, index, centers, report)
    distances = np.empty((len(points), k), np.float32)
    indices = np.empty((len(points), k), np.int64)
    # Points of one list probe the same lists, which stay in the processor's cache.
    order = np.argsort(assigned, kind="stable")
    for start in range(0, len(points), BLOCK):
        report(start / len(points), "neighbors")
        block = order[start : start + BLOCK]
        distances[block], indices[block] = _search(points, block, k, probes, index, centers)
    report(1.0, "neighbors")
    return Approximate(distances, indices, recall, probes, lists)


def _fill(points: Floats, centers: Floats, report: Report) -> tuple[faiss.IndexIVFFlat, Integers]:
    """Return the inverted file of points, and the list (n,) of each point."""
    quantizer = faiss.IndexFlatL2(centers.shape[1])
    quantizer.add(centers)
    index = faiss.IndexIVFFlat(quantizer, centers.shape[1], len(centers))
    assigned = np.empty(len(points), np.int64)
    for start in range(0, len(points), BLOCK):
        report(start / len(points), "dividing the points among lists")
        block = points[start : start + BLOCK]
        assigned[start : start + BLOCK] = assign(block, centers)
        index.add_core(len(block), faiss.swig_ptr(block), None, faiss.swig_ptr(assigned[start : start + BLOCK]))
    return index, assigned


def choose_probes(points: Floats, rows: Integers, k: int, index: faiss.IndexIVFFlat, centers: Floats,
                  report: Report) -> tuple[int, float]:
    """Return the smallest power of two of probes that reaches the recall on half of a sample, and the recall on the
    other half."""
    exact = without_self(*nearest(points, k + 1, points[rows]), rows)[1]
    half = len(rows) // 2
    probes = 1
    while True:
        report(0.5, "measuring the recall")
        found = _search(points, rows, k, probes, index, centers)[1]
        if probes == len(centers) or recall_of(found[:half], exact[:half]) >= RECALL + MARGIN:
            return probes, recall_of(found[half:], exact[half:])
        probes = min(2 * probes, len(centers))


def recall_of(found: Integers, exact: Integers) -> float:
    """Return the share of the indices of each row of `exact` (q, k) that the same row of `found` (q, m) has."""
    return float(np.mean([np.isin(truth, row).mean() for truth, row in zip(exact, found, strict=True)]))


def _search(points: Floats, rows: Integers, k: int, probes: int, index: faiss.IndexIVFFlat,
            centers: Floats) -> tuple[Floats, Integers]:
    """Find the k nearest other points of some rows in the lists of their nearest centers."""
    queries = points[rows]
    far, chosen = nearest_centers(queries, centers, probes)
    index.nprobe = probes
    search: Any = index.search_preassigned  # faiss's types describe the C++ functions below its Python functions
    distances, indices = search(queries, k + 1, chosen, far)
    return without_self(np.maximum(distances, 0.0), indices, rows)
