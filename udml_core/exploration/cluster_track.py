"""Clusters over the whole range of ε, of which each keeps its number while the slider moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from udml_core.base.arrays import Array, Integers


def track_clusters(assign: Callable[[float], Integers], steps: Sequence[float], first: int) -> Array:
    """Return the clusters of images at each step of ε, numbered so that a cluster keeps its number.

    At the first step cluster 0 is the largest. From there to both ends, a cluster takes the number of the cluster of
    the step before with which it shares most images, and a cluster that finds none the smallest free number.

    Args:
        assign: Returns the cluster of each image (s,) at an ε, −1 for an image alone.
        steps: The values of ε, ascending.
        first: Position of the step that numbers begin at.

    Returns:
        (t, s) int16.
    """
    rows = [np.asarray(assign(step), dtype=np.int64) for step in steps]
    numbered = {first: number_by_size(rows[first])}
    for position in [*range(first + 1, len(steps)), *range(first - 1, -1, -1)]:
        before = numbered[position - 1 if position > first else position + 1]
        numbered[position] = number_like(before, rows[position])
    return np.stack([numbered[position] for position in range(len(steps))]).astype(np.int16)


def number_by_size(assignment: Integers) -> Integers:
    """Number clusters (s,) by their size, the largest 0; −1 stays."""
    return number_like(np.full(len(assignment), -1), assignment)


def number_like(before: Integers, assignment: Integers) -> Integers:
    """Number clusters (s,) like the clusters before (s,) with which they share most images; −1 stays."""
    sizes = np.bincount(assignment[assignment >= 0], minlength=1)
    both = (before >= 0) & (assignment >= 0)
    pairs, shared = np.unique(np.stack([before[both], assignment[both]]), axis=1, return_counts=True)
    numbers: dict[int, int] = {}
    taken: set[int] = set()
    for place in np.argsort(-shared, kind="stable"):
        number, cluster = (int(part) for part in pairs[:, place])
        if cluster not in numbers and number not in taken:
            numbers[cluster] = number
            taken.add(number)
    free = (number for number in range(len(sizes) + len(taken)) if number not in taken)
    for cluster in np.argsort(-sizes, kind="stable").tolist():
        if sizes[cluster] and cluster not in numbers:
            numbers[cluster] = next(free)
    table = np.array([numbers.get(cluster, -1) for cluster in range(len(sizes))])
    return np.where(assignment >= 0, table[np.maximum(assignment, 0)], -1)
