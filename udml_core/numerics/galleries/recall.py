"""Exact search in blocks, and the recall of a gallery compared with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from udml_core.base.arrays import Array, Booleans, Floats, Integers
from udml_core.base.errors import UserError
from udml_core.numerics.galleries.manifest import Manifest, Recall
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.neighbors.approximate import MARGIN, RECALL, recall_of
from udml_core.numerics.neighbors.centers import Report, ignore_progress, sample_rows
from udml_core.numerics.neighbors.exact import without_self

if TYPE_CHECKING:
    from udml_core.numerics.galleries.gallery import Gallery

NEIGHBORS = 10
QUERIES = 500
"""Vectors on which the recall is measured: the first half chooses the probes, the second half measures."""
MOST_CANDIDATES = 100
"""Largest number of candidates per neighbor."""


def exact_neighbors(blocks: Iterable[tuple[Integers, Floats]], queries: Floats, k: int, mask: Booleans | None = None
                    ) -> tuple[Floats, Integers]:
    """Find the k nearest rows of each query by comparing all.

    Args:
        blocks: Row numbers (b,) and vectors (b, d) of each block.
        queries: Queries (q, d) float32.
        k: Number of rows, at most as many as there are.
        mask: Mask (n,) of the rows to search; all by default.

    Returns:
        Squared distances (q, k) float32, ascending, and row numbers (q, k).
    """
    distances: Array = np.zeros((len(queries), 0), np.float32)
    indices: Array = np.zeros((len(queries), 0), np.int64)
    for rows, vectors in blocks:
        if mask is not None:
            if rows.min() < 0 or rows.max() >= len(mask):
                raise UserError("The lists of the gallery name rows that it does not have. Build the gallery again.")
            kept = mask[rows]
            if not kept.all():
                rows, vectors = rows[kept], vectors[kept]
        if len(rows):
            squared, found = nearest(vectors, min(k, len(rows)), queries)
            distances = np.concatenate([distances, squared], axis=1)
            indices = np.concatenate([indices, rows[found]], axis=1)
            order = np.argsort(distances, axis=1, kind="stable")[:, :k]
            distances, indices = (np.take_along_axis(values, order, axis=1) for values in (distances, indices))
    return distances, indices


class RecallSample:
    """Vectors of a gallery that are queries, and their true neighbors."""

    def __init__(self, gallery: Gallery, report: Report = ignore_progress) -> None:
        """Draw the sample, and search it exactly."""
        live = np.flatnonzero(gallery.live)
        self.rows = live[sample_rows(len(live), QUERIES, seed=1)]
        # In a random order, so that both halves are samples of the whole gallery.
        self.rows = np.random.default_rng(2).permutation(self.rows)
        self.queries = gallery.vectors(self.rows)
        self.k = min(NEIGHBORS, len(live) - 1)
        report(0.0, "measuring the recall")
        self.exact = without_self(*exact_neighbors(gallery.blocks(), self.queries, self.k + 1, gallery.live),
                                  self.rows)[1]

    def recall(self, gallery: Gallery, manifest: Manifest, part: slice) -> float:
        """Return the recall of a part of the sample at the values of a manifest."""
        found = gallery.search_rows(self.queries[part], self.k + 1, gallery.live, manifest)
        return recall_of(without_self(*found, self.rows[part])[1], self.exact[part])


def tune(gallery: Gallery, report: Report = ignore_progress) -> Manifest:
    """Choose the probes and candidates on half of a sample, and measure the recall on the other half.

    Probes double until the recall is at least 95 % plus a margin. The candidates of an `ivf-pq` are first chosen among
    all lists, where only the codes limit the recall.

    Returns:
        The manifest with these values and the recall.
    """
    manifest = gallery.manifest
    if manifest.kind == "flat" or len(gallery) < 2:
        return manifest.model_copy(update={"recall": _recall(1.0, 0, manifest)})
    sample = RecallSample(gallery, report)
    half = len(sample.rows) // 2
    goal = RECALL + MARGIN
    if manifest.kind == "ivf-pq":
        manifest = _raise(gallery, manifest, "candidates", 2, MOST_CANDIDATES, sample, (1 + goal) / 2,
                          probes=manifest.lists)
    manifest = _raise(gallery, manifest, "probes", 1, manifest.lists, sample, goal)
    report(1.0, "measuring the recall")
    measured = sample.recall(gallery, manifest, slice(half, None))
    return manifest.model_copy(update={"recall": _recall(measured, len(sample.rows) - half, manifest)})


def _recall(recall: float, queries: int, manifest: Manifest) -> Recall:
    return Recall(recall=recall, queries=queries, rows=len(manifest), changes=manifest.changes)


def _raise(gallery: Gallery, manifest: Manifest, name: str, first: int, most: int, sample: RecallSample, goal: float,
           **fixed: int) -> Manifest:
    """Double a value until the recall of the sample's first half reaches a goal."""
    half, value = len(sample.rows) // 2, first
    while True:
        tried = manifest.model_copy(update={name: value})
        if value >= most or sample.recall(gallery, tried.model_copy(update=fixed), slice(half)) >= goal:
            return tried
        value = min(2 * value, most)
