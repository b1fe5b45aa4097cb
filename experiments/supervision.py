"""PLM's table 2: quality of the supervision that methods derive without labels.

The supervision is derived from a test half's frozen features.

    python -m experiments.supervision fashion-mini birds100 digits --out assets/results/supervision.json

The measures are the purity and mean size of clusters or neighborhoods, and the correlation of the similarity (1
within a cluster, or s) with class equality over all pairs. As in the paper, k-means and average linkage receive the
true number of classes. Neighborhoods pass through their image or through the origin of the embedding, on the features
and on features centered at the mean of the training half.
"""

from __future__ import annotations

import sys
import time
from typing import get_args

import numpy as np
import torch
from sklearn.cluster import AgglomerativeClustering

from experiments.recording import record_parser, write_record
from udml_core.base.arrays import Array
from udml_core.data import catalog
from udml_core.data.encoders import DEFAULT_BACKBONE, Encoder, choose_spec
from udml_core.data.features import features_of
from udml_core.data.splits import make_split
from udml_core.numerics.evaluation import kmeans_clusters, label_purity, neighborhood_purity, similarity_correlation
from udml_core.numerics.graph import AuthorityGraph, Through, linear_neighborhoods, walk_similarity
from udml_core.numerics.losses.piecewise import similarity
from udml_core.runs import installed_versions

NEIGHBORS, ASCENT, EPSILON, GAMMA = 10, 50, 0.65, 100.0


def main() -> None:
    parser = record_parser(__doc__)
    parser.add_argument("datasets", nargs="+")
    options = parser.parse_args()
    results = {}
    for name in options.datasets:
        dataset = catalog.load(name)
        backbone = "pixels" if name == "digits" else DEFAULT_BACKBONE
        encoder = Encoder(choose_spec(backbone, dataset.native_size, dataset.gray))
        split = make_split(dataset, "zero-shot")
        assert dataset.labels is not None
        features = unit(np.array(features_of(dataset, encoder)))
        points, labels = features[split.test], dataset.labels[split.test]
        centered = unit(points - features[split.train].mean(0))
        rows = measure_rows(points, labels) | {f"{row}, centered": measures for row, measures
                                               in measure_neighborhoods(centered, labels).items()}
        for row, measures in rows.items():
            print(f"{row:52}" + "  ".join(f"{key} {value:.1f}" for key, value in measures.items()), flush=True)
        results[dataset.title] = {"encoder": encoder.spec.key, "images": len(points),
                                  "classes": len(np.unique(labels)), "rows": rows}
        record = {"command": "python -m experiments.supervision " + " ".join(sys.argv[1:]),
                  "protocol": "frozen unit features, zero-shot test half; purity and Pearson correlation in percent",
                  "versions": installed_versions(), "date": time.strftime("%Y-%m-%d"), "datasets": results}
        write_record(options.out, record)


def measure_rows(points: Array, labels: Array) -> dict[str, dict[str, float]]:
    """Measure every row in percent, on unit features (n, D) with classes (n,)."""
    classes = len(np.unique(labels))
    linkage = AgglomerativeClustering(classes, metric="cosine", linkage="average")
    ascent = AuthorityGraph.build(points, ASCENT).clusters(EPSILON, GAMMA)
    rows = {"k-means": measure_clusters(kmeans_clusters(points, classes), labels),
            "average linkage": measure_clusters(linkage.fit_predict(points), labels),
            f"authority ascent, ε={EPSILON}": measure_clusters(np.asarray(ascent.labels), labels),
            "random walk": {"correlation": 100 * similarity_correlation(walk_similarity(points, ASCENT), labels)}}
    return rows | measure_neighborhoods(points, labels)


def measure_neighborhoods(points: Array, labels: Array) -> dict[str, dict[str, float]]:
    """Measure linear neighborhoods of both readings and the cosine in percent, on unit features (n, D)."""
    tensor, rows = torch.from_numpy(points), {}
    for through in get_args(Through):
        for name, admission in ((f"plain nearest {NEIGHBORS}", False), ("linear neighborhoods", True)):
            hoods = linear_neighborhoods(tensor, NEIGHBORS, admission=admission, through=through)
            purity, size = neighborhood_purity(hoods.neighbors.numpy(), hoods.members.numpy(), labels)
            similar = similarity(tensor, hoods.basis).numpy()
            rows[f"{name}, through the {through}"] = {
                "purity": 100 * purity, "size": size, "correlation": 100 * similarity_correlation(similar, labels)}
    rows["cosine"] = {"correlation": 100 * similarity_correlation(points @ points.T, labels)}
    return rows


def unit(rows: Array) -> Array:
    """Divide each row (n, D) by its length."""
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def measure_clusters(clusters: Array, labels: Array) -> dict[str, float]:
    """Return purity, mean size, and correlation of cluster with class equality."""
    return {"purity": 100 * label_purity(clusters, labels), "size": len(labels) / len(np.unique(clusters)),
            "correlation": 100 * similarity_correlation(clusters[:, None] == clusters, labels)}


if __name__ == "__main__":
    main()
