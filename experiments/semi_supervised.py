"""SSDML's tables: encoders trained with few labels.

Every row and seed is a run.

    python -m experiments.semi_supervised fashion-mini --seeds 3 --out assets/results/fashion-mini-ssdml.json
    python -m experiments.semi_supervised birds100 --table 5 --table alpha --epochs 20 --out …
    python -m experiments.semi_supervised fashion-mini --table labels --runs runs/labels --out …

Table 1 contains the start, the five baselines and SSDML; table 4 SSDML without orthogonality; table 5 the losses on
labels alone. `alpha` is figure 2; `collapse` compares SSDML's loss as the printed sum, as a mean, and relative.
`labels` varies the number of labels of each class, `gamma` also how far they spread. `variants` compares when the
projection learns, where it starts and whether embeddings have unit length. The epoch is chosen by recall@1, which the
paper reports, on 15 % of the training half. If the paper uses the data set, the record contains its printed figures.

A row of SSDML also reports which shares of the first epoch's positives and negatives have the anchor's class, and the
same for neighbors sorted by distance in place of affinity.

With `--runs` the runs are kept in a folder, and the same command resumes unfinished ones.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any, get_args

from experiments.recording import is_comparable, mean_and_deviation, provenance, record_parser, write_record
from experiments.seen_categories import link_first_images
from experiments.zero_shot import find_or_create_run, finish_run, is_equal, read_rows, row_result
from udml_core.cli.commands import parse_settings
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import DEFAULT_BACKBONE
from udml_core.data.splits import Select, make_split
from udml_core.exploration.affinity import by_distance, training_graph, triplet_truth
from udml_core.numerics.explanations import Affinities
from udml_core.runs import Run, RunRequest, Spec
from udml_core.work.jobs import plan
from udml_core.work.jobs.presets import show

TABLES: dict[str, dict[str, str]] = {
    "1": {"Deep-LRML": "lrml", "Deep-SERAPH": "seraph", "Deep-ISDML": "isdml", "Deep-APLLR": "apllr",
          "Deep-APIT": "apit", "SSDML": "ssdml"},
    "4": {"SSDML": "ssdml", "SSDML, not orthogonal": "ssdml orthogonal=false",
          "SSDML, encoder's rate 0": "ssdml learning_rate=0.0"},
    "5": {"Triplet": "triplet", "Angular": "angular", "SSDML": "ssdml"},
    "alpha": {f"SSDML, α={alpha}°": f"ssdml alpha={alpha}.0" for alpha in (35, 40, 45, 55)},
    "collapse": {"SSDML, sum": 'ssdml scale="sum"', "SSDML, mean": 'ssdml scale="mean"',
                 "SSDML, relative": 'ssdml scale="relative"'},
    "labels": {f"SSDML, {count} labels": f"ssdml @labels={count}" for count in (10, 20, 50, 100, 200, 500)},
    "gamma": {f"SSDML, {count} labels, γ={gamma}": f"ssdml @labels={count} gamma={gamma}"
              for count in (10, 100, 500) for gamma in (0.7, 0.99)},
    "variants": {"SSDML": "ssdml", "SSDML, L per partition": 'ssdml alternation="partition" steps=100',
                 "SSDML, start PCA": 'ssdml beginning="pca"', "SSDML, unit length": "ssdml unit_length=true"},
}
PRINTED: dict[str, dict[str, list[float]]] = {
    "fashion": {
        "Initial": [32.6, 71.9, 82.0, 89.5, 94.8], "Deep-LRML": [53.2, 75.3, 83.9, 90.2, 95.0],
        "Deep-SERAPH": [53.0, 75.9, 85.1, 91.5, 95.4], "Deep-ISDML": [51.3, 74.4, 84.2, 90.7, 95.1],
        "Deep-APLLR": [38.9, 59.5, 73.3, 84.1, 91.4], "Deep-APIT": [37.3, 69.4, 80.1, 88.5, 94.1],
        "SSDML": [52.1, 77.6, 86.0, 91.8, 95.6], "SSDML, not orthogonal": [50.3, 73.3, 82.4, 89.7, 94.4]},
    "mnist": {
        "Initial": [17.4, 86.5, 92.4, 95.9, 97.6], "Deep-LRML": [48.3, 88.7, 93.2, 95.9, 97.6],
        "Deep-SERAPH": [45.3, 92.5, 95.7, 97.6, 98.7], "Deep-ISDML": [44.1, 92.1, 95.7, 97.5, 98.6],
        "Deep-APLLR": [30.5, 57.6, 71.1, 82.1, 90.1], "Deep-APIT": [31.7, 87.6, 92.9, 96.0, 97.9],
        "SSDML": [47.5, 93.9, 96.6, 98.2, 98.9], "SSDML, not orthogonal": [42.9, 91.5, 95.3, 97.3, 98.6]},
    "cifar": {
        "Initial": [20.4, 38.2, 54.9, 71.0, 83.6], "Deep-LRML": [16.0, 40.2, 56.3, 71.5, 83.7],
        "Deep-SERAPH": [21.3, 39.5, 56.2, 71.1, 83.7], "Deep-ISDML": [20.0, 36.4, 52.4, 68.5, 82.1],
        "Deep-APLLR": [13.3, 24.4, 40.0, 58.8, 76.4], "Deep-APIT": [11.4, 26.0, 41.4, 59.6, 76.4],
        "SSDML": [25.3, 41.4, 57.3, 72.6, 84.9], "SSDML, not orthogonal": [19.0, 37.4, 54.2, 69.7, 83.4]},
}
"""NMI and recall@1, 2, 4, 8 of tables 1 and 4, by the beginning of a data set's name."""
CHOSEN = {"last": "the last", "validation": "best MAP@R on images held out",
          "recall": "best recall@1 on images held out"}
SHOWN = ("nmi", "recall@1", "recall@2", "recall@4", "recall@8", "map@r")


def main() -> None:
    options = parse_arguments()
    tables = options.table or ["1"]
    rows = {name: row for table in tables for name, row in TABLES[table].items()
            if not options.row or name in options.row}
    results = read_rows(options.out) if options.resume else {}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as data:
        if options.per_class:
            os.environ["UDML_DATA"] = str(link_first_images(options.dataset, options.per_class, Path(data)))
        dataset = catalog.load(options.dataset)
        for name, row in rows.items():
            specs = plan_row(options, row, dataset)
            text = row_text(specs[0])
            if not is_equal(results.get(name), text, options.seeds):
                created = [find_or_create_run(spec, options.runs or Path(folder)) for spec in specs]
                runs = [finish_run(run, name) for run in created]
                results[name] = row_result(text, runs, specs[0], dataset) | {
                    "fields": specs[0].fields, "labels": specs[0].labels_per_class,
                    "seconds": mean_and_deviation([run["seconds"] for run in runs]),
                    "triplets": judge_triplets(created, dataset), "printed": printed_figures(options.dataset, name)}
            print_row(name, results[name]["summary"]["final"], results[name])
            write_record(options.out, build_record(options, dataset, tables, results))
    first = next(iter(results.values()))
    print_row("Initial", first["summary"]["initial"], {"printed": printed_figures(options.dataset, "Initial")})


def parse_arguments() -> argparse.Namespace:
    parser = record_parser(__doc__)
    parser.add_argument("dataset")
    parser.add_argument("--table", action="append", choices=TABLES, help="a table of the paper; repeatable")
    parser.add_argument("--row", action="append", help="measure only this row of the tables; repeatable")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--labels-per-class", type=int, help="number of labels of every class")
    parser.add_argument("--select", choices=get_args(Select), default="recall",
                        help="which epoch to keep: the best by recall@1 or by MAP@R (validation), or the last")
    parser.add_argument("--per-class", type=int, help="number of training images of every class; a fifth as many "
                                                      "test. Needs a folder below UDML_DATA with both halves")
    parser.add_argument("--head", action="store_true", help="learn only the metric, on frozen features")
    parser.add_argument("--backbone")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="FIELD=VALUE",
                        help="a field of SSDML in every row; repeatable")
    parser.add_argument("--runs", type=Path, help="folder that keeps the runs; without it they are temporary")
    parser.add_argument("--resume", action="store_true", help="keep rows of an existing record that are equal")
    return parser.parse_args()


def plan_row(options: argparse.Namespace, row: str, dataset: Dataset) -> list[Spec]:
    """Plan the runs of a row, one for each seed.

    Args:
        options: The command's options.
        row: METHOD FIELD=VALUE …, where @labels=N sets the number of labels of every class.
        dataset: The data set.
    """
    method, *settings = row.split()
    labels = next((int(setting[8:]) for setting in settings if setting.startswith("@labels=")),
                  options.labels_per_class)
    fields = choose_fields(options, method, dataset) | parse_settings(
        [setting for setting in settings if not setting.startswith("@")])
    return [plan(RunRequest(dataset=dataset.name, method=method, fields=fields, seed=seed, select=options.select,
                            backbone=options.backbone or choose_backbone(dataset), split=choose_split(dataset),
                            labels_per_class=labels), dataset) for seed in range(options.seeds)]


def judge_triplets(runs: list[Run], dataset: Dataset) -> dict[str, list[float]]:
    """Return which share of the first epoch's positives and negatives has the anchor's class.

    The neighbors are sorted by affinity, as in training, or by distance.

    Returns:
        Percent, as mean and standard deviation over the seeds; empty for methods without affinities.
    """
    shares: dict[str, list[float]] = {}
    for run in runs:
        spec = run.spec()
        record = next((record for record in run.explanations(1) if isinstance(record, Affinities)), None)
        if record is None:
            return {}
        graph = training_graph(record, make_split(dataset, spec.split, spec.holds_out, spec.seed).train)
        assert dataset.labels is not None
        for order, values in (("affinity", record.after), ("distance", by_distance(graph.neighbors))):
            truth = triplet_truth(graph.neighbors, values, dataset.labels[graph.images])
            shares.setdefault(f"positives by {order}", []).append(100 * truth.positives)
            shares.setdefault(f"negatives by {order}", []).append(100 * truth.false_negatives)
    return {name: mean_and_deviation(values) for name, values in shares.items()}


def choose_fields(options: argparse.Namespace, method: str, dataset: Dataset) -> dict[str, Any]:
    """Return the paper's settings.

    Small images: k = 10 and α = 40° with partitions. Photographs: k = 50, α = 45°, 128 dimensions, all images at once.
    """
    fields: dict[str, Any] = {"epochs": options.epochs, "trains": "head" if options.head else "all"}
    photographs = dataset.native_size > 32
    if photographs and method not in ("triplet", "angular"):
        fields |= {"n_neighbors": 50, "partition": 0}
    if photographs and method == "ssdml":
        fields |= {"alpha": 45.0}
    if method in ("ssdml", "triplet", "angular"):
        fields |= {"dimension": 128 if photographs else 64 if dataset.gray else 32}
    return fields | (parse_settings(options.settings) if method == "ssdml" else {})


def row_text(spec: Spec) -> str:
    """Return a run's settings as the text of a row."""
    options = ("backbone", "split", "select", "labels_per_class")
    return " ".join([spec.method, *(f"{name}={show(value)}" for name, value in spec.fields.items()),
                     *(f"@{name}={getattr(spec, name)}" for name in options)])


def choose_backbone(dataset: Dataset) -> str:
    if dataset.native_size > 32:
        return DEFAULT_BACKBONE
    return "lenet" if dataset.gray else "cifar-quick"


def choose_split(dataset: Dataset) -> str:
    return "zero-shot" if dataset.native_size > 32 else "seen"


def printed_figures(dataset: str, row: str) -> list[float] | None:
    """Return the paper's figures of a row: NMI and recall@1, 2, 4, 8."""
    return next((table.get(row) for name, table in PRINTED.items() if Path(dataset).name.startswith(name)), None)


def print_row(name: str, measured: dict[str, list[float]], result: dict[str, Any]) -> None:
    line = "  ".join(f"{measure} {mean:.1f}±{deviation:.1f}" for measure, (mean, deviation) in
                     ((measure, measured[measure]) for measure in SHOWN))
    triplets = "  ".join(f"{share} {mean:.1f}" for share, (mean, _) in result.get("triplets", {}).items())
    print(f"{name:24} {line}  seconds {result.get('seconds', ['–'])[0]}  printed {result['printed']}  {triplets}",
          flush=True)


def build_record(options: argparse.Namespace, dataset: Dataset, tables: list[str],
                 results: dict[str, Any]) -> dict[str, Any]:
    start = printed_figures(options.dataset, "Initial")
    return provenance("semi_supervised") | {
        "dataset": dataset.title, "images": len(dataset), "tables": tables,
        "protocol": f"split {choose_split(dataset)}; labels drawn by the seed; epoch: {CHOSEN[options.select]}; "
                    "percent; [mean, standard deviation] over the seeds; printed: NMI, recall@1, 2, 4, 8",
        "comparable": is_comparable(results),
        "printed": {"Start": start} if start else {}, "rows": results}


if __name__ == "__main__":
    main()
