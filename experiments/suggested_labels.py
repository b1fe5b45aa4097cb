"""Compare five suggested labels with five random labels over ten seeds.

    python -m experiments.suggested_labels fashion-mini digits --out assets/results/suggested-labels.json

A seed draws the two halves and the random labels. The suggestions come from the page Labels (γ = 0.99, k = 10) on
the training half's frozen features. Three measures compare the labels:

- `to the labels`: R@1 of the test half with the labeled images as the gallery.
- `walk`: share of unlabeled training images whose random walks most probably end at a label of their class.
- `SSDML`: R@1 within the test half after training SSDML's metric with these labels (frozen features, 16 dimensions, two
  epochs), and R@1 before training. No test image is labeled.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
import torch

from experiments.recording import record_parser, write_record
from udml_core.base.arrays import Array
from udml_core.data import catalog
from udml_core.data.encoders import DEFAULT_BACKBONE, Encoder, choose_spec
from udml_core.data.features import features_of
from udml_core.data.training_data import training_data
from udml_core.exploration import label_spread
from udml_core.methods import Setting
from udml_core.methods.ssdml import SSDML
from udml_core.numerics.evaluation import recall_at_k
from udml_core.runs import installed_versions

NEIGHBORS, GAMMA, LABELS, SEEDS = 10, 0.99, 5, 10
PROTOCOL = ("Each seed draws the halves and the random labels; suggestions as on the page Labels (γ = 0.99, k = 10) on "
            "frozen features. `to the labels`: R@1 of the test half with the labeled images as the gallery; `walk`: "
            "share of unlabeled training images whose walks most probably end at their class; `SSDML`: R@1 within the "
            "test half after two epochs of its metric (frozen features, 16 dimensions), and before training.")


def main() -> None:
    parser = record_parser(__doc__)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--before", type=int, nargs="+", default=[0, 10],
                        help="numbers of random labels that precede the five")
    options = parser.parse_args()
    results: dict[str, Any] = {}
    for name in options.datasets:
        dataset = catalog.load(name)
        encoder = Encoder(choose_spec("pixels" if name == "digits" else DEFAULT_BACKBONE, dataset.native_size,
                                      dataset.gray))
        features = np.array(features_of(dataset, encoder))
        assert dataset.labels is not None
        for before in options.before:
            seeds = [compare(features, dataset.labels, encoder, seed, before) for seed in range(SEEDS)]
            results.setdefault(dataset.title, {})[f"{before} random labels before"] = summarize(seeds)
            print(name, before, json.dumps(summarize(seeds)), flush=True)
        record = {"command": "python -m experiments.suggested_labels " + " ".join(sys.argv[1:]), "protocol": PROTOCOL,
                  "labels": LABELS, "seeds": SEEDS, "versions": installed_versions(), "date": time.strftime("%Y-%m-%d"),
                  "datasets": results}
        write_record(options.out, record)


def compare(features: Array, labels: Array, encoder: Encoder, seed: int, before: int) -> dict[str, dict[str, float]]:
    """Measure suggested and random labels at one seed, in percent.

    Args:
        features: (n, D) frozen features of all images.
        labels: (n,) true classes.
        encoder: The frozen encoder.
        seed: Draws the halves and the random labels.
        before: Number of random labels that precede the compared ones.
    """
    random = np.random.default_rng(seed)
    order = random.permutation(len(features))
    train, test = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    points = features / np.linalg.norm(features, axis=1, keepdims=True)
    neighbors = label_spread.neighbor_rows(points, train, NEIGHBORS)
    drawn = random.permutation(len(train))
    first = drawn[:before]
    labeled = np.isin(np.arange(len(train)), first)
    suggested = np.array([suggestion.row for suggestion in label_spread.suggestions(neighbors, labeled, GAMMA, LABELS)])
    results = {}
    for kind, chosen in (("suggested", np.append(first, suggested)), ("random", drawn[: before + LABELS])):
        codes = np.full(len(train), -1)
        codes[chosen] = labels[train[chosen]]
        nearest = train[chosen][(points[test] @ points[train[chosen]].T).argmax(axis=1)]
        walks = label_spread.walk_ends(neighbors, codes, int(labels.max()) + 1, GAMMA)
        start, final = train_ssdml(features, labels, encoder, train, test, codes, seed)
        results[kind] = {"to the labels": 100 * float((labels[nearest] == labels[test]).mean()),
                         "walk": 100 * float((walks.best == labels[train])[codes < 0].mean()),
                         "classes": float(len(np.unique(labels[train[chosen]]))), "SSDML": final,
                         "SSDML's start": start}
    return results


def train_ssdml(features: Array, labels: Array, encoder: Encoder, train: Array, test: Array, codes: Array,
                seed: int) -> tuple[float, float]:
    """Train SSDML's metric for two epochs with the labels of the training half.

    Returns:
        R@1 of the test half in percent, before and after training.
    """
    few = np.full(len(features), -1)
    few[train] = codes
    data = training_data(features, None, train, "few", few=few)
    method = SSDML(dimension=16, epochs=2, partition=0, steps=3)
    setting = Setting(seed, torch.device("cpu"), encoder)
    embedders = [method.initial(data, setting), *(epoch.embedder for epoch in method.fit(data, setting))]
    start, final = (100 * recall_at_k(embedder.embed_features(features[test]), labels[test], (1,))[1]
                    for embedder in (embedders[0], embedders[-1]))
    return start, final


def summarize(seeds: list[dict[str, dict[str, float]]]) -> dict[str, Any]:
    """Return means and deviations of both kinds, and count the seeds.

    The count is the number of seeds in which suggestions were better.
    """
    rows = {kind: {name: [float(np.mean(values)), float(np.std(values))]
                   for name, values in ((name, [seed[kind][name] for seed in seeds]) for name in seeds[0][kind])}
            for kind in seeds[0]}
    better = {name: sum(seed["suggested"][name] > seed["random"][name] for seed in seeds)
              for name in ("to the labels", "walk", "SSDML")}
    return rows | {"seeds in which the suggested ones were better": better}


if __name__ == "__main__":
    main()
