"""Clusters of authority ascent at an ε and a γ.

The module computes sizes, purity, members, paths, and the effect of moving a slider.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from udml_core.base.arrays import Array
from udml_core.numerics.evaluation import label_purity, nmi
from udml_core.numerics.explanations import Clusters
from udml_core.numerics.graph import AuthorityGraph

Graph = AuthorityGraph
"""The graph from which the clusters are formed again when a slider moves."""


@dataclass(frozen=True)
class Summary:
    """Statistics of a clustering.

    Attributes:
        count: Number of clusters.
        sizes: (c,) images in each cluster.
        singletons: Number of clusters of one image.
        coverage: Share of the images in clusters of two or more.
        purity: Purity against the labels; None without labels.
        nmi: Normalized mutual information with the labels; None without labels.
    """

    count: int
    sizes: Array
    singletons: int
    coverage: float
    purity: float | None
    nmi: float | None


def cluster_summary(clusters: Clusters, labels: Array | None = None) -> Summary:
    """Compute the statistics of a clustering of n points.

    The clusters are compared with labels (n,) if there are any.
    """
    assignment = np.asarray(clusters.labels)
    sizes = np.bincount(assignment, minlength=len(clusters.modes))
    singletons = int((sizes == 1).sum())
    return Summary(len(sizes), sizes, singletons, 1 - singletons / len(assignment),
                   None if labels is None else label_purity(assignment, labels),
                   None if labels is None else nmi(assignment, labels))


def rescale_authority(graph: Graph) -> Graph:
    """Return the graph with n·ω in the exponent of ψ.

    With n·ω instead of ω, γ has an effect.
    """
    return replace(graph, rescaled=True, _staircase=None)


def summaries_over(graph: Graph, epsilons: Sequence[float], gamma: float,
          labels: Array | None = None) -> list[Summary]:
    """Compute the statistics of the clusters at each ε."""
    return [cluster_summary(graph.clusters(epsilon, gamma), labels) for epsilon in epsilons]


def cluster_purity(clusters: Clusters, labels: Array) -> tuple[Array, Array]:
    """Return each cluster's most frequent label (c,) and its share of points (c,)."""
    assignment = np.asarray(clusters.labels)
    cluster, majority, counts = _most_frequent(assignment, labels)
    sizes = np.bincount(assignment, minlength=len(clusters.modes))
    return majority, counts / sizes[cluster]


def moved_points(before: Array, after: Array) -> Array:
    """Return the points that left their cluster between two clusterings.

    Each old cluster continues as the new cluster that contains most of its points, or the lowest-numbered on a tie.
    A point in any other new cluster has moved.

    Args:
        before: (n,) cluster of each point in the first clustering.
        after: (n,) cluster of each point in the second clustering.

    Returns:
        (m,) points, ascending.
    """
    cluster, successor, _ = _most_frequent(before, after)
    successors = np.zeros(int(before.max(initial=0)) + 1, dtype=np.int64)
    successors[cluster] = successor
    return np.flatnonzero(successors[before] != after)


def _most_frequent(groups: Array, values: Array) -> tuple[Array, Array, Array]:
    """Return groups (g,), their most frequent values (g,), and the counts (g,).

    The groups are ascending.
    """
    width = int(values.max(initial=0)) + 1
    keys, counts = np.unique(groups * width + values, return_counts=True)
    order = np.lexsort((-counts, keys // width))
    first = order[np.r_[True, np.diff(keys[order] // width) > 0]]
    return keys[first] // width, keys[first] % width, counts[first]


def ascent_path(clusters: Clusters, point: int) -> list[int]:
    """Return the points from a point to its authority, including both."""
    path = [int(point)]
    while (parent := int(clusters.parents[path[-1]])) != path[-1]:
        path.append(parent)
    return path


def members(clusters: Clusters, cluster: int, vectors: Array) -> Array:
    """Return a cluster's points (m,) by distance to its mean, the medoid first.

    For squared Euclidean distances, the point nearest to the mean has the least total distance to the others.

    Args:
        clusters: The clustering of n points.
        cluster: The cluster's number.
        vectors: (n, l) vectors of the points.
    """
    points = np.flatnonzero(np.asarray(clusters.labels) == cluster)
    rows = np.asarray(vectors[points], dtype=np.float32)
    return points[np.argsort(((rows - rows.mean(axis=0)) ** 2).sum(axis=1), kind="stable")]
