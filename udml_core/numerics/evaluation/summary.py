"""All measures of an embedding in one row."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from udml_core.base.arrays import Array, Booleans, Integers, evenly_spaced, some_rows
from udml_core.numerics.evaluation.cluster_measures import kmeans_clusters, label_purity, nmi, pairwise_f
from udml_core.numerics.evaluation.retrieval_measures import recall_in_gallery, retrieval_measures
from udml_core.numerics.evaluation.structure import distortion, distortion_neighbors, effective_rank

QUERIED, CLUSTERED = 0.5, 0.8
"""Shares of the progress at which all queries are ranked, and the images are clustered."""
DEPTHS = range(1, 51)
"""The values of K in the curve of mprec@K."""
GALLERY_RECALLS = (1, 10, 20, 30, 40, 50)
"""The values of k in the recall of queries among a gallery, as In-Shop's authors print them."""
RECALLS, DEEP_RECALLS = (1, 2, 4, 8), (10, 100, 1_000)
"""The values of k in recall@k, and further values for Stanford Online Products and similar data sets."""
ESTIMATED = 10_000
"""Largest number of images of k-means and of the effective rank where a sample of queries is asked."""
MANY_CLASSES = 1_000
"""Number of classes from which the deep recalls say something; with fewer they are nearly 100 %."""


def evaluate(embeddings: Array, labels: Array | None, space: Array, report: Callable[[float], None] = lambda _: None,
             sample: int = 2_000, classes: Booleans | None = None, queries: Booleans | None = None,
             asked: Integers | None = None) -> dict[str, float]:
    """Compute every measure of an embedding.

    Values are in percent except for counts and the effective rank.

    - With labels: recall@k (k up to 8, or up to 1,000 for at least `MANY_CLASSES` classes), mprec@1 to mprec@50,
      MAP@R, and NMI, F, precision, recall and purity of k-means at the true number of classes.
    - With labels and queries: recall@k of the queries among the other images, as `gallery recall@k`.
    - With classes in place of labels: mprec@1 to mprec@50.
    - Always: the effective rank, and trustworthiness and continuity against `space` (not for fewer than 3 images).
    - With rows that are asked: the number of queries, and with labels half the 95 % interval of recall@1 and MAP@R.

    Args:
        embeddings: (n, d).
        labels: (n,), or None.
        space: (n, D), the vectors that the embedding was computed from.
        report: Called with the finished share, at `QUERIED` and `CLUSTERED` among others.
        sample: Maximum number of evenly spaced images for trustworthiness and continuity.
        classes: (n, c), used without labels if images have several classes or none.
        queries: Mask (n,) of the authors' queries; the other images are their gallery. None if every image is a query.
        asked: Rows (m,) that are queries among all images, for an estimate in seconds; k-means and the effective rank
            then use at most `ESTIMATED` images. All images are queries if None.
    """
    result: dict[str, float] = {"images": float(len(embeddings)), "dimension": float(embeddings.shape[1])}
    some = np.arange(len(embeddings)) if asked is None else evenly_spaced(len(embeddings), ESTIMATED)
    if labels is not None:
        ks = RECALLS if len(np.unique(labels)) < MANY_CLASSES else RECALLS + DEEP_RECALLS
        measured = retrieval_measures(embeddings, labels, ks, DEPTHS, whole=True, asked=asked,
                                      report=lambda share: report(QUERIED * share))
        score, left_out = measured.map_at_r
        result |= {f"recall@{k}": 100 * value for k, value in measured.recalls.items()}
        result |= {f"mprec@{k}": 100 * value for k, value in measured.mean_precisions.items()}
        result |= {"map@r": 100 * score, "map@r left out": float(left_out)}
        if asked is not None:
            result |= {"queries": float(len(asked)), "recall@1 margin": _margin(measured.first_hits),
                       "map@r margin": _margin(measured.average_precisions)}
        clusters = kmeans_clusters(some_rows(embeddings, some), len(np.unique(labels)))
        result |= {"nmi": 100 * nmi(clusters, labels[some]), "purity": 100 * label_purity(clusters, labels[some])}
        result |= {name: 100 * value for name, value in pairwise_f(clusters, labels[some]).items()}
        report(CLUSTERED)
        if queries is not None:
            result |= {f"gallery recall@{k}": 100 * value
                       for k, value in recall_in_gallery(embeddings, labels, queries, GALLERY_RECALLS).items()}
    elif classes is not None:
        of_depths = retrieval_measures(embeddings, classes, depths=DEPTHS, asked=asked,
                                       report=lambda share: report(QUERIED * share)).mean_precisions
        result |= {f"mprec@{k}": 100 * value for k, value in of_depths.items()}
        result |= {} if asked is None else {"queries": float(len(asked))}
        report(CLUSTERED)
    chosen = evenly_spaced(len(embeddings), sample)
    if len(chosen) > 2:
        trust, continuity = distortion(some_rows(space, chosen), some_rows(embeddings, chosen),
                                       distortion_neighbors(len(chosen)))
        result |= {"trustworthiness": 100 * float(trust.mean()), "continuity": 100 * float(continuity.mean())}
    result["effective rank"] = effective_rank(some_rows(embeddings, some))
    report(1.0)
    return result


def _margin(values: Array) -> float:
    """Return half the 95 % interval of a mean over queries in percent; NaN values do not count."""
    known = np.asarray(values, dtype=np.float64)[~np.isnan(values)]
    return float(100 * 1.96 * known.std(ddof=1) / np.sqrt(len(known))) if len(known) > 1 else float("nan")


def headline_measures(row: Mapping[str, float]) -> dict[str, float]:
    """Return the measures without the curve of mprec@K, of which only K = 10 is kept."""
    return {name: value for name, value in row.items() if name == "mprec@10" or not name.startswith("mprec@")}
