"""Measure refinement without labels, one table for each protocol.

    python -m experiments.refinement birds100 --size 112 --choose --out assets/results/birds100-refinement.json
    python -m experiments.refinement birds100 --size 112 --out assets/results/birds100-refinement.json

`--choose` fixes k, alpha, times, k1, k2 and lambda: it divides the training half's own classes into two parts, fits
whitening on one part and refines the other, and keeps the recipe with the largest sum of Recall@1 and MAP@R. Only the
training half's features and labels reach the choice; views and whitening keep their defaults. The record keeps the
choice; without `--choose` the test half is measured with the choice of the record.

Protocols, never mixed in one table: inductive steps are fitted on the training half only; for the gallery protocol 600
images of the test half are queries outside of the gallery; for the transductive protocol every image of the test half
is in the gallery and a query.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from experiments.zero_shot import mean_and_deviation, provenance
from udml_core.arrays import Array
from udml_core.backbones import DEFAULT_BACKBONE, Encoder, EncoderSpec
from udml_core.data import catalog
from udml_core.data.splits import make_split
from udml_core.refinement import Refiner
from udml_core.refinement.linear import unit_rows
from udml_core.refinement.measures import retrieval_measures
from udml_core.refinement.recipe import Views
from udml_core.refinement.views import View, average_features, view_features, views_of_step

QUERIES, SEEDS, DEEPEST = 600, 3, 1000
CANDIDATES = {
    "average": [f"average:k={k},times={times},alpha={alpha}" for k in (5, 10, 20) for times in (1, 2)
                for alpha in (0, 3)],
    "rerank": [f"rerank:k1={k1},k2={k2},weight={weight}" for k1 in (20, 30, 40) for k2 in (4, 6, 10)
               for weight in (0.1, 0.3)],
    "both": [f"average:k={k},alpha=3+rerank:k1={k1},k2=6,weight={weight}" for k in (3, 5) for k1 in (20, 30, 40)
             for weight in (0.1, 0.3)],
    "diffuse": [f"diffuse:k={k},alpha={alpha}" for k in (20, 50) for alpha in (0.7, 0.9, 0.99)],
}
"""The recipes among which each row's options are chosen."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--size", type=int, default=112, help="image size in pixels")
    parser.add_argument("--backbone", default=DEFAULT_BACKBONE)
    parser.add_argument("--choose", action="store_true", help="choose the options on the training half only, and stop")
    parser.add_argument("--out", type=Path, required=True, help="the record to write")
    options = parser.parse_args()
    dataset = catalog.load(options.dataset)
    if dataset.labels is None:
        parser.error(f"{dataset.title} has no labels. Choose a data set with classes.")
    encoder = Encoder(EncoderSpec(backbone=options.backbone, size=options.size))
    split, labels = make_split(dataset, "zero-shot"), np.asarray(dataset.labels)
    plain = view_features(dataset, encoder, View())
    viewed = average_features(dataset, encoder, views_of_step(Views()))
    if options.choose:
        chosen = choose(viewed[split.train], labels[split.train])
        record = provenance("refinement") | {"chosen": chosen}
    else:
        record = json.loads(options.out.read_text()) if options.out.exists() else {}
        if "chosen" not in record:
            sys.exit(f"{options.out} has no chosen options. Run the command with --choose first.")
        halves = {"training": (plain[split.train], viewed[split.train]), "test": (plain[split.test],
                                                                                  viewed[split.test])}
        tables = measure(halves, labels[split.test], [choice["recipe"] for choice in record["chosen"].values()])
        record = provenance("refinement") | {
            "protocol": "whitening is fitted on the training half; options are chosen on its classes; percent; [mean, "
                        f"standard deviation] over {SEEDS} draws of {QUERIES} queries in the gallery protocol",
            "chosen": record["chosen"],
            "datasets": {f"{dataset.title}, {options.size} px, {protocol}": {"rows": rows}
                         for protocol, rows in tables.items()}}
    options.out.write_text(json.dumps(record, indent=1) + "\n")


def choose(rows: Array, labels: Array) -> dict[str, Any]:
    """Return the best recipe of each family on the training half, with its measures.

    Args:
        rows: Features (m, d) of the training half, averaged over views.
        labels: Classes (m,) of the training half.
    """
    parts = []
    for seed in range(2):
        classes = np.random.default_rng(seed).permutation(np.unique(labels))
        is_left_out = np.isin(labels, classes[: len(classes) // 2])
        refiner = Refiner("whiten").fit(rows[is_left_out], rows[~is_left_out])
        parts.append((refiner.embedding_, labels[is_left_out]))
    chosen = {}
    for family, recipes in CANDIDATES.items():
        values = {recipe: np.mean([list(inside_measures(Refiner(recipe).fit(gallery), names).values())
                                   for gallery, names in parts], axis=0) for recipe in recipes}
        best = max(values, key=lambda recipe: values[recipe].sum())
        chosen[family] = {"recipe": best, "recall@1": round(float(values[best][0]), 2),
                          "map@r": round(float(values[best][1]), 2), "candidates": len(recipes)}
        print(family, chosen[family], flush=True)
    return chosen


def measure(halves: dict[str, tuple[Array, Array]], labels: Array,
            recipes: list[str]) -> dict[str, dict[str, Any]]:
    """Measure every row by protocol.

    Args:
        halves: Features of the training half and the test half, each of the whole images and averaged over views.
        labels: Classes of the test half.
        recipes: The chosen recipes.
    """
    tables: dict[str, dict[str, Any]] = {"inductive": {}, "gallery": {}, "transductive": {}}
    for name, recipe, views in rows_to_measure(recipes):
        training, test = halves["training"][views], halves["test"][views]
        refiner, seconds = fit(recipe, test, training)
        protocol = refiner.protocol(inside=True)
        tables[protocol][name] = inside_measures(refiner, labels) | seconds
        runs = [outside_measures(recipe, test, training, labels, seed) for seed in range(SEEDS)]
        table = tables["gallery"] if protocol != "inductive" else tables["inductive"]
        title = name if protocol != "inductive" else f"{name}, {QUERIES} queries outside"
        table[title] = {measure: mean_and_deviation([run[measure] for run in runs]) for measure in runs[0]}
        for values in (tables[protocol][name], table[title]):
            print(protocol, name, values, flush=True)
    return tables


def rows_to_measure(recipes: list[str]) -> Iterator[tuple[str, str, int]]:
    """Yield each row's name, its recipe without views, and whether its features are averaged over views."""
    yield "Frozen features", "", 0
    yield "Whitening", "whiten", 0
    yield "Views", "", 1
    yield "Views, whitening", "whiten", 1
    for recipe in recipes:
        expanded = expansion_of(recipe)
        yield f"Views, whitening, {recipe}", f"whiten+{recipe}", 1
        if expanded:
            yield f"Views, whitening, {expanded}", f"whiten+{expanded}", 1


def expansion_of(recipe: str) -> str:
    """Return a recipe of averages with query expansion of the same k and alpha; empty for a re-ranking."""
    if "rerank" in recipe or "diffuse" in recipe:
        return ""
    values = dict(option.split("=") for option in recipe.partition(":")[2].split(","))
    return f"{recipe}+expand:k={values['k']},alpha={values['alpha']}"


def fit(recipe: str, gallery: Array, training: Array) -> tuple[Refiner, dict[str, float]]:
    """Fit a recipe; return the seconds with all neighbors, and the process's peak memory in MB."""
    start = time.perf_counter()
    refiner = Refiner(recipe).fit(gallery, training)
    refiner.neighbors(100)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return refiner, {"seconds": round(time.perf_counter() - start, 2), "MB": round(peak)}


def inside_measures(refiner: Refiner, labels: Array) -> dict[str, float]:
    """Measure the gallery's own images as queries."""
    deepest = min(DEEPEST, int(np.unique(labels, return_counts=True)[1].max()) - 1)
    return rounded(retrieval_measures(refiner.neighbors(deepest).indices, labels, labels, inside=True))


def outside_measures(recipe: str, rows: Array, training: Array, labels: Array, seed: int) -> dict[str, float]:
    """Measure drawn queries, which no step has seen, against the remaining images."""
    order = np.random.default_rng(seed).permutation(len(rows))
    queries, gallery = order[:QUERIES], order[QUERIES:]
    refiner = Refiner(recipe).fit(unit_rows(rows[gallery]), training)
    deepest = min(DEEPEST, int(np.unique(labels[gallery], return_counts=True)[1].max()))
    ranking = refiner.search(rows[queries], deepest)
    return rounded(retrieval_measures(ranking.indices, labels[queries], labels[gallery], inside=False))


def rounded(measures: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 2) for name, value in measures.items()}


if __name__ == "__main__":
    main()
