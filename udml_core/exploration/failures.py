"""Queries whose nearest image is of another class: what they were taken for, and when they became right."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from udml_core.arrays import Array
from udml_core.evaluation import rankings


@dataclass(frozen=True)
class Pair:
    """So many queries of one class whose nearest image is of another."""

    own: int
    other: int
    count: int


@dataclass(frozen=True)
class Atlas:
    """Where each query's nearest other query leads.

    queries (t,): data set positions. nearest (t,): those of their nearest. classes, taken_for (t,): the classes of
    both.
    """

    queries: Array
    nearest: Array
    classes: Array
    taken_for: Array

    @property
    def misses(self) -> Array:
        """(t,) bool: whose nearest is of another class."""
        return self.classes != self.taken_for

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """The confused pairs of classes, most frequent first; of equals, the lower classes first."""
        missed = np.stack([self.classes, self.taken_for], axis=1)[self.misses]
        kinds, counts = np.unique(missed, axis=0, return_counts=True)
        return tuple(Pair(int(kinds[one, 0]), int(kinds[one, 1]), int(counts[one]))
                     for one in np.argsort(-counts, kind="stable"))

    @property
    def recall(self) -> float:
        """Recall@1, as `udml_core.evaluation` has it."""
        return float(1 - self.misses.mean())

    def recall_by_class(self, count: int) -> Array:
        """Recall@1 of each of `count` classes, (count,); NaN of those that no query is of."""
        sizes = np.bincount(self.classes, minlength=count)
        right = np.bincount(self.classes[~self.misses], minlength=count)
        return np.divide(right, sizes, out=np.full(count, np.nan), where=sizes > 0)

    def members(self, own: int, other: int) -> Array:
        """Rows (m,) of the queries of one class that were taken for another."""
        return np.flatnonzero((self.classes == own) & (self.taken_for == other))


def nearest_others(embeddings: Array, report: Callable[[float], None] = lambda _: None) -> Array:
    """The row of each point's nearest other one, (n,), of embeddings (n, l) with n ≥ 2."""
    found = np.empty(len(embeddings), dtype=np.int64)
    for rows, neighbors in rankings(embeddings, 1):
        found[rows] = neighbors[:, 0]
        report((int(rows[-1]) + 1) / len(found))
    return found


def failure_atlas(embeddings: Array, queries: Array, labels: Array,
                  report: Callable[[float], None] = lambda _: None) -> Atlas:
    """Ask with each of some images among the others of them.

    Args:
        embeddings: (t, l) of the queries. queries: (t,) their data set positions. labels: (t,) their classes.
    """
    rows = nearest_others(embeddings, report)
    return Atlas(queries, queries[rows], labels, labels[rows])


@dataclass(frozen=True)
class History:
    """The nearest other image of each image of the fixed sample, after every epoch.

    indices (s,): data set positions, ascending. epochs: their numbers, 0 is before training. nearest (e, s): rows.
    right (e, s) bool: whether it shares the class; None without classes.
    """

    indices: Array
    epochs: tuple[int, ...]
    nearest: Array
    right: Array | None

    def row(self, index: int) -> int | None:
        """Where an image of the data set stands in the sample."""
        place = int(np.searchsorted(self.indices, index))
        return place if place < len(self.indices) and self.indices[place] == index else None


def history(indices: Array, epochs: tuple[int, ...], samples: Iterable[Array], labels: Array | None,
            report: Callable[[float], None] = lambda _: None) -> History:
    """Look through the sample's embeddings (s, l) of every epoch; labels (s,) where there are any."""
    nearest = np.empty((len(epochs), len(indices)), dtype=np.int64)
    for place, embeddings in enumerate(samples):
        nearest[place] = nearest_others(embeddings)
        report((place + 1) / len(epochs))
    return History(indices, epochs, nearest, None if labels is None else labels[nearest] == labels)


def right_since(right: Array) -> Array:
    """The place (s,) from which on each column of `right` (e, s) is true to the end; e where its end is false."""
    return len(right) - np.logical_and.accumulate(right[::-1], axis=0).sum(axis=0)


def last_right(right: Array) -> Array:
    """The last place (s,) at which each column of `right` (e, s) is true; −1 where it never is."""
    return np.where(right.any(axis=0), len(right) - 1 - right[::-1].argmax(axis=0), -1)
