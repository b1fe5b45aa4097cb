"""Clusters, neighborhoods and similarities, compared with labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from udml_core.base.arrays import WIDE, Array
from udml_core.numerics.evaluation.structure import same_distances

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Functions import scikit-learn and SciPy at first use, because both slow the start of the command line.

KMEANS_SEED = 0
KMEANS_RESTARTS = 3


def kmeans_clusters(embeddings: Array, count: int) -> Array:
    """Return the k-means clusters (n,) int of points, with k = `count`.

    The start is k-means++ with seed 0; the best of 3 restarts counts.
    """
    from sklearn.cluster import KMeans

    is_wide = embeddings.shape[1] >= WIDE and embeddings.shape[1] > len(embeddings)
    points = same_distances(embeddings) if is_wide else np.ascontiguousarray(embeddings, dtype=np.float32)
    return KMeans(count, random_state=KMEANS_SEED, n_init=KMEANS_RESTARTS).fit_predict(points)


def nmi(clusters: Array, labels: Array) -> float:
    """Compute the normalized mutual information of two labelings (n,).

    It is I / ((H(clusters) + H(labels))/2).
    """
    from sklearn.metrics import normalized_mutual_info_score

    return float(normalized_mutual_info_score(labels, clusters, average_method="arithmetic"))


def pairwise_f(clusters: Array, labels: Array) -> dict[str, float]:
    """Compute precision, recall and their harmonic mean f over pairs of points.

    A pair is predicted if both points share a cluster, and true if they share a label. An empty denominator gives 0.
    """
    table = _contingency(clusters, labels)
    predicted, true = _count_pairs(table.sum(axis=1)), _count_pairs(table.sum(axis=0))
    correct = _count_pairs(table.data)
    precision = correct / predicted if predicted else 0.0
    recall = correct / true if true else 0.0
    f = 2 * precision * recall / (precision + recall) if correct else 0.0
    return {"precision": precision, "recall": recall, "f": f}


def label_purity(clusters: Array, labels: Array) -> float:
    """Compute the share of points with their cluster's majority label.

    It is Σ_c max_y n_cy / n.
    """
    return float(_contingency(clusters, labels).max(axis=1).sum() / len(np.asarray(labels)))


def neighborhood_purity(neighbors: Array, members: Array, labels: Array) -> tuple[float, float]:
    """Compute the mean purity and the mean size of neighborhoods (PLM table 2).

    A neighborhood is a point with its members; its purity is the share of its majority label. Small neighborhoods are
    purer by chance, so report both numbers.

    Args:
        neighbors: (n, k) int, row numbers of the candidates.
        members: (n, k) bool, which candidates belong to the neighborhood.
        labels: (n,).
    """
    labels = np.asarray(labels)
    belongs = np.column_stack([np.ones(len(labels), dtype=bool), members])
    own_and_neighbors = labels[np.column_stack([np.arange(len(labels)), neighbors])]
    equal = (own_and_neighbors[:, :, None] == own_and_neighbors[:, None, :]) & belongs[:, None, :]
    majority = np.where(belongs, equal.sum(axis=2), 0).max(axis=1)
    sizes = belongs.sum(axis=1)
    return float((majority / sizes).mean()), float(sizes.mean())


def similarity_correlation(similarities: Array, labels: Array) -> float:
    """Compute Pearson's correlation between a similarity and label equality.

    It is over all pairs i < j of the symmetric similarities (n, n).
    """
    labels = np.asarray(labels)
    pairs = np.triu_indices(len(labels), 1)
    return float(np.corrcoef(np.asarray(similarities)[pairs], labels[pairs[0]] == labels[pairs[1]])[0, 1])


def _contingency(clusters: Array, labels: Array) -> csr_array:
    """Count the points of each cluster and label, (clusters, labels)."""
    from scipy.sparse import csr_array

    clusters, labels = np.asarray(clusters), np.asarray(labels)
    if clusters.shape != labels.shape or clusters.ndim != 1 or not len(clusters):
        raise ValueError(f"Clusters and labels must be lists of equal length, got {clusters.shape} and {labels.shape}.")
    rows, columns = (np.unique(values, return_inverse=True)[1] for values in (clusters, labels))
    table = csr_array((np.ones(len(rows), dtype=np.int64), (rows, columns)))
    table.sum_duplicates()
    return table


def _count_pairs(sizes: Array) -> float:
    sizes = np.asarray(sizes, dtype=np.float64)
    return float((sizes * (sizes - 1) / 2).sum())
