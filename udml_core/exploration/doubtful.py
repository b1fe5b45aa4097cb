"""Named images that may be wrong: images that lie nearer to another class, or far from all others of their class."""

from __future__ import annotations

import numpy as np

from udml_core.base.arrays import Booleans, Floats, Integers

FEWEST_NAMED = 3
"""Fewest images of a class whose middle says something."""
FEWEST_SPREAD, FENCE = 8, 1.5
"""Fewest images of a class whose distances have a fence, and its width: beyond the farthest quarter by this many times
the width of the middle half."""


def doubtful_rows(points: Floats, codes: Integers, is_open: Booleans) -> Integers:
    """Return the rows of named images that may have the wrong class, the most doubtful first.

    An image is compared with the middle of its class without itself, and with the middles of the other classes.

    Args:
        points: Embedding (n, d).
        codes: Class (n,) of each named image; −1 for the others.
        is_open: Whether an image (n,) may be doubtful; other images only form the middles of their classes.
    """
    rows = np.flatnonzero(codes >= 0)
    classes, own, sizes = np.unique(codes[rows], return_inverse=True, return_counts=True)
    if not len(rows) or sizes.max() < FEWEST_NAMED:
        return rows[:0]
    units = np.asarray(points[rows], np.float32)
    units = units / np.maximum(np.linalg.norm(units, axis=1, keepdims=True), 1e-12)
    sums = np.zeros((len(classes), units.shape[1]), np.float32)
    np.add.at(sums, own, units)
    distances = _squares(units, sums / sizes[:, None])
    rest = (sums[own] - units) / np.maximum(sizes[own] - 1, 1)[:, None]
    to_own = ((units - rest) ** 2).sum(axis=1)
    distances[:, sizes < FEWEST_NAMED] = np.inf
    distances[np.arange(len(rows)), own] = np.inf
    margin = np.where(sizes[own] >= FEWEST_NAMED, to_own - distances.min(axis=1), -np.inf)
    doubtful = (margin > 0) | (to_own > _fences(to_own, own, sizes)[own])
    found = np.flatnonzero(doubtful & is_open[rows])
    return rows[found[np.lexsort((-to_own[found], -margin[found]))]]


def _squares(units: Floats, centers: Floats) -> Floats:
    """Return the squared distance (m, c) of each row to each center."""
    return (units ** 2).sum(axis=1)[:, None] - 2 * units @ centers.T + (centers ** 2).sum(axis=1)


def _fences(distances: Floats, own: Integers, sizes: Integers) -> Floats:
    """Return the distance (c,) beyond which an image is far from its class; infinite for small classes."""
    fences = np.full(len(sizes), np.inf)
    for code in np.flatnonzero(sizes >= FEWEST_SPREAD).tolist():
        low, high = np.percentile(distances[own == code], [25, 75])
        fences[code] = high + FENCE * (high - low)
    return fences
