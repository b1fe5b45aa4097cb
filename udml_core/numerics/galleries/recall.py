"""The recall of a gallery compared with exact search."""

from __future__ import annotations

import numpy as np

from udml_core.numerics.galleries.gallery import StoredGallery, exact_neighbors
from udml_core.numerics.galleries.manifest import Manifest, Recall
from udml_core.numerics.neighbors.approximate import MARGIN, RECALL, recall_of
from udml_core.numerics.neighbors.centers import Report, ignore_progress, sample_rows
from udml_core.numerics.neighbors.exact import without_own

NEIGHBORS = 10
QUERIES = 500
"""Vectors on which the recall is measured: the first half chooses the probes, the second half measures."""
MOST_CANDIDATES = 100
"""Largest number of candidates per neighbor."""


class RecallSample:
    """Vectors of a gallery that are queries, and their true neighbors."""

    def __init__(self, gallery: StoredGallery, report: Report = ignore_progress) -> None:
        """Draw the sample, and search it exactly."""
        live = np.flatnonzero(gallery.live)
        self.rows = live[sample_rows(len(live), QUERIES, seed=1)]
        # In a random order, so that both halves are samples of the whole gallery.
        self.rows = np.random.default_rng(2).permutation(self.rows)
        self.queries = gallery.vectors(self.rows)
        self.k = min(NEIGHBORS, len(live) - 1)
        report(0.0, "measuring the recall")
        self.exact = without_own(*exact_neighbors(gallery.blocks(), self.queries, self.k + 1, gallery.live),
                                  self.rows)[1]

    def recall(self, gallery: StoredGallery, manifest: Manifest, part: slice) -> float:
        """Return the recall of a part of the sample at the values of a manifest."""
        nearest = gallery.search_rows(self.queries[part], self.k + 1, gallery.live, manifest)
        return recall_of(without_own(*nearest, self.rows[part])[1], self.exact[part])


def tune(gallery: StoredGallery, report: Report = ignore_progress) -> Manifest:
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


def _raise(gallery: StoredGallery, manifest: Manifest, name: str, first: int, most: int, sample: RecallSample,
           goal: float, **fixed: int) -> Manifest:
    """Double a value until the recall of the sample's first half reaches a goal."""
    half, value = len(sample.rows) // 2, first
    while True:
        tried = manifest.model_copy(update={name: value})
        if value >= most or sample.recall(gallery, tried.model_copy(update=fixed), slice(half)) >= goal:
            return tried
        value = min(2 * value, most)
