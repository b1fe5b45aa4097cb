"""Are five suggested labels worth more than five random ones? R@1 over ten seeds, with nothing labeled before.

    python -m experiments.suggested_labels fashion-mini digits --out assets/results/suggested-labels.json

A seed draws the halves. The suggestions are those of the page Labels (γ = 0.99, k = 10) on the training half's frozen
features; random labels are drawn by the seed. Each is measured three ways on the test half, which no label is of:
`to the labels`: R@1 with the labeled images as the gallery, the share of test images whose nearest labeled image is of
their class; `walk`: the share of unlabeled training images whose walks most probably end at their class; `SSDML`: R@1
within the test half after SSDML was told these labels (its metric on frozen features, 16 wide, two epochs), beside its
start.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from udml_core.arrays import Array
from udml_core.backbones import Encoder, choose_spec
from udml_core.data import catalog
from udml_core.data.features import features_of
from udml_core.data.training import training_data
from udml_core.evaluation import recall_at_k
from udml_core.exploration import label_spread as views
from udml_core.files import jsonable
from udml_core.methods import SSDML, Setting
from udml_core.runs import installed_versions

NEIGHBORS, GAMMA, LABELS, SEEDS = 10, 0.99, 5, 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--before", type=int, nargs="+", default=[0, 10], help="random labels before the five")
    given = parser.parse_args()
    found: dict[str, Any] = {}
    for name in given.datasets:
        dataset = catalog.load(name)
        encoder = Encoder(choose_spec("pixels" if name == "digits" else "efficientnet-lite0", dataset.native_size,
                                      dataset.gray))
        features = np.array(features_of(dataset, encoder))
        assert dataset.labels is not None
        for before in given.before:
            seeds = [of_seed(features, dataset.labels, encoder, seed, before) for seed in range(SEEDS)]
            found.setdefault(dataset.title, {})[f"{before} random labels before"] = summary(seeds)
            print(name, before, json.dumps(summary(seeds)), flush=True)
        record = {"command": "python -m experiments.suggested_labels " + " ".join(sys.argv[1:]),
                  "protocol": " ".join((__doc__ or "").split("\n\n")[2].split()), "labels": LABELS, "seeds": SEEDS,
                  "versions": installed_versions(), "date": time.strftime("%Y-%m-%d"), "datasets": found}
        given.out.write_text(json.dumps(jsonable(record), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def of_seed(features: Array, labels: Array, encoder: Encoder, seed: int, before: int) -> dict[str, dict[str, float]]:
    """Both kinds of labels at one seed, in percent."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(features))
    train, test = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    points = features / np.linalg.norm(features, axis=1, keepdims=True)
    neighbors = views.neighbor_rows(points, train, NEIGHBORS)
    drawn = random.permutation(len(train))
    first = drawn[:before]
    labeled = np.isin(np.arange(len(train)), first)
    suggested = np.array([one.row for one in views.suggestions(neighbors, labeled, GAMMA, LABELS)])
    found = {}
    for kind, chosen in (("suggested", np.append(first, suggested)), ("random", drawn[: before + LABELS])):
        codes = np.full(len(train), -1)
        codes[chosen] = labels[train[chosen]]
        nearest = train[chosen][(points[test] @ points[train[chosen]].T).argmax(axis=1)]
        walk = views.ends(neighbors, codes, int(labels.max()) + 1, GAMMA)
        start, after = with_ssdml(features, labels, encoder, train, test, codes, seed)
        found[kind] = {"to the labels": 100 * float((labels[nearest] == labels[test]).mean()),
                       "walk": 100 * float((walk.best == labels[train])[codes < 0].mean()),
                       "classes": float(len(np.unique(labels[train[chosen]]))), "SSDML": after, "SSDML's start": start}
    return found


def with_ssdml(features: Array, labels: Array, encoder: Encoder, train: Array, test: Array, codes: Array,
               seed: int) -> tuple[float, float]:
    """R@1 of the test half before and after two epochs of SSDML's metric on the labeled training half, in percent."""
    few = np.full(len(features), -1)
    few[train] = codes
    data = training_data(features, None, train, "few", few=few)
    method = SSDML(dimension=16, epochs=2, partition=0, steps=3)
    setting = Setting(seed, torch.device("cpu"), encoder)
    embedders = [method.initial(data, setting), *(epoch.embedder for epoch in method.fit(data, setting))]
    start, after = (100 * recall_at_k(one.embed_features(features[test]), labels[test], (1,))[1]
                    for one in (embedders[0], embedders[-1]))
    return start, after


def summary(seeds: list[dict[str, dict[str, float]]]) -> dict[str, Any]:
    """Means and deviations of both kinds, and in how many seeds the suggested ones were better."""
    rows = {kind: {name: [float(np.mean(values)), float(np.std(values))]
                   for name, values in ((name, [one[kind][name] for one in seeds]) for name in seeds[0][kind])}
            for kind in seeds[0]}
    better = {name: sum(one["suggested"][name] > one["random"][name] for one in seeds)
              for name in ("to the labels", "walk", "SSDML")}
    return rows | {"seeds in which the suggested ones were better": better}


if __name__ == "__main__":
    main()
