"""Every metric of the project, the same for all methods. All are fractions unless said otherwise.

Nearest means Euclidean; for unit embeddings that is the cosine order. Equal distances go to the lowest index, so a
metric of duplicates is defined and every machine gives the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import torch
from scipy.sparse import csr_array
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import normalized_mutual_info_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor
from torch.nn.functional import normalize

from udml_core.arrays import Array

CHUNK_ENTRIES = 1_500_000
QUANTUM = 1e-9
DISTORTION_NEIGHBORS = 12
KMEANS_SEED = 0
KMEANS_RESTARTS = 3
COSINE_QUANTUM = 1e-6
PROBE_STEPS = 200
DEPTHS = range(1, 51)
"""K of the curve of mprec@K."""


class _Distances:
    """Which points are near to which: distance and index in one integer key, so that ties cannot go astray.

    Squared distances are computed in float64 around the mean and rounded to 1e-9 of the largest squared norm there,
    which is above rounding noise.
    """

    def __init__(self, embeddings: Array) -> None:
        points = torch.as_tensor(np.asarray(embeddings, dtype=np.float64))
        self._points = points - points.mean(0)  # distances stay, and a common offset takes no digits from them
        self._norms = self._points.square().sum(1)
        self._quantum = max(float(self._norms.max()), 1e-300) * QUANTUM

    def keys(self, rows: Tensor) -> Tensor:
        """(q, n) int64 of some points (q,): smaller is nearer, no two are equal, a point itself is last."""
        indices = torch.arange(len(self._points))
        squared = torch.addmm(self._norms[rows, None] + self._norms, self._points[rows], self._points.T, alpha=-2)
        keys = squared.div_(self._quantum).round_().clamp_min_(0).to(torch.int64).mul_(len(indices)).add_(indices)
        keys[torch.arange(len(rows)), rows] = torch.iinfo(torch.int64).max
        return keys


def rankings(embeddings: Array, k: int) -> Iterator[tuple[Array, Array]]:
    """Each point's k nearest others, in chunks of (queries (q,), neighbors (q, k)).

    Args:
        embeddings: (n, d).
        k: how many; at most n − 1.
    """
    distances = _Distances(embeddings)
    for rows in _chunks(len(embeddings)):
        chosen = torch.topk(distances.keys(rows), k, dim=1, largest=False, sorted=True).indices
        yield rows.numpy(), chosen.numpy()


def _chunks(count: int) -> tuple[Tensor, ...]:
    """Points (q,) whose distances to all are looked at together: so few that they stay in the processor's cache."""
    return torch.arange(count).split(max(1, CHUNK_ENTRIES // count))


def recall_at_k(embeddings: Array, labels: Array, ks: Sequence[int] = (1, 2, 4, 8)) -> dict[int, float]:
    """Recall@k: the share of all points with at least one other of their class among their k nearest others.

    A class of one is a miss at every k; where k exceeds the others there are, all of them count.

    Args:
        embeddings: (n, d), n ≥ 2.
        labels: (n,) int.
        ks: the cut-offs, each at least 1.

    Returns:
        {k: fraction}.
    """
    labels = _checked(embeddings, labels)
    if any(k < 1 for k in ks):
        raise ValueError(f"recall@k needs k ≥ 1, got {tuple(ks)}")
    deepest = min(max(ks), len(labels) - 1)
    first_hit = np.full(len(labels), np.iinfo(np.int64).max)
    for queries, neighbors in rankings(embeddings, deepest):
        hits = labels[neighbors] == labels[queries, None]
        found = hits.any(axis=1)
        first_hit[queries[found]] = hits[found].argmax(axis=1)
    return {k: float((first_hit < k).mean()) for k in ks}


def map_at_r(embeddings: Array, labels: Array) -> tuple[float, int]:
    """Mean average precision at R: (1/R_i) Σ_{r ≤ R_i} precision@r · hit(r), R_i = the others of the point's class.

    Returns:
        The mean over the points with R_i > 0, and how many points were left out because R_i = 0. NaN if all were.

    References:
        K. Musgrave, S. Belongie, S.-N. Lim, "A Metric Learning Reality Check", ECCV 2020.
    """
    labels = _checked(embeddings, labels)
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
    """mprec@k: the mean over classes of the mean, over the queries that carry the class, of the share of the k nearest
    others that carry it too (NML). An image of several classes is a query of each.

    Where k exceeds the others there are, all of them count.

    Args:
        embeddings: (n, d), n ≥ 2.
        labels: (n,) int, or (n, c) bool where images carry several classes or none.
        ks: the cut-offs, each at least 1.

    Returns:
        {k: fraction}; NaN where no image carries a class.
    """
    labels = np.asarray(labels)
    carried = labels.astype(bool) if labels.ndim == 2 else None
    names = _checked(embeddings, labels if carried is None else np.zeros(len(labels)))
    if any(k < 1 for k in ks):
        raise ValueError(f"mprec@k needs k ≥ 1, got {tuple(ks)}")
    places = np.unique(names, return_inverse=True)[1]
    classes = carried.shape[1] if carried is not None else int(places.max()) + 1
    deepest = min(max(ks), len(labels) - 1)
    sums, counts = np.zeros((classes, deepest)), np.zeros(classes)
    for queries, neighbors in rankings(embeddings, deepest):
        if carried is None:
            own, hits = places[queries], places[neighbors] == places[queries, None]
        else:
            asked, own = np.nonzero(carried[queries])
            hits = carried[neighbors[asked], own[:, None]]
        np.add.at(sums, own, np.cumsum(hits, axis=1))
        counts += np.bincount(own, minlength=classes)
    if not counts.any():
        return dict.fromkeys(ks, float("nan"))
    means = (sums[counts > 0] / counts[counts > 0, None]).mean(axis=0) / np.arange(1, deepest + 1)
    return {k: float(means[min(k, deepest) - 1]) for k in ks}


def knn_accuracy(train: Array, train_labels: Array, test: Array, test_labels: Array, k: int = 200,
                 temperature: float = 0.1) -> float:
    """The share of test points whose class has the largest Σ e^{s/τ} over the k training points of largest cosine s.

    Equal cosines, to 1e-6, go to the lowest index, equal sums to the lowest class. Where k exceeds the training points,
    all of them vote.

    Args:
        train: (n, d). train_labels: (n,). test: (m, d). test_labels: (m,).

    References:
        Z. Wu et al., "Unsupervised Feature Learning via Non-Parametric Instance Discrimination", CVPR 2018.
    """
    if k < 1 or temperature <= 0:
        raise ValueError(f"weighted kNN needs k ≥ 1 and a temperature above 0, got {k} and {temperature}")
    names, votes = np.unique(train_labels, return_inverse=True)
    base, queries = (normalize(torch.as_tensor(np.asarray(one, dtype=np.float32)), dim=1) for one in (train, test))
    classes, indices = torch.from_numpy(votes), torch.arange(len(base))
    right = 0
    for rows in torch.arange(len(queries)).split(max(1, CHUNK_ENTRIES // len(base))):
        cosine = queries[rows] @ base.T
        keys = (cosine / COSINE_QUANTUM).round_().to(torch.int64).mul_(-len(base)).add_(indices)
        near = torch.topk(keys, min(k, len(base)), dim=1, largest=False).indices
        weights = torch.exp((cosine.gather(1, near) - cosine.amax(1, keepdim=True)).double() / temperature)
        scores = weights.new_zeros(len(rows), len(names)).scatter_add_(1, classes[near], weights)
        right += int((names[scores.numpy().argmax(axis=1)] == np.asarray(test_labels)[rows.numpy()]).sum())
    return right / len(queries)


def linear_accuracy(train: Array, train_labels: Array, test: Array, test_labels: Array) -> float:
    """The share of test points that a linear probe gets right: logistic regression (C = 1) on the training points, each
    column at mean 0 and deviation 1 there. Where they are of one class, all test points are taken for it."""
    if len(np.unique(train_labels)) == 1:
        return float(np.mean(test_labels == train_labels[0]))
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=PROBE_STEPS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # at 200 steps the figure has settled; classes may be small
        probe.fit(np.asarray(train, dtype=np.float32), train_labels)
    return float(probe.score(np.asarray(test, dtype=np.float32), test_labels))


def kmeans_clusters(embeddings: Array, count: int) -> Array:
    """Labels (n,) of k-means with k = `count`, k-means++ seeded with 0, the best of 3 restarts."""
    points = np.ascontiguousarray(embeddings, dtype=np.float32)
    return KMeans(count, random_state=KMEANS_SEED, n_init=KMEANS_RESTARTS).fit_predict(points)


def nmi(clusters: Array, labels: Array) -> float:
    """Normalized mutual information I / ((H(clusters) + H(labels))/2) of two labelings (n,)."""
    return float(normalized_mutual_info_score(labels, clusters, average_method="arithmetic"))


def pairwise_f(clusters: Array, labels: Array) -> dict[str, float]:
    """Precision, recall and their harmonic mean f over pairs: a pair is positive where both share a cluster, and true
    where both share a label. An empty denominator gives 0."""
    table = _contingency(clusters, labels)
    together, same = _pairs(table.sum(axis=1)), _pairs(table.sum(axis=0))
    both = _pairs(table.data)
    precision = both / together if together else 0.0
    recall = both / same if same else 0.0
    f = 2 * precision * recall / (precision + recall) if both else 0.0
    return {"precision": precision, "recall": recall, "f": f}


def label_purity(clusters: Array, labels: Array) -> float:
    """Σ_c max_y n_cy / n: the share of points that carry their cluster's majority label."""
    return float(_contingency(clusters, labels).max(axis=1).sum() / len(np.asarray(labels)))


def neighborhood_purity(neighbors: Array, members: Array, labels: Array) -> tuple[float, float]:
    """The mean share of each point and its members that carry their majority label, and the mean size of these sets
    (PLM table 2). Small sets look pure: say the size beside it.

    Args:
        neighbors: (n, k) rows. members: (n, k) bool, which of them belong. labels: (n,).
    """
    labels = np.asarray(labels)
    inside = np.column_stack([np.ones(len(labels), dtype=bool), members])
    found = labels[np.column_stack([np.arange(len(labels)), neighbors])]
    alike = (found[:, :, None] == found[:, None, :]) & inside[:, None, :]
    majority = np.where(inside, alike.sum(axis=2), 0).max(axis=1)
    sizes = inside.sum(axis=1)
    return float((majority / sizes).mean()), float(sizes.mean())


def similarity_correlation(similarities: Array, labels: Array) -> float:
    """Pearson's correlation, over all pairs i < j, of a symmetric similarity (n, n) and whether labels are equal."""
    labels = np.asarray(labels)
    pairs = np.triu_indices(len(labels), 1)
    return float(np.corrcoef(np.asarray(similarities)[pairs], labels[pairs[0]] == labels[pairs[1]])[0, 1])


def trustworthiness(space: Array, embedding: Array, k: int = DISTORTION_NEIGHBORS) -> Array:
    """Per point (n,), how little its k nearest in `embedding` were far in `space`; the mean is scikit-learn's.

    1 − 2n/(nk(2n−3k−1)) · n Σ_{j among the k nearest in the embedding} max(0, rank of j in the space − k), by point.

    Raises:
        ValueError: k is not below n/2.
    """
    return distortion(space, embedding, k)[0]


def distortion(space: Array, embedding: Array, k: int = DISTORTION_NEIGHBORS,
               report: Callable[[float], None] = lambda _: None) -> tuple[Array, Array]:
    """Trustworthiness and continuity per point, (n,) each. Continuity is trustworthiness with the two exchanged.

    Raises:
        ValueError: k is not below n/2.
    """
    count = len(space)
    if not 1 <= k < count / 2:
        raise ValueError(f"trustworthiness needs 1 ≤ k < n/2, got k={k} for n={count}")
    before, after = _Distances(space), _Distances(embedding)
    excess = np.zeros((2, count))
    for rows in _chunks(count):
        there, here = before.keys(rows), after.keys(rows)
        excess[0, rows] = _excess(there, here, k)
        excess[1, rows] = _excess(here, there, k)
        report((int(rows[-1]) + 1) / count)
    trust, continuity = 1.0 - excess * 2.0 / (k * (2.0 * count - 3.0 * k - 1.0))
    return trust, continuity


def distortion_neighbors(count: int) -> int:
    """How many neighbors distortion looks at among `count` points: 12, or as many as it allows."""
    return min(DISTORTION_NEIGHBORS, (count - 1) // 2)


def _excess(keys: Tensor, others: Tensor, k: int) -> Tensor:
    """By row, Σ max(0, rank − k) in `keys` (q, n) over the k that are nearest by `others` (q, n)."""
    near = keys.gather(1, torch.topk(others, k, dim=1, largest=False).indices)
    ranks = torch.stack([(keys <= one[:, None]).sum(1) for one in near.T])
    return (ranks - k).clamp_min(0).sum(0)


def effective_rank(embeddings: Array) -> float:
    """exp(−Σ p log p), p the singular values of the centered embedding over their sum: 1 is a line, d is a ball."""
    points = np.asarray(embeddings, dtype=np.float64)
    centered = points - points.mean(axis=0)
    values = np.sqrt(np.maximum(np.linalg.eigvalsh(centered.T @ centered), 0.0))
    total = values.sum()
    if total == 0:
        return 1.0
    shares = values[values > total * 1e-12] / total
    return float(np.exp(-(shares * np.log(shares)).sum()))


def neighbor_stability(before: Array, after: Array, k: int = 10) -> float:
    """The mean share of each point's k nearest that are the same in two embeddings of the same points."""
    pairs = zip(rankings(before, k), rankings(after, k), strict=True)
    shared = [(old[:, :, None] == new[:, None, :]).any(axis=2).mean(axis=1) for (_, old), (_, new) in pairs]
    return float(np.concatenate(shared).mean())


def evaluate(embeddings: Array, labels: Array | None, space: Array, report: Callable[[float], None] = lambda _: None,
             sample: int = 2_000) -> dict[str, float]:
    """Every measure of one embedding, in percent but for counts and the effective rank.

    With labels: recall@k, mprec@1 to mprec@50, MAP@R, NMI, F, precision, recall and purity of k-means at the true
    class count. Always the label-free ones: effective rank, and trustworthiness and continuity against `space`, on at
    most `sample` evenly spread images; of their 12 nearest, or of fewer where there are no 25 images. Two have no
    neighborhoods.

    Args:
        embeddings: (n, d).
        labels: (n,) or None.
        space: (n, D), what the embedding was made from.
        report: called with the share that is done.
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
    """Measures for reading: of the curve of mprec@K only K = 10."""
    return {name: value for name, value in row.items() if name == "mprec@10" or not name.startswith("mprec@")}


def _checked(embeddings: Array, labels: Array) -> Array:
    labels = np.asarray(labels)
    if labels.shape != (len(embeddings),):
        raise ValueError(f"labels must have one entry for each of the {len(embeddings)} embeddings, "
                         f"got shape {labels.shape}")
    if len(labels) < 2:
        raise ValueError(f"retrieval among the others needs at least 2 embeddings, got {len(labels)}")
    return labels


def _contingency(clusters: Array, labels: Array) -> csr_array:
    clusters, labels = np.asarray(clusters), np.asarray(labels)
    if clusters.shape != labels.shape or clusters.ndim != 1 or not len(clusters):
        raise ValueError(f"clusters and labels must be two equally long lists, got {clusters.shape} and {labels.shape}")
    rows, columns = (np.unique(values, return_inverse=True)[1] for values in (clusters, labels))
    table = csr_array((np.ones(len(rows), dtype=np.int64), (rows, columns)))
    table.sum_duplicates()
    return table


def _pairs(sizes: Array) -> float:
    sizes = np.asarray(sizes, dtype=np.float64)
    return float((sizes * (sizes - 1) / 2).sum())
