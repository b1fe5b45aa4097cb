"""Failed queries: confused classes, and the epoch in which a query became a hit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from udml_core.base.arrays import Array, Booleans, rows_of
from udml_core.numerics.evaluation import rankings


@dataclass(frozen=True)
class ConfusedPair:
    """Two confused classes.

    Attributes:
        own: Class of the queries.
        other: Class of their nearest images.
        count: Number of such queries.
    """

    own: int
    other: int
    count: int


@dataclass(frozen=True)
class Atlas:
    """The nearest image of each query among the other queries.

    Attributes:
        queries: (t,) data set indices.
        nearest: (t,) data set index of each query's nearest image.
        classes: (t,) classes of the queries.
        nearest_classes: (t,) classes of the nearest images.
    """

    queries: Array
    nearest: Array
    classes: Array
    nearest_classes: Array

    @property
    def misses(self) -> Array:
        """(t,) bool, whether a query's nearest image has another class."""
        return self.classes != self.nearest_classes

    @cached_property
    def pairs(self) -> tuple[ConfusedPair, ...]:
        """The confused classes, most frequent first; ties are sorted by class."""
        missed = np.stack([self.classes, self.nearest_classes], axis=1)[self.misses]
        confused, counts = np.unique(missed, axis=0, return_counts=True)
        return tuple(ConfusedPair(int(confused[row, 0]), int(confused[row, 1]), int(counts[row]))
                     for row in np.argsort(-counts, kind="stable"))

    @property
    def recall(self) -> float:
        """Recall@1, as defined in `udml_core.numerics.evaluation`."""
        return float(1 - self.misses.mean())

    def recall_by_class(self, count: int) -> Array:
        """Return Recall@1 of each class, (count,); NaN for a class without queries."""
        sizes = np.bincount(self.classes, minlength=count)
        hits = np.bincount(self.classes[~self.misses], minlength=count)
        return np.divide(hits, sizes, out=np.full(count, np.nan), where=sizes > 0)

    def of_queries(self, kept: Booleans) -> Atlas:
        """Return the atlas of some queries (t,); the others stay in the gallery."""
        return Atlas(*(each[kept] for each in (self.queries, self.nearest, self.classes, self.nearest_classes)))

    def members(self, own: int, other: int) -> Array:
        """Return the queries of one class whose nearest image has the other class.

        They are rows (m,).
        """
        return np.flatnonzero((self.classes == own) & (self.nearest_classes == other))


def failed_rows(atlas: Atlas, label: int | None = None) -> Array:
    """Return the rows (m,) of failed queries, the most frequent pair of confused classes first.

    Args:
        atlas: The nearest image of each query.
        label: The class of the queries; None for all.
    """
    pairs = [pair for pair in atlas.pairs if label in (None, pair.own)]
    return np.concatenate([np.zeros(0, np.int64), *(atlas.members(pair.own, pair.other) for pair in pairs)])


def nearest_other(embeddings: Array, report: Callable[[float], None] = lambda _: None) -> Array:
    """Return the row of each point's nearest other point.

    Args:
        embeddings: (n, l) with n ≥ 2.
        report: Receives the completed share, from 0 to 1.

    Returns:
        (n,) rows.
    """
    nearest = np.empty(len(embeddings), dtype=np.int64)
    for rows, neighbors in rankings(embeddings, 1):
        nearest[rows] = neighbors[:, 0]
        report((int(rows[-1]) + 1) / len(nearest))
    return nearest


def failure_atlas(embeddings: Array, queries: Array, labels: Array,
                  report: Callable[[float], None] = lambda _: None) -> Atlas:
    """Find the nearest image of each query among the other queries.

    Args:
        embeddings: (t, l) embeddings of the queries.
        queries: (t,) data set indices of the queries.
        labels: (t,) classes of the queries.
        report: Receives the completed share, from 0 to 1.
    """
    rows = nearest_other(embeddings, report)
    return Atlas(queries, queries[rows], labels, labels[rows])


@dataclass(frozen=True)
class NeighborHistory:
    """The nearest image of each image of the fixed sample, by epoch.

    Attributes:
        indices: (s,) data set indices of the sample, ascending.
        epochs: Epoch numbers; 0 is before training.
        nearest: (e, s) row of the nearest image in the sample.
        hits: (e, s) bool, whether the nearest image has the same class; None without classes.
    """

    indices: Array
    epochs: tuple[int, ...]
    nearest: Array
    hits: Array | None

    def row(self, index: int) -> int | None:
        """Return the sample's row of an image, or None if the sample does not contain it."""
        row = int(rows_of(self.indices, index))
        return None if row < 0 else row


def history(indices: Array, epochs: tuple[int, ...], samples: Iterable[Array], labels: Array | None,
            report: Callable[[float], None] = lambda _: None) -> NeighborHistory:
    """Find the nearest images of the sample after every epoch.

    Args:
        indices: (s,) data set indices of the sample, ascending.
        epochs: Epoch numbers.
        samples: The sample's embeddings (s, l) of each epoch.
        labels: (s,) classes, or None.
        report: Receives the completed share, from 0 to 1.
    """
    nearest = np.empty((len(epochs), len(indices)), dtype=np.int64)
    for step, embeddings in enumerate(samples):
        nearest[step] = nearest_other(embeddings)
        report((step + 1) / len(epochs))
    return NeighborHistory(indices, epochs, nearest, None if labels is None else labels[nearest] == labels)


def hit_since(hits: Array) -> Array:
    """Return the first row from which each column of `hits` (e, s) stays true, (s,).

    A column whose last value is false gets e.
    """
    return len(hits) - np.logical_and.accumulate(hits[::-1], axis=0).sum(axis=0)


def last_hit(hits: Array) -> Array:
    """Return the last row in which each column of `hits` (e, s) is true, (s,).

    The value is −1 if a column is never true.
    """
    return np.where(hits.any(axis=0), len(hits) - 1 - hits[::-1].argmax(axis=0), -1)
