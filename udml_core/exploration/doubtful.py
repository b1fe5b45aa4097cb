"""Named images that may be wrong: images that lie nearer to another class, or far from all others of their class."""

from __future__ import annotations

import numpy as np
from scipy import sparse

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
    return rows[found[np.lexsort((-to_own[found], -margin[found]))]]


def _fences(distances: Floats, own: Integers, sizes: Integers) -> Floats:
    """Return the distance (c,) beyond which an image is far from its class; infinite for small classes."""
    fences = np.full(len(sizes), np.inf)
    for code in np.flatnonzero(sizes >= FEWEST_SPREAD).tolist():
        low, high = np.percentile(distances[own == code], [25, 75])
        fences[code] = high + FENCE * (high - low)
    return fences
