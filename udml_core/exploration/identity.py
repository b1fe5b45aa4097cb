"""The numbers of clusters, which stay while a slider changes the clusters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from udml_core.base.arrays import Array, Integers

LEAST_SHARED = 0.5
"""Share of the images of a former and a new cluster together that both must hold to be one cluster again."""
MOST_FORMER = 512
"""Number of former clusters whose numbers are kept."""


@dataclass(frozen=True)
class Numbered:
    """Clusters with numbers from 0.

    Attributes:
        numbers: (n,) number of each image's cluster; −1 for an image alone.
        former: The images of clusters that are no more, when they were there last, by number.
    """

    numbers: Integers
    former: dict[int, Integers] = field(default_factory=dict)


def number_clusters(assignment: Integers, before: Numbered | None = None) -> Numbered:
    """Number clusters as they were numbered before; the first time by size, the largest cluster first.

    A cluster keeps the number of the cluster with which it shares most images. So the larger part of a split cluster
    keeps the number, and the smaller part gets the number that it had when it was a cluster last, or else a new number.

    Args:
        assignment: (n,) code of each image's cluster; −1 for an image alone.
        before: The clusters of the same images before the slider moved.
    """
    codes, inverse = np.unique(assignment, return_inverse=True)
    sizes = np.where(codes < 0, 0, np.bincount(inverse, minlength=len(codes)))
    found: dict[int, int] = {}
    if before is not None:
        overlaps = _overlaps(before.former, inverse, sizes)
        _rejoin(overlaps, 1.0, found)
        _continue(before.numbers, inverse, sizes, found)
        _rejoin(overlaps, LEAST_SHARED, found)
    taken = set() if before is None else {*before.former, *np.unique(before.numbers).tolist(), *found.values()}
    free = count()
    for position in np.argsort(-sizes, kind="stable").tolist():
        if sizes[position] and position not in found:
            found[position] = next(number for number in free if number not in taken)
    numbers = np.array([found.get(position, -1) for position in range(len(codes))], dtype=np.int64)[inverse]
    return Numbered(numbers, {} if before is None else _former(before, numbers))


def track_clusters(assign: Callable[[float], Integers], steps: Sequence[float], first: int,
                   before: Numbered | None = None) -> Array:
    """Return the clusters of images at each step of a slider, numbered so that a cluster keeps its number.

    At the first step cluster 0 is the largest, unless numbers are given. From there to both ends, numbers follow
    `number_clusters`.

    Args:
        assign: Returns the cluster of each image (s,) at a value, −1 for an image alone.
        steps: The values, ascending.
        first: Position of the step that numbers begin at.
        before: Numbered clusters of the same images that the first step continues; None to number by size.

    Returns:
        (t, s) int16.
    """
    numbered = {first: number_clusters(assign(steps[first]), before)}
    for position in [*range(first + 1, len(steps)), *range(first - 1, -1, -1)]:
        before = numbered[position - 1 if position > first else position + 1]
        numbered[position] = number_clusters(assign(steps[position]), before)
    return np.stack([numbered[position].numbers for position in range(len(steps))]).astype(np.int16)


def _continue(numbers: Integers, inverse: Integers, sizes: Integers, found: dict[int, int]) -> None:
    """Give numbers to the new clusters that share most images with their clusters, most shared images first."""
    both = np.flatnonzero((numbers >= 0) & (sizes[inverse] > 0))
    pairs, shared = np.unique(numbers[both] * len(sizes) + inverse[both], return_counts=True)
    taken = set(found.values())
    for pair in pairs[np.argsort(-shared, kind="stable")].tolist():
        number, position = divmod(pair, len(sizes))
        if number not in taken and position not in found:
            found[position] = number
            taken.add(number)


def _overlaps(former: dict[int, Integers], inverse: Integers, sizes: Integers) -> list[tuple[int, int, float]]:
    """Return for former clusters, the newest first, the new cluster that shares most images, and the share of both."""
    if not former:
        return []
    numbers, images = list(former)[::-1], list(former.values())[::-1]
    lengths = [len(each) for each in images]
    positions = inverse[np.concatenate(images)]
    owners = np.repeat(np.arange(len(images)), lengths)
    counted = sizes[positions] > 0
    pairs, shared = np.unique(owners[counted] * len(sizes) + positions[counted], return_counts=True)
    owners, positions = np.divmod(pairs, len(sizes))
    best = np.lexsort((positions, -shared, owners))
    best = best[np.unique(owners[best], return_index=True)[1]]
    return [(numbers[owner], position, both / (lengths[owner] + sizes[position] - both)) for owner, position, both
            in zip(owners[best].tolist(), positions[best].tolist(), shared[best].tolist(), strict=True)]


def _rejoin(overlaps: list[tuple[int, int, float]], least: float, found: dict[int, int]) -> None:
    """Give the numbers of former clusters to the new clusters with at least a share in common."""
    taken = set(found.values())
    for number, position, share in overlaps:
        if share >= least and number not in taken and position not in found:
            found[position] = number
            taken.add(number)


def _former(before: Numbered, numbers: Integers) -> dict[int, Integers]:
    """Return the images of the clusters that are no more, the newest last."""
    alive = set(np.unique(numbers).tolist())
    former = {number: images for number, images in before.former.items() if number not in alive}
    order = np.argsort(before.numbers, kind="stable")
    values, starts = np.unique(before.numbers[order], return_index=True)
    members = zip(values.tolist(), np.split(order, starts[1:]), strict=True)
    former.update((number, images) for number, images in members if number >= 0 and number not in alive)
    return dict(list(former.items())[-MOST_FORMER:])
