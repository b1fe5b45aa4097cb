"""When does RPML's bound on the angle act, and does RPML then exceed PCA of the same width?

    python -m experiments.rpml_regimes --jobs 5 --out assets/results/rpml-regimes.json

The first tables repeat the defaults (α = 45°, random start) with pseudo-labels and with the true labels as clusters.
The search starts at PCA and varies α, the dimension and the mining. It trains on half of the training classes and
chooses by MAP@R on the other half, in both directions; a choice is one α and one mining for each dimension. The last
tables report the choices once, on the test half.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

import udml_core  # noqa: F401  (must be imported before anything that loads OpenMP)
from experiments.recording import mean_and_deviation, provenance, record_parser, write_record
from udml_core.base.arrays import Array
from udml_core.data import catalog
from udml_core.data.encoders import DEFAULT_BACKBONE, Encoder, choose_spec
from udml_core.data.features import features_of
from udml_core.data.splits import make_split
from udml_core.data.training_data import TrainingData
from udml_core.exploration import triplets as views
from udml_core.methods import Setting
from udml_core.methods.rpml import RPML
from udml_core.numerics.evaluation import map_at_r, recall_at_k
from udml_core.numerics.sampling import cluster_triplets, generator

WIDTHS = {"birds100": 64, "fashion-mini": 64, "digits": 16}
"""Data sets, with the width of the first tables."""
SIZES = {"birds100": 112}
"""Image sizes other than the default."""
ALPHAS, EPOCHS, PER_ANCHOR = (5.0, 15.0, 25.0, 35.0, 45.0), 3, 3
DIMENSIONS = {"birds100": (8, 64), "fashion-mini": (8, 64), "digits": (8, 32)}
PROBES = 20_000
"""Number of random triplets for the share of violating triplets."""

Values = dict[str, float]
Gains = dict[int, dict[tuple[float, str], float]]
"""Gain in MAP@R over PCA by dimension, α and mining."""


@dataclass(frozen=True)
class Half:
    """Images of some classes.

    Attributes:
        features: Unit features (n, d) float32.
        labels: Classes (n,) as numbers from 0.
    """

    features: Array
    labels: Array

    def part(self, chosen: Array) -> Half:
        """Return the images of the chosen rows."""
        return Half(self.features[chosen], np.unique(self.labels[chosen], return_inverse=True)[1])


def main() -> None:
    parser = record_parser(__doc__)
    parser.add_argument("--dataset", action="append", choices=WIDTHS, help="measure only this data set; repeatable")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    parser.add_argument("--jobs", type=int, default=1, help="processes, default 1")
    options = parser.parse_args()
    names = options.dataset or list(WIDTHS)
    with ProcessPoolExecutor(options.jobs) as pool:
        parts = list(product((measure_search, measure_defaults), names))  # the longest first
        running = [pool.submit(part, name, range(options.seeds)) for part, name in parts]
        measured = [process.result() for process in running]
    record = provenance("rpml_regimes") | {
        "protocol": "zero-shot; frozen unit features; Euclidean distances in the projected space unless 'unit length' "
                    "is named; α and mining chosen on held-out training classes; 3 triplets per anchor and epoch; "
                    "percent; [mean, standard deviation] over the seeds",
        "processor seconds": round(sum(seconds for _, seconds in measured)),
        "datasets": {title: table for tables, _ in measured for title, table in tables.items()}}
    write_record(options.out, record)


def measure_defaults(name: str, seeds: Sequence[int]) -> tuple[dict[str, Any], float]:
    """Return the table of RPML's defaults on a data set, and the processor time in seconds."""
    began = time.process_time()
    title, encoder, train, test = load_halves(name)
    rows = default_rows(encoder, train, test, WIDTHS[name], seeds)
    return {f"{title}: α = 45°, random start, {WIDTHS[name]} dimensions": {"rows": rows}}, time.process_time() - began


def measure_search(name: str, seeds: Sequence[int]) -> tuple[dict[str, Any], float]:
    """Return the tables of the search and of its choices on a data set, and the processor time in seconds."""
    began = time.process_time()
    title, encoder, train, test = load_halves(name)
    gains = search(encoder, train, DIMENSIONS[name])
    chosen = chosen_rows(encoder, train, test, gains, seeds)
    return {f"{title}: MAP@R minus that of PCA on held-out training classes, start PCA": {"rows": search_rows(gains)},
            f"{title}: the choice on the test half, start PCA": {"rows": chosen}}, time.process_time() - began


def load_halves(name: str) -> tuple[str, Encoder, Half, Half]:
    """Return a data set's title, its encoder, and both halves of the zero-shot split."""
    dataset = catalog.load(name)
    assert dataset.labels is not None
    encoder = Encoder(choose_spec("pixels" if name == "digits" else DEFAULT_BACKBONE, dataset.native_size,
                                  dataset.gray, size=SIZES.get(name)))
    features = np.array(features_of(dataset, encoder), dtype=np.float32)
    features /= np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
    everything, split = Half(features, dataset.labels), make_split(dataset, "zero-shot")
    return dataset.title, encoder, everything.part(split.train), everything.part(split.test)


def train_rpml(method: RPML, encoder: Encoder, half: Half, seed: int, clusters: Tensor,
               start: Array | None = None) -> tuple[Array, Array]:
    """Train RPML on given clusters.

    Args:
        method: RPML with a random start.
        encoder: The frozen encoder.
        half: The training images.
        seed: Seed of the start and the triplets.
        clusters: The clusters (n,), such as the pseudo-labels.
        start: Projection (d, l) in place of the random start.

    Returns:
        The projections (d, l) before and after training.
    """
    data, setting = TrainingData(torch.from_numpy(half.features)), Setting(seed, torch.device("cpu"), encoder)
    parameter, projection = method._first_point(data, setting)
    if start is not None:
        projection = torch.from_numpy(np.ascontiguousarray(start, dtype=np.float32))
    state = {"epoch": torch.tensor(0), "parameter": parameter, "projection": projection, "step": torch.tensor(0.0),
             "labels": clusters}
    *_, last = method.fit(data, setting, state)
    return projection.numpy(), last.state["projection"].numpy()


def pseudo_labels(half: Half) -> Tensor:
    """Return the clusters of authority ascent at RPML's defaults."""
    return RPML()._clusters(torch.from_numpy(half.features)).labels


def regime_of(half: Half, clusters: Tensor, projections: tuple[Array, Array], alpha: float) -> Values:
    """Return the measures of `exploration.triplets.Regime` in percent, on random triplets of the clusters."""
    drawn = cluster_triplets(clusters, 10, PROBES, generator(0, 0))
    regime = views.regime(half.features, drawn.T.numpy(), *projections, alpha)
    return {"violating before": 100 * regime.before, "violating after": 100 * regime.after,
            "variance of PCA": 100 * regime.variance, "overlap with PCA": 100 * regime.overlap}


def scores(rows: Array, labels: Array) -> Values:
    """Return R@1 and MAP@R in percent."""
    return {"recall@1": 100 * recall_at_k(rows, labels, (1,))[1], "map@r": 100 * map_at_r(rows, labels)[0]}


def pca(half: Half, dimension: int, centered: bool) -> Array:
    """Return the principal directions (d, l) of the features, about their mean or about the origin."""
    rows = half.features.astype(np.float64)
    rows = rows - rows.mean(axis=0) if centered else rows
    return np.linalg.eigh(rows.T @ rows)[1][:, ::-1][:, :dimension]


def unit(rows: Array) -> Array:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def pca_rows(train: Half, test: Half, dimension: int) -> dict[str, Values]:
    """Measure PCA: both kinds, without and with unit length."""
    rows = {}
    for name, centered in (("PCA, centered", True), ("PCA, uncentered", False)):
        directions = pca(train, dimension, centered)
        rows[name] = scores(test.features @ directions, test.labels)
        mean = train.features.mean(axis=0) if centered else 0.0
        rows[f"{name}, unit length"] = scores(unit((test.features - mean) @ directions), test.labels)
    return rows


def default_rows(encoder: Encoder, train: Half, test: Half, dimension: int, seeds: Sequence[int]) -> dict[str, Any]:
    """Measure RPML's defaults with pseudo-labels and with true labels, beside PCA and the frozen features."""
    rows: dict[str, Any] = {"Frozen features": scores(test.features, test.labels)}
    rows |= pca_rows(train, test, dimension)
    for name, clusters in (("pseudo-labels", pseudo_labels(train)), ("true labels", torch.from_numpy(train.labels))):
        runs, of_unit = [], []
        for seed in seeds:
            projections = train_rpml(RPML(dimension=dimension, per_anchor=PER_ANCHOR), encoder, train, seed, clusters)
            embedding = test.features @ projections[1]
            runs.append(regime_of(train, clusters, projections, 45.0) | scores(embedding, test.labels))
            of_unit.append(scores(unit(embedding), test.labels))
        rows[f"RPML, {name}"], rows[f"RPML, {name}, unit length"] = spread(runs), spread(of_unit)
        print(name, rows[f"RPML, {name}"], flush=True)
    return rows


def search(encoder: Encoder, train: Half, dimensions: Sequence[int]) -> Gains:
    """Search α and the mining on held-out training classes.

    Both halves of the training classes are held out in turn.
    """
    gains: Gains = {}
    for parity in (0, 1):
        part, held_out = train.part(train.labels % 2 == parity), train.part(train.labels % 2 != parity)
        clusters, directions = pseudo_labels(part), pca(part, max(dimensions), True)
        for dimension in dimensions:
            start = directions[:, :dimension]
            reference = scores(held_out.features @ start, held_out.labels)["map@r"]
            for alpha, mining in product(ALPHAS, ("random", "violating")):
                method = RPML.make({"alpha": alpha, "dimension": dimension, "mining": mining, "epochs": EPOCHS,
                                    "per_anchor": PER_ANCHOR})
                _, learned = train_rpml(method, encoder, part, 0, clusters, start)
                gain = scores(held_out.features @ learned, held_out.labels)["map@r"] - reference
                table = gains.setdefault(dimension, {})
                table[alpha, mining] = table.get((alpha, mining), 0.0) + gain / 2
            print(parity, dimension, {key: round(gain, 2) for key, gain in gains[dimension].items()}, flush=True)
    return gains


def search_rows(gains: Gains) -> dict[str, Values]:
    return {f"α = {alpha:g}°, {mining} triplets": {f"{dimension} dimensions": table[alpha, mining]
                                                    for dimension, table in gains.items()}
            for alpha, mining in next(iter(gains.values()))}


def chosen_rows(encoder: Encoder, train: Half, test: Half, gains: Gains, seeds: Sequence[int]) -> dict[str, Any]:
    """Measure each dimension's choice on the test half, beside PCA."""
    rows: dict[str, Any] = {}
    clusters, directions = pseudo_labels(train), pca(train, max(gains), True)
    for dimension, table in gains.items():
        start = directions[:, :dimension]
        rows[f"{dimension} dimensions, PCA, centered"] = scores(test.features @ start, test.labels)
        alpha, mining = max(table, key=lambda key: table[key])
        method = RPML.make({"alpha": alpha, "dimension": dimension, "mining": mining, "epochs": EPOCHS,
                            "per_anchor": PER_ANCHOR})
        runs = []
        for seed in seeds:
            projections = train_rpml(method, encoder, train, seed, clusters, start)
            runs.append(regime_of(train, clusters, projections, alpha)
                        | scores(test.features @ projections[1], test.labels))
        name = f"{dimension} dimensions, RPML, α = {alpha:g}°, {mining} triplets"
        rows[name] = spread(runs)
        print(name, rows[name], rows[f"{dimension} dimensions, PCA, centered"], flush=True)
    return rows


def spread(runs: list[Values]) -> dict[str, list[float]]:
    return {measure: mean_and_deviation([run[measure] for run in runs]) for measure in runs[0]}


if __name__ == "__main__":
    main()
