"""Retrieval measures: hits among the nearest points, and stable neighbors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from udml_core.base.arrays import Array, Booleans
from udml_core.numerics.evaluation.ranking import Distances, rankings, row_chunks


def recall_at_k(embeddings: Array, labels: Array, ks: Sequence[int] = (1, 2, 4, 8)) -> dict[int, float]:
    """Compute Recall@k: the share of points with a hit among the k nearest.

    A hit is another point of the same class. A point whose class has no other point is a miss at every k. If k exceeds
    n − 1, all other points count.

    Args:
        embeddings: (n, d), n ≥ 2.
        labels: (n,) int.
        ks: The cut-offs, each at least 1.

    Returns:
        {k: fraction}.

    Raises:
        ValueError: A cut-off is below 1, or the labels do not match the embeddings.
    """
    labels = _check_labels(embeddings, labels)
    if any(k < 1 for k in ks):
        raise ValueError(f"Recall@k needs k ≥ 1, got {tuple(ks)}.")
    deepest = min(max(ks), len(labels) - 1)
    first_hit = np.full(len(labels), np.iinfo(np.int64).max)
    for queries, neighbors in rankings(embeddings, deepest):
        hits = labels[neighbors] == labels[queries, None]
        has_hit = hits.any(axis=1)
        first_hit[queries[has_hit]] = hits[has_hit].argmax(axis=1)
    return {k: float((first_hit < k).mean()) for k in ks}


def nearest_is_hit(embeddings: Array, labels: Array) -> Booleans:
    """Return for each point whether its nearest point is of the same class; the mean is Recall@1.

    Args:
        embeddings: (n, d), n ≥ 2.
        labels: (n,) int.
    """
    labels = _check_labels(embeddings, labels)
    hits = np.zeros(len(labels), bool)
    for queries, neighbors in rankings(embeddings, 1):
        hits[queries] = labels[neighbors[:, 0]] == labels[queries]
    return hits


def recall_in_gallery(embeddings: Array, labels: Array, queries: Booleans, ks: Sequence[int]) -> dict[int, float]:
    """Compute Recall@k of queries among a gallery: the share of queries with a hit among their k nearest images of it.

    Args:
        embeddings: (n, d), queries and gallery.
        labels: (n,) int.
        queries: Mask (n,) of the queries; all other points are the gallery.
        ks: The cut-offs, each at least 1. If k exceeds the gallery, all of it counts.

    Returns:
        {k: fraction}.

    Raises:
        ValueError: There is no query or no gallery, or the labels do not match the embeddings.
    """
    labels = _check_labels(embeddings, labels)
    rows, gallery = torch.from_numpy(np.flatnonzero(queries)), torch.from_numpy(np.flatnonzero(~queries))
    if not len(rows) or not len(gallery):
        raise ValueError(f"Recall in a gallery needs queries and a gallery, got {len(rows)} and {len(gallery)}.")
    distances, deepest = Distances(embeddings), min(max(ks), len(gallery))
    first_hits = []
    for number in row_chunks(len(rows), len(labels)):
        keys = distances.keys(rows[number])[:, gallery]
        neighbors = gallery[torch.topk(keys, deepest, dim=1, largest=False, sorted=True).indices].numpy()
        hits = labels[neighbors] == labels[rows[number].numpy(), None]
        first_hits.append(np.where(hits.any(axis=1), hits.argmax(axis=1), deepest))
    first_hit = np.concatenate(first_hits)
    return {k: float((first_hit < min(k, deepest)).mean()) for k in ks}


def average_precisions(embeddings: Array, labels: Array, report: Callable[[float], None] = lambda _: None) -> Array:
    """Compute the average precision at R of every point.

    A point's value is (1/R_i) Σ_{r ≤ R_i} precision@r · hit(r), where R_i counts the other points of its class.

    Args:
        embeddings: (n, d), n ≥ 2.
        labels: (n,) int.
        report: Receives the completed share, from 0 to 1.

    Returns:
        (n,) fractions; NaN for a point with R_i = 0.

    References:
        K. Musgrave, S. Belongie, S.-N. Lim, "A Metric Learning Reality Check", ECCV 2020.
    """
    labels = _check_labels(embeddings, labels)
    _, inverse, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    others = sizes[inverse] - 1
    scores = np.full(len(labels), np.nan)
    deepest = int(others.max())
    if deepest == 0:
        return scores
    ranks = np.arange(1, deepest + 1)
    for queries, neighbors in rankings(embeddings, deepest):
        hits = (labels[neighbors] == labels[queries, None]) & (ranks <= others[queries, None])
        precision = np.cumsum(hits, axis=1) / ranks
        scores[queries] = (precision * hits).sum(axis=1) / np.maximum(others[queries], 1)
        report((int(queries[-1]) + 1) / len(labels))
    scores[others == 0] = np.nan
    return scores


def map_at_r(embeddings: Array, labels: Array) -> tuple[float, int]:
    """Compute MAP@R, the mean average precision at R.

    Args:
        embeddings: (n, d), n ≥ 2.
        labels: (n,) int.

    Returns:
        The mean of `average_precisions` over the points with another point of their class (NaN if there are none), and
        the number of the other points.
    """
    scores = average_precisions(embeddings, labels)
    counted = ~np.isnan(scores)
    return float(scores[counted].mean()) if counted.any() else float("nan"), int((~counted).sum())


def mean_precision_at_k(embeddings: Array, labels: Array, ks: Sequence[int] = (10,)) -> dict[int, float]:
    """Compute mprec@k (NML), the class mean of the precision among the k nearest.

    The precision is averaged over the points of each class, then over the classes. A point with several classes is a
    query for each of them. If k exceeds n − 1, all other points count.

    Args:
        embeddings: (n, d), n ≥ 2.
        labels: (n,) int, or (n, c) bool if images have several classes or none.
        ks: The cut-offs, each at least 1.

    Returns:
        {k: fraction}; NaN if no image has a class.

    Raises:
        ValueError: A cut-off is below 1, or the labels do not match the embeddings.
    """
    labels = np.asarray(labels)
    has_class = labels.astype(bool) if labels.ndim == 2 else None
    names = _check_labels(embeddings, labels if has_class is None else np.zeros(len(labels)))
    if any(k < 1 for k in ks):
        raise ValueError(f"mprec@k needs k ≥ 1, got {tuple(ks)}.")
    numbers = np.unique(names, return_inverse=True)[1]
    classes = has_class.shape[1] if has_class is not None else int(numbers.max()) + 1
    deepest = min(max(ks), len(labels) - 1)
    sums, counts = np.zeros((classes, deepest)), np.zeros(classes)
    for queries, neighbors in rankings(embeddings, deepest):
        if has_class is None:
            own, hits = numbers[queries], numbers[neighbors] == numbers[queries, None]
        else:
            rows, own = np.nonzero(has_class[queries])
            hits = has_class[neighbors[rows], own[:, None]]
        np.add.at(sums, own, np.cumsum(hits, axis=1))
        counts += np.bincount(own, minlength=classes)
    if not counts.any():
        return dict.fromkeys(ks, float("nan"))
    means = (sums[counts > 0] / counts[counts > 0, None]).mean(axis=0) / np.arange(1, deepest + 1)
    return {k: float(means[min(k, deepest) - 1]) for k in ks}


def neighbor_stability(before: Array, after: Array, k: int = 10) -> float:
    """Compute the mean share of k nearest neighbors common to two embeddings."""
    pairs = zip(rankings(before, k), rankings(after, k), strict=True)
    shared = [(old[:, :, None] == new[:, None, :]).any(axis=2).mean(axis=1) for (_, old), (_, new) in pairs]
    return float(np.concatenate(shared).mean())


def _check_labels(embeddings: Array, labels: Array) -> Array:
    labels = np.asarray(labels)
    if labels.shape != (len(embeddings),):
        raise ValueError(f"Labels must have one entry for each of the {len(embeddings)} embeddings, "
                         f"got shape {labels.shape}.")
    if len(labels) < 2:
        raise ValueError(f"Retrieval needs at least 2 embeddings, got {len(labels)}.")
    return labels
