"""The evaluation measures, the same for all methods.

Values are fractions unless stated otherwise. Neighbors are nearest by Euclidean distance, which for unit embeddings is
the order by cosine. Ties go to the lowest index, so the measures are defined for duplicates and equal on every machine.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from udml_core.arrays import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Functions import scikit-learn and SciPy at first use, because both slow the start of the command line.

CHUNK_ENTRIES = 1_500_000
"""Number of distances computed at once, few enough to stay in the processor's cache."""
QUANTUM = 1e-9
"""Resolution of squared distances, as a share of the largest squared norm. It is coarser than rounding errors."""
DISTORTION_NEIGHBORS = 12
KMEANS_SEED = 0
KMEANS_RESTARTS = 3
COSINE_QUANTUM = 1e-6
"""Resolution of cosines."""
PROBE_STEPS = 200
DEPTHS = range(1, 51)
"""The values of K in the curve of mprec@K."""


class _Distances:
    """Distances of points as integer keys that contain the distance and the index.

    Squared distances are rounded to a multiple of `QUANTUM`, which removes rounding errors. Ties are then exact, and
    the index in the key decides them.
    """

    def __init__(self, embeddings: Array) -> None:
        points = torch.as_tensor(np.asarray(embeddings, dtype=np.float64))
        self._points = points - points.mean(0)  # a common offset would cost digits without changing distances
        self._norms = self._points.square().sum(1)
        self._quantum = max(float(self._norms.max()), 1e-300) * QUANTUM

    def keys(self, rows: Tensor) -> Tensor:
        """Return the keys (q, n) int64 from points (q,) to all points.

        They are distinct and ascend with the distance; the own key is largest.
        """
        indices = torch.arange(len(self._points))
        squared = torch.addmm(self._norms[rows, None] + self._norms, self._points[rows], self._points.T, alpha=-2)
        keys = squared.div_(self._quantum).round_().clamp_min_(0).to(torch.int64).mul_(len(indices)).add_(indices)
        keys[torch.arange(len(rows)), rows] = torch.iinfo(torch.int64).max
        return keys


def rankings(embeddings: Array, k: int) -> Iterator[tuple[Array, Array]]:
    """Yield each point's k nearest other points in chunks.

    A chunk has queries (q,) and neighbors (q, k).

    Args:
        embeddings: (n, d).
        k: Number of neighbors, at most n − 1.
    """
    distances = _Distances(embeddings)
    for rows in _chunks(len(embeddings)):
        neighbors = torch.topk(distances.keys(rows), k, dim=1, largest=False, sorted=True).indices
        yield rows.numpy(), neighbors.numpy()


def _chunks(count: int) -> tuple[Tensor, ...]:
    """Split the row numbers into chunks (q,).

    The distances of a chunk to all points are computed together.
    """
    return torch.arange(count).split(max(1, CHUNK_ENTRIES // count))


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


def map_at_r(embeddings: Array, labels: Array) -> tuple[float, int]:
    """Compute MAP@R, the mean average precision at R.

    A point's value is (1/R_i) Σ_{r ≤ R_i} precision@r · hit(r), where R_i counts the other points of its class.

    Args:
        embeddings: (n, d), n ≥ 2.
        labels: (n,) int.

    Returns:
        The mean over the points with R_i > 0 (NaN if there are none), and the number of points with R_i = 0.

    References:
        K. Musgrave, S. Belongie, S.-N. Lim, "A Metric Learning Reality Check", ECCV 2020.
    """
    labels = _check_labels(embeddings, labels)
    _, inverse, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    others = sizes[inverse] - 1
    deepest = int(others.max())
    if deepest == 0:
        return float("nan"), len(labels)
    scores = np.zeros(len(labels))
    ranks = np.arange(1, deepest + 1)
    for queries, neighbors in rankings(embeddings, deepest):
        hits = (labels[neighbors] == labels[queries, None]) & (ranks <= others[queries, None])
        precision = np.cumsum(hits, axis=1) / ranks
        scores[queries] = (precision * hits).sum(axis=1) / np.maximum(others[queries], 1)
    counted = others > 0
    return float(scores[counted].mean()), int((~counted).sum())


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


def knn_accuracy(train: Array, train_labels: Array, test: Array, test_labels: Array, k: int = 200,
                 temperature: float = 0.1) -> float:
    """Compute the accuracy of a weighted k-nearest-neighbor classifier.

    The predicted class has the largest Σ e^{s/τ} over the k training points of largest cosine s. Cosines are rounded to
    1e-6. Ties between points go to the lowest index, ties between classes to the lowest class.

    Args:
        train: (n, d).
        train_labels: (n,).
        test: (m, d).
        test_labels: (m,).
        k: Number of voting training points; all if k exceeds n.
        temperature: τ.

    References:
        Z. Wu et al., "Unsupervised Feature Learning via Non-Parametric Instance Discrimination", CVPR 2018.
    """
    if k < 1 or temperature <= 0:
        raise ValueError(f"Weighted kNN needs k ≥ 1 and a temperature above 0, got {k} and {temperature}.")
    names, votes = np.unique(train_labels, return_inverse=True)
    base, queries = (normalize(torch.as_tensor(np.asarray(part, dtype=np.float32)), dim=1) for part in (train, test))
    classes, indices = torch.from_numpy(votes), torch.arange(len(base))
    correct = 0
    for rows in torch.arange(len(queries)).split(max(1, CHUNK_ENTRIES // len(base))):
        cosine = queries[rows] @ base.T
        keys = (cosine / COSINE_QUANTUM).round_().to(torch.int64).mul_(-len(base)).add_(indices)
        neighbors = torch.topk(keys, min(k, len(base)), dim=1, largest=False).indices
        # Subtracting the largest cosine scales all scores of a row by one factor and prevents an overflow at a small τ.
        weights = torch.exp((cosine.gather(1, neighbors) - cosine.amax(1, keepdim=True)).double() / temperature)
        scores = weights.new_zeros(len(rows), len(names)).scatter_add_(1, classes[neighbors], weights)
        correct += int((names[scores.numpy().argmax(axis=1)] == np.asarray(test_labels)[rows.numpy()]).sum())
    return correct / len(queries)


def linear_accuracy(train: Array, train_labels: Array, test: Array, test_labels: Array) -> float:
    """Compute the accuracy of a linear probe on test points.

    The probe is logistic regression (C = 1) on the training points, standardized per column. With a single training
    class, it predicts this class for every test point.

    Args:
        train: (n, d).
        train_labels: (n,).
        test: (m, d).
        test_labels: (m,).
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if len(np.unique(train_labels)) == 1:
        return float(np.mean(test_labels == train_labels[0]))
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=PROBE_STEPS))
    with warnings.catch_warnings():
        # The accuracy has settled after 200 steps even without full convergence, and small classes are allowed.
        warnings.simplefilter("ignore", UserWarning)
        probe.fit(np.asarray(train, dtype=np.float32), train_labels)
    return float(probe.score(np.asarray(test, dtype=np.float32), test_labels))


def kmeans_clusters(embeddings: Array, count: int) -> Array:
    """Return the k-means clusters (n,) int of points, with k = `count`.

    The start is k-means++ with seed 0; the best of 3 restarts counts.
    """
    from sklearn.cluster import KMeans

    points = np.ascontiguousarray(embeddings, dtype=np.float32)
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


def trustworthiness(space: Array, embedding: Array, k: int = DISTORTION_NEIGHBORS) -> Array:
    """Compute the trustworthiness of each point, (n,).

    It measures whether the point's neighbors in the embedding are neighbors in space. The value is 1 − 2/(k(2n−3k−1)) ·
    Σ_{j among the k nearest in the embedding} max(0, rank of j in the space − k). Its mean over the points equals
    scikit-learn's `trustworthiness`.

    Args:
        space: (n, D), the original vectors.
        embedding: (n, d).
        k: Number of neighbors.

    Raises:
        ValueError: k is not below n/2.
    """
    return distortion(space, embedding, k)[0]


def distortion(space: Array, embedding: Array, k: int = DISTORTION_NEIGHBORS,
               report: Callable[[float], None] = lambda _: None) -> tuple[Array, Array]:
    """Compute trustworthiness and continuity of each point, (n,) each.

    Continuity is trustworthiness with space and embedding exchanged: whether neighbors in the space are neighbors in
    the embedding.

    Args:
        space: (n, D), the original vectors.
        embedding: (n, d).
        k: Number of neighbors.
        report: Called with the finished share.

    Raises:
        ValueError: k is not below n/2.
    """
    count = len(space)
    if not 1 <= k < count / 2:
        raise ValueError(f"Trustworthiness needs 1 ≤ k < n/2, got k={k} for n={count}.")
    in_space, in_embedding = _Distances(space), _Distances(embedding)
    excess = np.zeros((2, count))
    for rows in _chunks(count):
        space_keys, embedding_keys = in_space.keys(rows), in_embedding.keys(rows)
        excess[0, rows] = _rank_excess(space_keys, embedding_keys, k)
        excess[1, rows] = _rank_excess(embedding_keys, space_keys, k)
        report((int(rows[-1]) + 1) / count)
    trust, continuity = 1.0 - excess * 2.0 / (k * (2.0 * count - 3.0 * k - 1.0))
    return trust, continuity


def distortion_neighbors(count: int) -> int:
    """Return the number of neighbors for distortion: 12, or fewer if n is below 25.

    n is `count`.
    """
    return min(DISTORTION_NEIGHBORS, (count - 1) // 2)


def _rank_excess(keys: Tensor, other_keys: Tensor, k: int) -> Tensor:
    """Sum max(0, rank by `keys` − k) over the k nearest by `other_keys`, (q,).

    The keys are (q, n).
    """
    neighbor_keys = keys.gather(1, torch.topk(other_keys, k, dim=1, largest=False).indices)
    # Counting smaller keys k times costs O(kn) per row, less than sorting the whole row for all ranks.
    ranks = torch.stack([(keys <= column[:, None]).sum(1) for column in neighbor_keys.T])
    return (ranks - k).clamp_min(0).sum(0)


def effective_rank(embeddings: Array) -> float:
    """Compute the effective rank exp(−Σ p log p), between 1 and d.

    1 is a line; d means equal variance in all directions. p are the singular values of the centered embedding (n, d),
    divided by their sum.
    """
    points = np.asarray(embeddings, dtype=np.float64)
    centered = points - points.mean(axis=0)
    values = np.sqrt(np.maximum(np.linalg.eigvalsh(centered.T @ centered), 0.0))
    total = values.sum()
    if total == 0:
        return 1.0
    shares = values[values > total * 1e-12] / total
    return float(np.exp(-(shares * np.log(shares)).sum()))


def neighbor_stability(before: Array, after: Array, k: int = 10) -> float:
    """Compute the mean share of k nearest neighbors common to two embeddings."""
    pairs = zip(rankings(before, k), rankings(after, k), strict=True)
    shared = [(old[:, :, None] == new[:, None, :]).any(axis=2).mean(axis=1) for (_, old), (_, new) in pairs]
    return float(np.concatenate(shared).mean())


def evaluate(embeddings: Array, labels: Array | None, space: Array, report: Callable[[float], None] = lambda _: None,
             sample: int = 2_000) -> dict[str, float]:
    """Compute every measure of an embedding.

    Values are in percent except for counts and the effective rank. With labels: recall@k, mprec@1 to mprec@50, MAP@R,
    and NMI, F, precision, recall and purity of k-means at the true number of classes. Always: the effective rank, and
    trustworthiness and continuity against `space` (not for fewer than 3 images).

    Args:
        embeddings: (n, d).
        labels: (n,), or None.
        space: (n, D), the vectors that the embedding was computed from.
        report: Called with the finished share.
        sample: Maximum number of evenly spaced images for trustworthiness and continuity.
    """
    result: dict[str, float] = {"images": float(len(embeddings)), "dimension": float(embeddings.shape[1])}
    if labels is not None:
        result |= {f"recall@{k}": 100 * value for k, value in recall_at_k(embeddings, labels).items()}
        report(0.3)
        result |= {f"mprec@{k}": 100 * value for k, value in mean_precision_at_k(embeddings, labels, DEPTHS).items()}
        score, left_out = map_at_r(embeddings, labels)
        result |= {"map@r": 100 * score, "map@r left out": float(left_out)}
        report(0.5)
        clusters = kmeans_clusters(embeddings, len(np.unique(labels)))
        result |= {"nmi": 100 * nmi(clusters, labels), "purity": 100 * label_purity(clusters, labels)}
        result |= {name: 100 * value for name, value in pairwise_f(clusters, labels).items()}
        report(0.8)
    chosen = np.linspace(0, len(embeddings) - 1, min(sample, len(embeddings))).astype(int)
    if len(chosen) > 2:
        trust, continuity = distortion(space[chosen], embeddings[chosen], distortion_neighbors(len(chosen)))
        result |= {"trustworthiness": 100 * float(trust.mean()), "continuity": 100 * float(continuity.mean())}
    result["effective rank"] = effective_rank(embeddings)
    report(1.0)
    return result


def headline_measures(row: Mapping[str, float]) -> dict[str, float]:
    """Return the measures without the curve of mprec@K, of which only K = 10 is kept."""
    return {name: value for name, value in row.items() if name == "mprec@10" or not name.startswith("mprec@")}


def _check_labels(embeddings: Array, labels: Array) -> Array:
    labels = np.asarray(labels)
    if labels.shape != (len(embeddings),):
        raise ValueError(f"Labels must have one entry for each of the {len(embeddings)} embeddings, "
                         f"got shape {labels.shape}.")
    if len(labels) < 2:
        raise ValueError(f"Retrieval needs at least 2 embeddings, got {len(labels)}.")
    return labels


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
