"""Retrieval measures: hits among the nearest points, and stable neighbors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from udml_core.base.arrays import Array, Booleans, Integers
from udml_core.numerics.evaluation.ranking import Distances, rankings, row_chunks


@dataclass(frozen=True)
class RetrievalMeasures:
    """Measures of rankings, computed together.

    Attributes:
        recalls: Recall@k by k.
        mean_precisions: mprec@k by k.
        average_precisions: Average precision at R of each query, (m,); NaN for one whose class has no other point.
        first_hits: Whether the nearest point of each query has its class, (m,).
    """

    recalls: dict[int, float]
    mean_precisions: dict[int, float]
    average_precisions: Array
    first_hits: Booleans

    @property
    def map_at_r(self) -> tuple[float, int]:
        """The mean average precision, NaN without any, and the number of queries without another point of a class."""
        counted = ~np.isnan(self.average_precisions)
        return (float(self.average_precisions[counted].mean()) if counted.any() else float("nan"),
                int((~counted).sum()))


def retrieval_measures(embeddings: Array, labels: Array, ks: Sequence[int] = (), depths: Sequence[int] = (),
                       whole: bool = False, asked: Integers | None = None,
                       report: Callable[[float], None] = lambda _: None) -> RetrievalMeasures:
    """Compute Recall@k, mprec@k and average precisions at R from one ranking of each query.

    Args:
        embeddings: (n, d), n ≥ 2.
        labels: (n,) int, or for mprec@k alone (n, c) bool if images have several classes or none.
        ks: The cut-offs of Recall@k, each at least 1; see `recall_at_k`.
        depths: The cut-offs of mprec@k, each at least 1; see `mean_precision_at_k`.
        whole: Whether to compute average precisions; see `average_precisions`.
        asked: Rows (m,) of the queries; all points if None. The others remain in the gallery.
        report: Receives the completed share, from 0 to 1.

    Raises:
        ValueError: A cut-off is below 1, or the labels do not match the embeddings.
    """
    labels = np.asarray(labels)
    classes = labels.astype(bool) if labels.ndim == 2 and not (ks or whole) else None
    labels = _check_labels(embeddings, labels if classes is None else np.zeros(len(labels), np.int64))
    for name, cuts in (("Recall@k", ks), ("mprec@k", depths)):
        if any(k < 1 for k in cuts):
            raise ValueError(f"{name} needs k ≥ 1, got {tuple(cuts)}.")
    numbers, sizes = np.unique(labels, return_inverse=True, return_counts=True)[1:]
    others = sizes[numbers] - 1
    most = len(labels) - 1
    deepest = min(most, max([1, *ks, *depths, int(others.max()) if whole else 0]))
    shallow = min(most, max(depths, default=0))
    count = len(labels) if asked is None else len(asked)
    first, scores = np.full(count, deepest), np.full(count, np.nan)
    sums = np.zeros((len(sizes) if classes is None else classes.shape[1], shallow))
    asked_of = np.zeros(len(sums))
    done = 0
    for queries, neighbors in rankings(embeddings, deepest, asked):
        hits = labels[neighbors] == labels[queries, None]
        part = slice(done, done + len(queries))
        first[part] = np.where(hits.any(axis=1), hits.argmax(axis=1), deepest)
        if whole:
            scores[part] = _average_precisions(hits, others[queries])
        if shallow:
            near, own = hits[:, :shallow], numbers[queries]
            if classes is not None:
                rows, own = np.nonzero(classes[queries])
                near = classes[neighbors[rows, :shallow], own[:, None]]
            np.add.at(sums, own, np.cumsum(near, axis=1))
            asked_of += np.bincount(own, minlength=len(sums))
        done += len(queries)
        report(done / count)
    means = np.full(shallow, np.nan)
    if asked_of.any():
        means = (sums[asked_of > 0] / asked_of[asked_of > 0, None]).mean(axis=0) / np.arange(1, shallow + 1)
    return RetrievalMeasures({k: float((first < min(k, deepest)).mean()) for k in ks},
                             {k: float(means[min(k, shallow) - 1]) for k in depths}, scores, first == 0)


def _average_precisions(hits: Booleans, others: Integers) -> Array:
    """Return the average precision (q,) at R of rankings with hits (q, k), where R ≤ k differs by query."""
    ranks = np.arange(1, hits.shape[1] + 1)
    counted = hits & (ranks <= others[:, None])
    scores = (np.cumsum(counted, axis=1) / ranks * counted).sum(axis=1) / np.maximum(others, 1)
    return np.where(others > 0, scores, np.nan)


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
    return retrieval_measures(embeddings, labels, ks).recalls


def nearest_is_hit(embeddings: Array, labels: Array) -> Booleans:
    """Return for each point whether its nearest point is of the same class; the mean is Recall@1.

    Args:
        embeddings: (n, d), n ≥ 2.
        labels: (n,) int.
    """
    return retrieval_measures(embeddings, labels).first_hits


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
    return retrieval_measures(embeddings, labels, whole=True, report=report).average_precisions


def map_at_r(embeddings: Array, labels: Array) -> tuple[float, int]:
    """Compute MAP@R, the mean average precision at R.

    Args:
        embeddings: (n, d), n ≥ 2.
        labels: (n,) int.

    Returns:
        The mean of `average_precisions` over the points with another point of their class (NaN if there are none), and
        the number of the other points.
    """
    return retrieval_measures(embeddings, labels, whole=True).map_at_r


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
    return retrieval_measures(embeddings, labels, depths=ks).mean_precisions


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
