"""What affinity propagation costs on Fashion-MNIST, as the untrained LeNet sees it: a partition of the paper's beside
the dense solve, and all 60,000 training images at once.

    python -m experiments.affinity_costs --out assets/results/affinity-costs.json
"""

from __future__ import annotations

import argparse
import json
import resource
from pathlib import Path

import numpy as np
import torch

from experiments.zero_shot import made_by
from tests.benchmarks.measure import medians, seconds
from tests.graph.naive import propagated
from udml_core.arrays import Array
from udml_core.backbones import Encoder, choose_spec
from udml_core.data import catalog
from udml_core.data.features import embed_pixels
from udml_core.files import jsonable
from udml_core.graph import propagate_affinities
from udml_core.neighbors import nearest

PARTITION, WHOLE, NEIGHBORS, PER_CLASS = 9_100, 60_000, 10, 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    features, labels = points()
    record = made_by("affinity_costs") | {
        "threads": torch.get_num_threads(),
        "costs": {"protocol": f"seconds, k={NEIGHBORS}, {PER_CLASS} labels a class; error: the largest difference to "
                              "the dense float64 solve, of the largest affinity; same halves: percent of the points",
                  "rows": {str(PARTITION): partition_costs(features, labels),
                           str(WHOLE): whole_costs(features, labels)}}}
    given.out.write_text(json.dumps(jsonable(record), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def points() -> tuple[Array, Array]:
    """Unit features (60,000, 128) of the training images, and labels of 10 a class, −1 elsewhere.

    Raises:
        UserError: the data set is not there.
    """
    dataset = catalog.load("fashion-mnist")
    encoder = Encoder(choose_spec("lenet", 28, True))
    pixels = np.stack([np.asarray(dataset.images[index])[None, :, :, 0] for index in range(WHOLE)])
    features = np.concatenate([embed_pixels(encoder, part) for part in np.array_split(pixels, 60)])
    assert dataset.labels is not None
    labels = np.full(WHOLE, -1)
    for label in range(10):
        labels[np.flatnonzero(dataset.labels[:WHOLE] == label)[:PER_CLASS]] = label
    return features / np.linalg.norm(features, axis=1, keepdims=True), labels


def partition_costs(features: Array, labels: Array) -> dict[str, float]:
    """Seconds of ours and of the dense solve on the first points, and how far they are apart."""
    features, labels = features[:PARTITION], labels[:PARTITION]
    neighbors = nearest(features, NEIGHBORS)[1]
    whole: list[Array] = []
    took = medians(3, ours=lambda: propagate_affinities(neighbors, labels))["ours"]
    dense = seconds(lambda: whole.append(propagated(neighbors, labels, 0.99)))
    found, expected = propagate_affinities(neighbors, labels), whole[0][np.arange(PARTITION)[:, None], neighbors]
    halves = [np.sort(np.argsort(-one, axis=1, kind="stable")[:, : NEIGHBORS // 2]) for one in (found, expected)]
    costs = {"seconds": took, "dense seconds": dense, "ratio": dense / took,
             "error": float(abs(found - expected).max() / abs(whole[0]).max()),
             "same halves": 100 * float((halves[0] == halves[1]).all(1).mean())}
    print(f"n={PARTITION}: " + ", ".join(f"{name} {value:.3g}" for name, value in costs.items()), flush=True)
    return costs


def whole_costs(features: Array, labels: Array) -> dict[str, float]:
    """Seconds and the process's largest memory for all points at once."""
    neighbors = nearest(features, NEIGHBORS)[1]
    costs = {"seconds": seconds(lambda: propagate_affinities(neighbors, labels)),
             "memory, GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}
    print(f"n={WHOLE}: " + ", ".join(f"{name} {value:.3g}" for name, value in costs.items()), flush=True)
    return costs


if __name__ == "__main__":
    main()
