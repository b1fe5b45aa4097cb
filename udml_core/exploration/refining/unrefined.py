"""A gallery before any recipe: its images ranked by distance in the stored embedding."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from udml_core.base.arrays import Array, Floats, Integers
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.refinement.ranking_measures import label_free_measures

NEIGHBORS = 10
"""Number of neighbors in the label-free measures."""
SAMPLE = 600
"""Queries on which retrieval is measured."""


def rounded_sample(count: int, most: int) -> Integers:
    """Return at most `most` evenly spaced indices below `count`, each rounded; `arrays.evenly_spaced` truncates."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


def rank_rows(queries: Floats, rows: Floats, own: Integers, k: int) -> Integers:
    """Return the k rows (q, k) of largest product with each query, nearest first, without its own row (q,)."""
    products = queries @ rows.T
    products[np.arange(len(own)), own] = -np.inf
    if k >= len(rows) - 1:
        return np.argsort(-products, axis=1, kind="stable")[:, :k]
    columns = np.argpartition(-products, k, axis=1)[:, :k]
    columns.sort(axis=1)  # so that equal products go to the lowest index
    order = np.argsort(-np.take_along_axis(products, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)


class UnrefinedGallery:
    """A gallery in its stored embedding, ranked by Euclidean distance, as retrieval in the run does.

    Attributes:
        embedding: The stored embedding (n, d).
        queries: Rows (s,) of the sample of queries.
    """

    def __init__(self, embedding: Array, sample: int = SAMPLE) -> None:
        self.embedding = np.asarray(embedding, np.float32)
        self.queries = rounded_sample(len(self.embedding), sample)

    def __len__(self) -> int:
        return len(self.embedding)

    @cached_property
    def ranking(self) -> Integers:
        """Ranking (s, n − 1) of the gallery for the sample of queries."""
        return self.rank(self.queries)

    @cached_property
    def neighbors(self) -> Integers:
        """The nearest images (n, 10)."""
        return nearest(self.embedding, min(NEIGHBORS, len(self) - 1))[1]

    @cached_property
    def label_free(self) -> dict[str, float]:
        """Label-free measures of the embedding."""
        return label_free_measures(self.neighbors)

    def rank(self, queries: Integers) -> Integers:
        """Return the gallery (q, n − 1) by distance to queries (q,), nearest first."""
        # −½‖q − x‖² = q·x − ½‖x‖² − ½‖q‖², whose last term is the same for all x, so the first two rank by distance.
        centered = self.embedding - self.embedding.mean(axis=0)  # a common offset would cost digits
        ones, halves = np.ones((len(queries), 1), np.float32), -(centered**2).sum(axis=1, keepdims=True) / 2
        return rank_rows(np.hstack([centered[queries], ones]), np.hstack([centered, halves]), queries, len(self) - 1)
