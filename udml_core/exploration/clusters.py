"""What authority ascent found at an ε and γ: sizes, purity, members, paths, and what a move of the slider changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from udml_core.arrays import Array
from udml_core.evaluation import label_purity, nmi
from udml_core.explanations import Clusters
from udml_core.graph import AuthorityGraph

Graph = AuthorityGraph
"""What clusters are re-formed from."""


@dataclass(frozen=True)
class Summary:
    """count: clusters. sizes (c,): images of each. singletons: clusters of one. coverage: the share of images in
    clusters of two or more. purity, nmi: against labels, None without them."""

    count: int
    sizes: Array
    singletons: int
    coverage: float
    purity: float | None
    nmi: float | None


def summary(clusters: Clusters, labels: Array | None = None) -> Summary:
    """The numbers of a clustering of n points, against labels (n,) where there are any."""
    found = np.asarray(clusters.labels)
    sizes = np.bincount(found, minlength=len(clusters.modes))
    alone = int((sizes == 1).sum())
    return Summary(len(sizes), sizes, alone, 1 - alone / len(found),
                   None if labels is None else label_purity(found, labels),
                   None if labels is None else nmi(found, labels))


def rescaled(graph: Graph) -> Graph:
    """The same graph with n·ω in the exponent of ψ, where γ has an effect."""
    return replace(graph, rescaled=True, _staircase=None)


def sweep(graph: Graph, epsilons: Sequence[float], gamma: float,
          labels: Array | None = None) -> list[Summary]:
    """The numbers at each ε."""
    return [summary(graph.clusters(epsilon, gamma), labels) for epsilon in epsilons]


def cluster_purity(clusters: Clusters, labels: Array) -> tuple[Array, Array]:
    """Of each cluster, the most frequent label (c,), and the share of its points that carry it (c,)."""
    found = np.asarray(clusters.labels)
    classes = int(labels.max(initial=0)) + 1
    keys, counts = np.unique(found * classes + labels, return_counts=True)
    order = np.lexsort((-counts, keys // classes))
    first = order[np.r_[True, np.diff(keys[order] // classes) > 0]]
    sizes = np.bincount(found, minlength=len(clusters.modes))
    return keys[first] % classes, counts[first] / sizes


def moved(before: Array, after: Array) -> Array:
    """Points (m,) that left their cluster between two clusterings (n,) of the same points, ascending.

    Each old cluster goes on as the new one that holds most of it, the first of equals; whoever is elsewhere has moved.
    """
    width = int(after.max(initial=0)) + 1
    keys, counts = np.unique(before * width + after, return_counts=True)
    order = np.lexsort((-counts, keys // width))
    first = order[np.r_[True, np.diff(keys[order] // width) > 0]]
    heirs = np.zeros(int(before.max(initial=0)) + 1, dtype=np.int64)
    heirs[keys[first] // width] = keys[first] % width
    return np.flatnonzero(heirs[before] != after)


def ascent_path(clusters: Clusters, point: int) -> list[int]:
    """The points from one to its authority, both included."""
    path = [int(point)]
    while (parent := int(clusters.parents[path[-1]])) != path[-1]:
        path.append(parent)
    return path


def members(clusters: Clusters, cluster: int, vectors: Array) -> Array:
    """The points (m,) of a cluster by their closeness to its center in `vectors` (n, l), so the medoid is first.

    For squared Euclidean distances the member nearest to the mean is the one of least total distance to the others.
    """
    inside = np.flatnonzero(np.asarray(clusters.labels) == cluster)
    rows = np.asarray(vectors[inside], dtype=np.float32)
    return inside[np.argsort(((rows - rows.mean(axis=0)) ** 2).sum(axis=1), kind="stable")]
