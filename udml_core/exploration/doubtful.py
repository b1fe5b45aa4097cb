"""Named images that may be wrong: images that lie nearer to another class, or far from all others of their class."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from udml_core.base.arrays import Booleans, Floats, Integers
from udml_core.numerics.refinement.linear import unit_rows

FEWEST_NAMED = 3
"""Fewest images of a class whose middle says something."""
FEWEST_SPREAD, FENCE = 8, 1.5
"""Fewest images of a class whose distances have a fence, and its width: beyond the farthest quarter by this many times
the width of the middle half."""


class Doubts(NamedTuple):
    """Named images that may have the wrong class, the most doubtful first.

    Attributes:
        rows: Rows (m,) of the images.
        nearer: Class (m,) that each lies nearer to; −1 if it only lies far from the others of its own.
    """

    rows: Integers
    nearer: Integers


def find_doubts(points: Floats, codes: Integers, is_open: Booleans) -> Doubts:
    """Return the named images that may have the wrong class.

    An image is compared with the middle of its class without itself, and with the middles of the other classes.

    Args:
        points: Embedding (n, d).
        codes: Class (n,) of each named image; −1 for the others.
        is_open: Whether an image (n,) may be doubtful; other images only form the middles of their classes.
    """
    rows = np.flatnonzero(codes >= 0)
    classes, own, sizes = np.unique(codes[rows], return_inverse=True, return_counts=True)
    if not len(rows) or sizes.max() < FEWEST_NAMED:
        return Doubts(rows[:0], rows[:0])
    images = np.asarray(points[rows], np.float32)
    lengths = np.sqrt(np.einsum("md,md->m", images, images))
    scale, squares = 1 / np.maximum(lengths, 1e-12), (lengths > 0).astype(float)  # of unit vectors, never formed
    members = sparse.csr_array((scale, own, np.arange(len(rows) + 1)), (len(rows), len(classes)))
    sums = np.asarray(members.T @ images)
    products, of_sums = (images @ sums.T).astype(float) * scale[:, None], (sums.astype(float) ** 2).sum(axis=1)
    distances = squares[:, None] - 2 * products / sizes + of_sums / sizes ** 2
    others, to_sum = np.maximum(sizes[own] - 1, 1), products[np.arange(len(rows)), own]
    to_own = squares - 2 * (to_sum - squares) / others + (of_sums[own] - 2 * to_sum + squares) / others ** 2
    distances[:, sizes < FEWEST_NAMED] = np.inf
    distances[np.arange(len(rows)), own] = np.inf
    margin = np.where(sizes[own] >= FEWEST_NAMED, to_own - distances.min(axis=1), -np.inf)
    doubtful = (margin > 0) | (to_own > _fences(to_own, own, sizes)[own])
    found = np.flatnonzero(doubtful & is_open[rows])
    found = found[np.lexsort((-to_own[found], -margin[found]))]
    return Doubts(rows[found], np.where(margin[found] > 0, classes[distances[found].argmin(axis=1)], -1))


def unlike_rows(points: Floats, codes: Integers, rows: Integers, code: int) -> Integers:
    """Return which of some images look unlike a class, before they get its name.

    An image looks unlike it if it lies nearer to the middle of another class, or farther from the class than its fence.

    Args:
        points: Embedding (n, d).
        codes: Class (n,) of each named image; −1 for the others.
        rows: Rows (m,) of the images.
        code: The class.
    """
    named = np.array(codes, int)
    named[rows] = -1  # the images say nothing about where the class lies
    sizes = np.bincount(named[named >= 0], minlength=code + 1)
    classes = np.flatnonzero(sizes >= FEWEST_NAMED)
    if code not in classes:
        return rows[:0]
    images, to_middle = unit_rows(points[rows]), np.full((len(rows), len(sizes)), np.inf)
    for each in classes.tolist():
        to_middle[:, each] = _to_middle(images, unit_rows(points[named == each]).mean(axis=0))
    to_class = to_middle[:, code].copy()
    to_middle[:, code] = np.inf
    members = unit_rows(points[named == code])
    without = (members.sum(axis=0) - members) / (len(members) - 1)
    fence = _fences(_to_middle(members, without), np.zeros(len(members), int), sizes[[code]])[0]
    return rows[(to_class > to_middle.min(axis=1)) | (to_class > fence)]


def _to_middle(points: Floats, middles: Floats) -> Floats:
    """Return the squared distance (m,) of each image (m, d) to a middle (d,), or to its own (m, d)."""
    return np.asarray(((points - middles) ** 2).sum(axis=1))


def _fences(distances: Floats, own: Integers, sizes: Integers) -> Floats:
    """Return the distance (c,) beyond which an image is far from its class; infinite for small classes."""
    fences = np.full(len(sizes), np.inf)
    for code in np.flatnonzero(sizes >= FEWEST_SPREAD).tolist():
        low, high = np.percentile(distances[own == code], [25, 75])
        fences[code] = high + FENCE * (high - low)
    return fences
