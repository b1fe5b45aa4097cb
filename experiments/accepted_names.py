"""Measure how many accepted names are right if only some classes have labels.

    python -m experiments.accepted_names birds100 emoji digits fashion-mini --out assets/results/accepted-names.json

A seed draws the classes that have labels, and their labeled images, as if a user had looked at each. Names are accepted
as on the page Label. `right`: share of the accepted names that are right, images of classes without labels counted as
wrong; `found`: share of the unlabeled images of labeled classes with the right accepted name; both in percent for each
seed, and null where nothing is accepted. The rule was chosen on birds, with the other data sets in view.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from experiments.recording import provenance, record_parser, write_record
from udml_core.base.arrays import Array, Integers
from udml_core.base.errors import UserError
from udml_core.base.paths import data_folder
from udml_core.data import catalog
from udml_core.data.encoders import DEFAULT_BACKBONE, Encoder, choose_spec
from udml_core.data.features import features_of
from udml_core.exploration.accepting import PRECISION
from udml_core.exploration.naming import GAMMA, NEIGHBORS
from udml_core.numerics.neighbors import graph_neighbors
from udml_core.runs.search.naming import name_codes, reach_along

MOST_CLASSES, SEEDS = 30, 3
LABELS, SHARES = (5, 15), (4 / 30, 8 / 30, 15 / 30, 1.0)


def images_of(name: str) -> tuple[str, Array, Integers]:
    """Return the title, the unit features of at most 30 classes, and the classes 0 … c−1."""
    place = data_folder()
    dataset = catalog.load(str(place / name) if place is not None and (place / name).is_dir() else name)
    if dataset.labels is None:
        raise UserError(f"The data set {name} has no classes. Choose another.")
    features = np.array(features_of(dataset, Encoder(choose_spec(DEFAULT_BACKBONE, dataset.native_size, dataset.gray))))
    classes = np.unique(dataset.labels)
    drawn = np.random.default_rng(0).choice(classes, min(MOST_CLASSES, len(classes)), replace=False)
    rows = np.flatnonzero(np.isin(dataset.labels, drawn))
    points = features[rows] - features[rows].mean(axis=0)
    return dataset.title, points / np.linalg.norm(points, axis=1, keepdims=True), np.unique(
        dataset.labels[rows], return_inverse=True)[1]


def accept(points: Array, truth: Integers, labels: int, share: float) -> dict[str, Any]:
    """Name images from labels of a share of the classes, with several seeds."""
    reach = reach_along(graph_neighbors(points, NEIGHBORS)[1], GAMMA)
    classes = int(truth.max()) + 1
    count = max(2, round(share * classes))
    right, found = [], []
    for seed in range(SEEDS):
        random, codes = np.random.default_rng(seed), np.full(len(truth), -1)
        named = random.choice(classes, count, replace=False)
        for code, name in enumerate(named):
            rows = np.flatnonzero(truth == name)
            codes[random.choice(rows, min(labels, len(rows) - 1), replace=False)] = code
        known = np.full(classes, -2)
        known[named] = np.arange(count)
        accepted, rest = name_codes(codes, count, reach), codes < 0
        hits = int((rest & (accepted == known[truth])).sum())
        names = int((rest & (accepted >= 0)).sum())
        right.append(round(100 * hits / names, 1) if names else None)
        found.append(round(100 * hits / int((rest & (known[truth] >= 0)).sum()), 1))
    return {"classes with labels": count, "of": classes, "labels each": labels, "right": right, "found": found}


def main() -> None:
    parser = record_parser(__doc__)
    parser.add_argument("datasets", nargs="+", help="names, or folders in the folder that UDML_DATA names")
    options = parser.parse_args()
    results: dict[str, Any] = {}
    for name in options.datasets:
        title, points, truth = images_of(name)
        for labels in LABELS:
            for share in SHARES:
                row = accept(points, truth, labels, share)
                results.setdefault(title, []).append(row)
                print(title, json.dumps(row), flush=True)
    write_record(Path(options.out), provenance("accepted_names") | {
        "protocol": f"Features of {DEFAULT_BACKBONE}, centered, of at most {MOST_CLASSES} classes; {NEIGHBORS} "
                    f"neighbors, γ = {GAMMA:g}; {SEEDS} seeds; names accepted for {100 * PRECISION:.0f} % right names.",
        "datasets": results})


if __name__ == "__main__":
    main()
