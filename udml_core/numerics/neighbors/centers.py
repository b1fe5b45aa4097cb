"""The centers of an inverted file: k-means on a sample."""

from __future__ import annotations

from collections.abc import Callable

import faiss
import numpy as np

from udml_core.base.arrays import Array, Floats, Integers

Report = Callable[[float, str], object]
"""Receives the finished share of a step and the step's name. An exception that it raises cancels the work."""
ITERATIONS = 10
SAMPLED_PER_LIST = 40
"""Sampled points per center. faiss advises at least 39."""
MOST_LISTS = 4096
"""More lists would cost more in training and in dividing the points than they save in a search, up to 10⁷ points."""


def ignore_progress(_share: float, _step: str) -> None:
    """Ignore the progress."""


def choose_lists(count: int) -> int:
    """Return the number of lists for `count` points: the power of two next to 2·√n, at most 4,096."""
    return int(min(MOST_LISTS, 2 ** max(0, round(np.log2(2 * np.sqrt(max(count, 1)))))))


def sample_rows(count: int, size: int, seed: int = 0) -> Integers:
    """Return ascending indices (size,) of a random sample of `count` rows; all rows if there are fewer."""
    if size >= count:
        return np.arange(count)
    return np.sort(np.random.default_rng(seed).choice(count, size, replace=False))


def train_centers(sample: Floats, lists: int, report: Report = ignore_progress) -> Floats:
    """Compute the centers (lists, d) float32 of a sample (m, d), m ≥ lists, by k-means.

    The first centers are evenly spaced rows of the sample. A center that loses all points moves next to the center with
    the most points, and so divides that list.
    """
    sample = np.ascontiguousarray(sample, np.float32)
    centers = sample[np.linspace(0, len(sample) - 1, lists).astype(np.int64)]
    for iteration in range(ITERATIONS):
        report(iteration / ITERATIONS, "training the index")
        assigned = nearest_center(sample, centers)
        sizes = np.bincount(assigned, minlength=lists)
        starts = np.cumsum(sizes) - sizes
        filled = sizes > 0
        sums = np.add.reduceat(sample[np.argsort(assigned, kind="stable")], starts[filled], axis=0)
        centers[filled] = sums / sizes[filled, None]
        empty = np.flatnonzero(~filled)
        largest = np.argsort(-sizes, kind="stable")[: len(empty)]
        centers[empty] = sample[[np.flatnonzero(assigned == center)[0] for center in largest]]
    report(1.0, "training the index")
    return centers


def nearest_center(points: Array, centers: Floats) -> Integers:
    """Return the nearest center (n,) int64 of each point (n, d)."""
    return nearest_centers(points, centers, 1)[1][:, 0]


def nearest_centers(points: Array, centers: Floats, probes: int) -> tuple[Floats, Integers]:
    """Return the squared distances (n, p) and the numbers (n, p) of the nearest centers of each point (n, d)."""
    return faiss.knn(np.ascontiguousarray(points, np.float32), centers, probes)
