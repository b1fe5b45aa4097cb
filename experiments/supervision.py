"""PLM's table 2: how good the supervision is that a method finds without labels, in frozen features of a test half.

    python -m experiments.supervision fashion-mini birds100 digits --out assets/results/supervision.json

Purity of clusters, or of neighborhoods with their mean size; correlation of the similarity (same cluster = 1, or s)
with that of the labels over all pairs. Clusterings are told the true number of classes, as in the paper.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from sklearn.cluster import AgglomerativeClustering

from udml_core.arrays import Array
from udml_core.backbones import Encoder, choose_spec
from udml_core.data import catalog
from udml_core.data.features import features_of
from udml_core.data.splits import make_split
from udml_core.evaluation import kmeans_clusters, label_purity, neighborhood_purity, similarity_correlation
from udml_core.files import jsonable
from udml_core.graph import AuthorityGraph, linear_neighborhoods, walk_similarity
from udml_core.losses.piecewise import similarity
from udml_core.runs import installed_versions

NEIGHBORS, ASCENT, EPSILON, GAMMA = 10, 50, 0.65, 100.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    found = {}
    for name in given.datasets:
        dataset = catalog.load(name)
        backbone = "pixels" if name == "digits" else "efficientnet-lite0"
        encoder = Encoder(choose_spec(backbone, dataset.native_size, dataset.gray))
        test = make_split(dataset, "zero-shot").test
        assert dataset.labels is not None
        features = np.array(features_of(dataset, encoder)[test])
        points = features / np.linalg.norm(features, axis=1, keepdims=True)
        found[dataset.title] = {"encoder": encoder.spec.key, "images": len(test),
                                "classes": len(np.unique(dataset.labels[test])),
                                "rows": rows(points, dataset.labels[test])}
        record = {"command": "python -m experiments.supervision " + " ".join(sys.argv[1:]),
                  "protocol": "frozen unit features, zero-shot test half; purity and Pearson correlation in percent",
                  "versions": installed_versions(), "date": time.strftime("%Y-%m-%d"), "datasets": found}
        given.out.write_text(json.dumps(jsonable(record), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def rows(points: Array, labels: Array) -> dict[str, dict[str, float]]:
    """Every row of the table on one embedding, in percent."""
    classes = len(np.unique(labels))
    linkage = AgglomerativeClustering(classes, metric="cosine", linkage="average")
    ascent = AuthorityGraph.build(points, ASCENT).clusters(EPSILON, GAMMA)
    found = {"k-means": of_clusters(kmeans_clusters(points, classes), labels),
             "average linkage": of_clusters(linkage.fit_predict(points), labels),
             f"authority ascent, ε={EPSILON}": of_clusters(np.asarray(ascent.labels), labels),
             "random walk": {"correlation": 100 * similarity_correlation(walk_similarity(points, ASCENT), labels)}}
    tensor = torch.from_numpy(points)
    for name, admission in (("plain nearest 10", False), ("linear neighborhoods", True)):
        hoods = linear_neighborhoods(tensor, NEIGHBORS, admission=admission)
        purity, size = neighborhood_purity(hoods.neighbors.numpy(), hoods.members.numpy(), labels)
        alike = similarity(tensor, hoods.basis).numpy()
        found[name] = {"purity": 100 * purity, "size": size, "correlation": 100 * similarity_correlation(alike, labels)}
    found["cosine"] = {"correlation": 100 * similarity_correlation(points @ points.T, labels)}
    for name, row in found.items():
        print(f"{name:24}" + "  ".join(f"{key} {value:.1f}" for key, value in row.items()), flush=True)
    return found


def of_clusters(clusters: Array, labels: Array) -> dict[str, float]:
    """Purity, mean size, and the correlation of "the same cluster" with "the same class"."""
    return {"purity": 100 * label_purity(clusters, labels), "size": len(labels) / len(np.unique(clusters)),
            "correlation": 100 * similarity_correlation(clusters[:, None] == clusters, labels)}


if __name__ == "__main__":
    main()
