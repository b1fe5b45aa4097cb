"""Costs of affinity propagation on Fashion-MNIST in an untrained LeNet's features.

Compares a partition of the paper's size with the dense solve, and measures all 60,000 training images at once.

    python -m experiments.affinity_costs --out assets/results/affinity-costs.json
"""

from __future__ import annotations

import resource

import numpy as np
import torch

from experiments.recording import provenance, record_parser, write_record
from tests.benchmarks.measure import medians, seconds
from tests.numerics.graph.naive import propagated
from udml_core.base.arrays import Array
from udml_core.data import catalog
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.inference import embed_pixels
from udml_core.numerics.graph import propagate_affinities
from udml_core.numerics.neighbors import nearest

PARTITION, WHOLE, NEIGHBORS, PER_CLASS = 9_100, 60_000, 10, 10


def main() -> None:
    parser = record_parser(__doc__)
    options = parser.parse_args()
    features, labels = points()
    record = provenance("affinity_costs") | {
        "threads": torch.get_num_threads(),
        "costs": {"protocol": f"seconds, k = {NEIGHBORS}, {PER_CLASS} labels per class; error: largest difference from "
                              "the dense float64 solve, relative to the largest affinity; same halves: percent of "
                              "the points with the same positive and negative half",
                  "rows": {str(PARTITION): partition_costs(features, labels),
                           str(WHOLE): whole_costs(features, labels)}}}
    write_record(options.out, record)


def points() -> tuple[Array, Array]:
    """Return unit features of the training images, and few labels.

    The features are (60000, 128); of the labels (60000,) all but 10 per class are −1.

    Raises:
        UserError: The data set is not installed.
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
    """Measure the seconds of propagation and of the dense solve on the first points.

    The largest difference of the results is measured as well.
    """
    features, labels = features[:PARTITION], labels[:PARTITION]
    neighbors = nearest(features, NEIGHBORS)[1]
    dense: list[Array] = []
    ours_seconds = medians(3, ours=lambda: propagate_affinities(neighbors, labels))["ours"]
    dense_seconds = seconds(lambda: dense.append(propagated(neighbors, labels, 0.99)))
    affinities, expected = propagate_affinities(neighbors, labels), dense[0][np.arange(PARTITION)[:, None], neighbors]
    halves = [np.sort(np.argsort(-values, axis=1, kind="stable")[:, : NEIGHBORS // 2])
              for values in (affinities, expected)]
    costs = {"seconds": ours_seconds, "dense seconds": dense_seconds, "ratio": dense_seconds / ours_seconds,
             "error": float(abs(affinities - expected).max() / abs(dense[0]).max()),
             "same halves": 100 * float((halves[0] == halves[1]).all(1).mean())}
    print(f"n={PARTITION}: " + ", ".join(f"{name} {value:.3g}" for name, value in costs.items()), flush=True)
    return costs


def whole_costs(features: Array, labels: Array) -> dict[str, float]:
    """Measure the seconds and the process's peak memory for all points at once."""
    neighbors = nearest(features, NEIGHBORS)[1]
    costs = {"seconds": seconds(lambda: propagate_affinities(neighbors, labels)),
             "memory, GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}
    print(f"n={WHOLE}: " + ", ".join(f"{name} {value:.3g}" for name, value in costs.items()), flush=True)
    return costs


if __name__ == "__main__":
    main()
