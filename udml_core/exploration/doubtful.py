"""Named images that may be wrong: images that lie nearer to another class, or far from all others of their class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from udml_core.base.arrays import Booleans, Floats, Integers

FEWEST_NAMED = 3
"""Fewest images of a class whose middle says something."""
MARGIN, FAR = 0.2, 2.0
"""How much nearer another class is to a doubtful image, and how far the image is from its own, in spreads of its own.
Of 1,019 names of 100 species of birds with 50 wrong ones among them, these found 49 in 58 doubts; any nearer class, and
a fence beyond the farthest quarter of a class, found 50 in 119, and asked in vain before 33 of 108 pure groups got the
name of their species in place of 9."""


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

    An image is compared with the middle of its class without itself, and with the middles of the other classes, in
    spreads of its class: the mean squared distance of its images to the middle of the others.

    Args:
        points: Embedding (n, d).
        codes: Class (n,) of each named image; −1 for the others.
        is_open: Whether an image (n,) may be doubtful; other images only form the middles of their classes.
    """
    rows = np.flatnonzero(codes >= 0)
    classes = _classes_of(points, codes)
    if not classes.sizes.max(initial=0) >= FEWEST_NAMED:
        return Doubts(rows[:0], rows[:0])
    own, distances = np.searchsorted(classes.codes, codes[rows]), classes.distances(points[rows])
    distances[np.arange(len(rows)), own] = np.inf
    to_own, to_other = classes.to_own, distances.min(axis=1)
    doubtful = _look_unlike(to_own, to_other, classes.spreads[own]) & (classes.sizes[own] >= FEWEST_NAMED)
    margin = (to_own - to_other) / np.maximum(classes.spreads[own], 1e-12)
    found = np.flatnonzero(doubtful & is_open[rows])
    found = found[np.lexsort((-to_own[found], -margin[found]))]
    return Doubts(rows[found], np.where(margin[found] > 0, classes.codes[distances[found].argmin(axis=1)], -1))


def unlike_rows(points: Floats, codes: Integers, rows: Integers, code: int) -> Integers:
    """Return which of some images look unlike a class, before they get its name.

    An image looks unlike it as a named image is doubtful; see `find_doubts`.

    Args:
        points: Embedding (n, d).
        codes: Class (n,) of each named image; −1 for the others.
        rows: Rows (m,) of the images.
        code: The class.
    """
    named = np.array(codes, int)
    named[rows] = -1  # the images say nothing about where the class lies
    classes = _classes_of(points, named)
    own = int(np.searchsorted(classes.codes, code))
    if code not in classes.codes or classes.sizes[own] < FEWEST_NAMED:
        return rows[:0]
    distances = classes.distances(points[rows])
    to_class = distances[:, own].copy()
    distances[:, own] = np.inf
    return rows[_look_unlike(to_class, distances.min(axis=1), classes.spreads[own])]


def _look_unlike(to_class: Floats, to_other: Floats, spread: Floats) -> Booleans:
    """Return which images (m,) look unlike a class, by their distances to it and to the nearest other class."""
    return np.asarray((to_class > FAR * spread) | (to_class - to_other > MARGIN * spread), bool)


@dataclass(frozen=True)
class _Classes:
    """The classes of named images, by squared distances between unit vectors.

    Attributes:
        codes: The classes (c,), ascending.
        sizes: Number (c,) of images of each.
        sums: Sum (c, d) of the unit vectors of each.
        to_own: Distance (m,) of each named image to the middle of the others of its class.
        spreads: Mean (c,) of these in each class.
    """

    codes: Integers
    sizes: Integers
    sums: Floats
    to_own: Floats
    spreads: Floats

    def distances(self, points: Floats) -> Floats:
        """Return the distance (m, c) of images (m, d) to the middle of each class; infinite to classes of few images.
        """
        products, squares = _products(points, self.sums)
        distances = squares[:, None] - 2 * products / self.sizes + (self.sums ** 2).sum(axis=1) / self.sizes ** 2
        distances[:, self.sizes < FEWEST_NAMED] = np.inf
        return np.asarray(distances)


def _classes_of(points: Floats, codes: Integers) -> _Classes:
    """Return the classes of the named images (n,) of an embedding (n, d); −1 is no class."""
    rows = np.flatnonzero(codes >= 0)
    classes, own, sizes = np.unique(codes[rows], return_inverse=True, return_counts=True)
    images = np.asarray(points[rows], np.float32)
    members = sparse.csr_array((_scales(images)[0], own, np.arange(len(rows) + 1)), (len(rows), len(classes)))
    sums = np.asarray(members.T @ images, float)
    products, squares = _products(images, sums)
    others, to_sum = np.maximum(sizes[own] - 1, 1), products[np.arange(len(rows)), own]
    of_sums = (sums ** 2).sum(axis=1)
    to_own = squares - 2 * (to_sum - squares) / others + (of_sums[own] - 2 * to_sum + squares) / others ** 2
    return _Classes(classes, sizes, sums, to_own, np.bincount(own, to_own, len(classes)) / np.maximum(sizes, 1))


def _scales(images: Floats) -> tuple[Floats, Floats]:
    """Return what makes images (m, d) unit vectors, which are never formed, and their squared lengths then, 0 or 1."""
    lengths = np.sqrt(np.einsum("md,md->m", images, images))
    return 1 / np.maximum(lengths, 1e-12), (lengths > 0).astype(float)


def _products(points: Floats, sums: Floats) -> tuple[Floats, Floats]:
    """Return the products (m, c) of the unit vectors of images (m, d) with sums (c, d), and their squared lengths."""
    images = np.asarray(points, np.float32)
    scales, squares = _scales(images)
    return (images @ sums.T.astype(np.float32)).astype(float) * scales[:, None], squares
