"""Measures of rankings: retrieval with labels, and reciprocity, hubness and stability without."""

from __future__ import annotations

import numpy as np

from udml_core.base.arrays import Array, Integers, rows_of

CHUNK = 4096


def retrieval_measures(indices: Integers, query_labels: Integers, gallery_labels: Integers,
                       inside: bool) -> dict[str, float]:
    """Compute Recall@1 and MAP@R of a ranking.

    A missing image (index −1, or beyond the last rank) is a miss. A query whose class has no gallery image counts as a
    miss in Recall@1, and is left out of MAP@R.

    Args:
        indices: Gallery indices (q, k), nearest first; k at least the largest number R of images to retrieve.
        query_labels: Class (q,) of each query.
        gallery_labels: Class (n,) of each gallery image.
        inside: Whether the queries are gallery images, which then do not count for R.

    Returns:
        `recall@1` and `map@r` in percent.
    """
    names, sizes = np.unique(gallery_labels, return_counts=True)
    position = rows_of(names, query_labels)
    relevant = np.where(position >= 0, sizes[position], 0) - int(inside)
    ranks = np.arange(1, indices.shape[1] + 1)
    first, scores = np.zeros(len(indices), bool), np.zeros(len(indices))
    for start in range(0, len(indices), CHUNK):
        part = slice(start, start + CHUNK)
        hits = (gallery_labels[indices[part]] == query_labels[part, None]) & (indices[part] >= 0)
        first[part] = hits[:, 0]
        counted = hits & (ranks <= relevant[part, None])
        precision = np.cumsum(counted, axis=1) / ranks
        scores[part] = (precision * counted).sum(axis=1) / np.maximum(relevant[part], 1)
    return {"recall@1": 100 * float(first.mean()), "map@r": 100 * float(scores[relevant > 0].mean())}


def label_free_measures(indices: Integers, before: Integers | None = None, k: int = 10) -> dict[str, float]:
    """Compute measures that need no labels.

    Reciprocity is the share of k nearest neighbors that are mutual. Hubness is the skewness of the number of neighbor
    lists in which an image occurs (Radovanović, Nanopoulos, Ivanović, JMLR 2010): near zero without hubs. Stability is
    the share of k nearest neighbors that are also neighbors in `before`.

    Args:
        indices: Indices (n, at least k) of the gallery's own images, nearest first.
        before: Indices (n, at least k) before the refinement.
        k: Number of neighbors; all columns if there are fewer.

    Returns:
        `reciprocity` and `neighbor stability` in percent, and `hubness`.
    """
    neighbors = indices[:, :k]
    count = len(neighbors)
    valid = neighbors.ravel() >= 0
    rows, columns = np.repeat(np.arange(count), neighbors.shape[1])[valid], neighbors.ravel()[valid]
    reciprocity = float(np.isin(rows * count + columns, columns * count + rows).mean())
    occurrences = np.bincount(columns, minlength=count).astype(float)
    deviation = occurrences.std()
    centered = occurrences - occurrences.mean()
    measures = {"reciprocity": 100 * reciprocity,
                "hubness": float((centered**3).mean() / deviation**3) if deviation > 0 else 0.0}
    if before is not None:
        shared = share_of_common(neighbors, before[:, :k])
        measures["neighbor stability"] = 100 * float(shared.mean())
    return measures


def share_of_common(after: Array, before: Array) -> Array:
    """Return the share (n,) of each row of `after` (n, k) that also occurs in the row of `before` (n, k)."""
    return np.concatenate([(after[start : start + CHUNK, :, None] == before[start : start + CHUNK, None, :]).any(axis=2)
                           .mean(axis=1) for start in range(0, len(after), CHUNK)])
