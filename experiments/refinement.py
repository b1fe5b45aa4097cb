"""Measure refinement without labels, one table for each protocol.

    python -m experiments.refinement birds100 --size 112 --choose --out assets/results/refinement-birds100.json
    python -m experiments.refinement birds100 --size 112 --out assets/results/refinement-birds100.json

`--choose` fixes the views and then k, times and alpha of averages, and k1, k2 and lambda of re-ranking. Of diffusion it
fixes alpha only: k and gamma keep the values of the start, 50 and 3, and so does every shortlist. It divides the
training half's own classes into two parts, fits whitening on one part and refines the other. Views are those with the
largest sum of Recall@1 and MAP@R. From a start, each option in turn then moves along its values as long as
the sum grows, until no move helps. Only the training half's features and labels reach the choice; whitening keeps its
defaults. The record keeps the choice; without `--choose` the test half is measured with the choice of the record.

Protocols, never mixed in one table: inductive steps are fitted on the training half only; for the gallery protocol 600
images of the test half (of a small half, a third) are queries outside of the gallery; for the transductive protocol
every image of the test half is in the gallery and a query. `--per-class N` takes the first N training images of every
class and N/5 test images of a data set with the folders `train` and `test`.

With several encoders, `--backbone efficientnet-lite0+squeezenet`, the features of each are averaged over the views and
joined without whitening, so that the step `whiten` is the only one that is fitted on images.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.recording import mean_and_deviation, provenance, record_parser, write_record
from experiments.seen_categories import link_first_images
from udml_core.base.arrays import Array, Integers
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import DEFAULT_BACKBONE, EncoderSpec, choose_spec
from udml_core.data.refinement_views import View, average_features, views_of_step
from udml_core.data.side_by_side import frozen_encoder
from udml_core.data.splits import make_split
from udml_core.numerics.refinement import Refiner
from udml_core.numerics.refinement.linear import unit_rows
from udml_core.numerics.refinement.ranking_measures import retrieval_measures
from udml_core.numerics.refinement.recipe import Average, Expand, Recipe, Views, make_step

QUERIES, SEEDS, DEEPEST = 600, 3, 1000
VIEWS = {name: views_of_step(step) for name, step in {
    "image": Views(flip=False, zoom=1), "flip": Views(zoom=1), "zoom": Views(flip=False),
    "flip and zoom": Views()}.items()}
"""The views among which the choice is made."""
TWO_ZOOMS = {"flip and two zooms": [View(zoom, flip) for zoom in (1.0, 0.85, 0.7) for flip in (False, True)]}
"""Further views, for the option `--two-zooms`."""
PROTOCOLS = {"inductive": "no step has seen the test images", "gallery": "gallery seen, queries from outside",
             "transductive": "gallery seen, with the queries in it"}
"""The title of each table."""
VALUES: dict[str, tuple[float, ...]] = {
    "k": (2, 3, 5, 7, 10, 15, 20, 30, 40, 60, 80, 100, 150, 200), "times": (1, 2, 3, 4, 5), "alpha": (0, 1, 2, 3, 5, 8),
    "k1": (5, 10, 15, 20, 30, 40, 60, 80, 120, 160, 200), "k2": (1, 2, 4, 6, 10, 15, 20, 30, 50),
    "weight": (0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)}
PROBABILITIES = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
"""The values of diffusion's alpha."""
STARTS = {"average": "average:k=20,times=2,alpha=3", "rerank": "rerank:k1=40,k2=10,weight=0.1",
          "both": "average:k=5,alpha=3+rerank:k1=40,k2=6,weight=0.3", "diffuse": "diffuse:k=50,alpha=0.9"}
"""The recipe from which each row's options are chosen; options whose start is not among the values keep it."""


def main() -> None:
    parser = record_parser(__doc__)
    parser.add_argument("dataset")
    parser.add_argument("--size", type=int, default=112, help="image size in pixels")
    parser.add_argument("--backbone", default=DEFAULT_BACKBONE)
    parser.add_argument("--gray", action="store_true", help="read one channel")
    parser.add_argument("--per-class", type=int, help="number of training images of every class; a fifth as many test")
    parser.add_argument("--two-zooms", action="store_true", help="compare six views too, with crops of 85 and 70 %%")
    parser.add_argument("--choose", action="store_true", help="choose the options on the training half only, and stop")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.per_class:
            os.environ["UDML_DATA"] = str(link_first_images(options.dataset, options.per_class, Path(folder)))
        dataset = catalog.load(options.dataset)
        if dataset.labels is None:
            parser.error(f"{dataset.title} has no labels. Choose a data set with classes.")
        split, labels = make_split(dataset, "zero-shot"), np.asarray(dataset.labels)
        spec = choose_spec(options.backbone, dataset.native_size, options.gray, size=options.size, whitening="none")
        features = viewed(dataset, spec, split.train, VIEWS | (TWO_ZOOMS if options.two_zooms else {}))
    if options.choose:
        views, chosen = choose({name: rows[split.train] for name, rows in features.items()}, labels[split.train])
        record = provenance("refinement") | {"views": views, "chosen": chosen}
    else:
        record = json.loads(options.out.read_text()) if options.out.exists() else {}
        if "chosen" not in record:
            sys.exit(f"{options.out} has no chosen options. Run the command with --choose first.")
        plain, averaged = features["image"], features[record["views"]]
        halves = {"training": (plain[split.train], averaged[split.train]),
                  "test": (plain[split.test], averaged[split.test])}
        recipes = [choice["recipe"] for choice in record["chosen"].values()]
        tables = measure(halves, labels[split.test], record["views"], recipes)
        own = provenance("refinement")
        record = own | {
            "command": f"{own['command'].replace(' --out', ' --choose --out')} && {own['command']}",
            "protocol": f"zero-shot test half, {len(split.test):,} images; whitening is fitted on the training half; "
                        f"views ({record['views']}) and options are chosen on the training half's classes; every "
                        "re-ranking and average follows the views and whitening; percent; "
                        f"mean and standard deviation over {SEEDS} draws of {queries_of(labels[split.test])} queries "
                        "outside of the gallery; "
                        "processor seconds of fitting and of the 100 nearest images of every image, and peak memory "
                        "of the process so far",
            "views": record["views"], "chosen": record["chosen"],
            "datasets": {f"{dataset.title}, {options.backbone} at {options.size} px: {title}": {"rows": rows}
                         for title, rows in titled(tables, record["chosen"])}}
    write_record(options.out, record)


def viewed(dataset: Dataset, spec: EncoderSpec, train: Integers, views: Mapping[str, Sequence[View]]
           ) -> dict[str, Array]:
    """Average the features (n, d) of all images over each set of views, which `views` holds by name."""
    encoder = frozen_encoder(dataset, spec.fitted(train, dataset.fingerprint), train)
    return {name: average_features(dataset, encoder, of) for name, of in views.items()}


def titled(tables: dict[str, dict[str, Any]], chosen: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the title and the rows of each protocol's table, and of the choice on the training half."""
    for protocol, rows in tables.items():
        yield PROTOCOLS[protocol], rows
    yield "choice on the training classes", {choice["recipe"]: choice for choice in chosen.values()}


def choose(features: dict[str, Array], labels: Array) -> tuple[str, dict[str, Any]]:
    """Return the best views, and the best recipe of each family with its measures on the training half.

    Args:
        features: Features (m, d) of the training half, by the name of the views.
        labels: Classes (m,) of the training half.
    """
    galleries = {name: leave_classes_out(rows, labels) for name, rows in features.items()}
    views = max(galleries, key=lambda name: sum(measured("", galleries[name])))
    parts = galleries[views]
    whitened = measured("", parts)
    print(views, whitened, flush=True)
    chosen = {}
    for family, start in STARTS.items():
        best, tried = climb(start, parts)
        chosen[family] = {"recipe": best, "recall@1": round(tried[best][0], 2), "map@r": round(tried[best][1], 2),
                          "recall@1 of whitening": round(whitened[0], 2), "candidates": len(tried)}
        print(family, chosen[family], flush=True)
        if tried[best][0] < whitened[0]:
            print(f"{best} lowers Recall@1 of the training classes by {whitened[0] - tried[best][0]:.2f} points.",
                  flush=True)
    return views, chosen


def leave_classes_out(rows: Array, labels: Array) -> list[tuple[Array, Array]]:
    """Return, for two draws, the whitened rows of half of the classes and their labels.

    Whitening is fitted on the other half.
    """
    parts = []
    for seed in range(2):
        classes = np.random.default_rng(seed).permutation(np.unique(labels))
        is_left_out = np.isin(labels, classes[: len(classes) // 2])
        refiner = Refiner("whiten").fit(rows[is_left_out], training=rows[~is_left_out])
        parts.append((refiner.embedding_, labels[is_left_out]))
    return parts


def measured(recipe: str, parts: list[tuple[Array, Array]]) -> tuple[float, float]:
    """Return Recall@1 and MAP@R of a recipe, the means over the parts."""
    values = [list(inside_measures(Refiner(recipe).fit(gallery), names).values()) for gallery, names in parts]
    recall, score = np.mean(values, axis=0)
    return float(recall), float(score)


def climb(start: str, parts: list[tuple[Array, Array]]) -> tuple[str, dict[str, tuple[float, float]]]:
    """Move each option in turn as long as the measures grow; return the best recipe, and all measures by recipe."""
    best, tried = str(Recipe.parse(start)), {}
    tried[best] = measured(best, parts)
    before = ""
    while before != best:
        before = best
        for number, step in enumerate(Recipe.parse(start).steps):
            for field in type(step).model_fields:
                for direction in (1, -1):
                    while (other := moved(best, number, field, direction)) is not None:
                        if other not in tried:
                            tried[other] = measured(other, parts)
                        if sum(tried[other]) <= sum(tried[best]):
                            break
                        best = other
    return best, tried


def moved(recipe: str, number: int, field: str, direction: int) -> str | None:
    """Return the recipe with the next value of a step's field; None if there is none."""
    steps = list(Recipe.parse(recipe).steps)
    values = PROBABILITIES if (steps[number].name, field) == ("diffuse", "alpha") else VALUES.get(field, ())
    value = getattr(steps[number], field)
    if value not in values or not 0 <= values.index(value) + direction < len(values):
        return None
    steps[number] = make_step(steps[number].name,
                              steps[number].model_dump() | {field: values[values.index(value) + direction]})
    return str(Recipe(tuple(steps)))


def measure(halves: dict[str, tuple[Array, Array]], labels: Array, views: str,
            recipes: list[str]) -> dict[str, dict[str, Any]]:
    """Measure every row by protocol.

    Args:
        halves: Features of the training half and the test half, each of the whole images and averaged over views.
        labels: Classes of the test half.
        views: The name of the chosen views.
        recipes: The chosen recipes.
    """
    tables: dict[str, dict[str, Any]] = {"inductive": {}, "gallery": {}, "transductive": {}}
    for name, recipe, number in rows_to_measure(views, recipes):
        training, test = halves["training"][number], halves["test"][number]
        refiner, seconds = fit(recipe, test, training)
        protocol = refiner.protocol(inside=True)
        tables[protocol][name] = inside_measures(refiner, labels) | seconds
        runs = [outside_measures(recipe, test, training, labels, seed) for seed in range(SEEDS)]
        table = tables["gallery"] if protocol != "inductive" else tables["inductive"]
        title = name if protocol != "inductive" else f"{name}, {queries_of(labels)} queries outside"
        table[title] = {measure: mean_and_deviation([run[measure] for run in runs]) for measure in runs[0]}
        for values in (tables[protocol][name], table[title]):
            print(protocol, name, values, flush=True)
    return tables


def rows_to_measure(views: str, recipes: list[str]) -> Iterator[tuple[str, str, int]]:
    """Yield each row's name, its recipe without views, and whether its features are averaged over views."""
    yield "Frozen features", "", 0
    yield "Whitening", "whiten", 0
    if views != "image":
        yield views.capitalize(), "", 1
        yield f"{views.capitalize()}, whitening", "whiten", 1
    for recipe in recipes:
        for extended in filter(None, (recipe, expansion_of(recipe))):
            yield extended, f"whiten+{extended}", 1


def expansion_of(recipe: str) -> str:
    """Return a recipe of averages with query expansion of the same k and alpha; empty for a re-ranking."""
    (step, *others) = Recipe.parse(recipe).steps
    if not isinstance(step, Average) or others:
        return ""
    return str(Recipe((step, Expand(k=step.k, alpha=step.alpha))))


def fit(recipe: str, gallery: Array, training: Array) -> tuple[Refiner, dict[str, float]]:
    """Fit a recipe; return the processor seconds with all neighbors, and the process's peak memory so far in MB."""
    start = time.process_time()
    refiner = Refiner(recipe).fit(gallery, training=training)
    refiner.neighbors(100)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return refiner, {"processor seconds": round(time.process_time() - start, 2), "MB": round(peak)}


def inside_measures(refiner: Refiner, labels: Array) -> dict[str, float]:
    """Measure the gallery's own images as queries."""
    deepest = min(DEEPEST, int(np.unique(labels, return_counts=True)[1].max()) - 1)
    return rounded(retrieval_measures(refiner.neighbors(deepest).indices, labels, labels, inside=True))


def outside_measures(recipe: str, rows: Array, training: Array, labels: Array, seed: int) -> dict[str, float]:
    """Measure drawn queries, which no step has seen, against the remaining images."""
    order = np.random.default_rng(seed).permutation(len(rows))
    queries, gallery = np.split(order, [queries_of(labels)])
    refiner = Refiner(recipe).fit(unit_rows(rows[gallery]), training=training)
    deepest = min(DEEPEST, int(np.unique(labels[gallery], return_counts=True)[1].max()))
    ranking = refiner.search(rows[queries], deepest)
    return rounded(retrieval_measures(ranking.indices, labels[queries], labels[gallery], inside=False))


def queries_of(labels: Array) -> int:
    """Return the number of queries outside of the gallery: 600, and of a small half a third."""
    return min(QUERIES, len(labels) // 3)


def rounded(measures: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 2) for name, value in measures.items()}


if __name__ == "__main__":
    main()
