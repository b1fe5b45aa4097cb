"""Learning curves on seen classes.

Instance discrimination trains from scratch under one training budget.

    python -m experiments.seen_categories cifar10 --epochs 200 --runs runs/cifar10 \\
        --out assets/results/cifar10-curves.json

Every row is a run in the split `seen`. Its curve contains weighted kNN accuracy (k = 200) on a sample after every
epoch; its evaluation contains the whole test half and a linear probe. `--table` takes the rows of a table of
`zero_shot`, such as the components (PSLR's table 7) or η (its figure 7). Runs are kept in the folder `--runs`, and
the same command resumes unfinished ones. `--per-class N` trains on the first N images of every class and tests on
N/5, for a machine without a GPU; it needs a data set in a folder below UDML_DATA with the halves `train` and `test`.

Training from scratch uses the paper's settings: η = 100 (PSLR), SGD at .03 with two reductions to a tenth, momentum
.9, weight decay 5e-4, batches of 128.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

from experiments.recording import is_comparable, provenance, record_parser, write_record
from experiments.zero_shot import TABLES, find_or_create_run, finish_run, is_equal, plan_row, read_rows, row_result
from udml_core.base.paths import data_folder
from udml_core.data import catalog
from udml_core.data.dataset import Dataset

CURVES = {"PSLR": "pslr eta=100.0", "ISIF": "isif", "NCE": "nce"}
SCRATCH = ("trains=all batch_norm=batch colors=true beginning=random learning_rate=0.03 schedule=steps batch=128 "
           "epochs={epochs}")
PRINTED = {"Start": 33.4, "PSLR": 85.2, "ISIF": 83.6, "NCE": 80.4}
"""PSLR's table 1: knn@200 on CIFAR-10 after 200 epochs of a ResNet-18."""
MEASURES = ("knn@200", "linear probe", "recall@1", "nmi")
HALVES = {"train": 1.0, "test": 0.2}


def main() -> None:
    parser = record_parser(__doc__)
    parser.add_argument("dataset")
    parser.add_argument("--row", action="append", default=[], help="NAME=METHOD FIELD=VALUE …; repeatable")
    parser.add_argument("--table", choices=TABLES, help="the rows of a table of `zero_shot`")
    parser.add_argument("--with", dest="common", default="", help="fields for every row that does not set them")
    parser.add_argument("--backbone", default="resnet18-small")
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds")
    parser.add_argument("--per-class", type=int, help="number of training images of every class; a fifth as many test")
    parser.add_argument("--resume", action="store_true", help="keep rows of an existing record that are equal")
    parser.add_argument("--runs", type=Path, required=True, help="folder that keeps the runs")
    options = parser.parse_args()
    rows = dict(row.split("=", 1) for row in options.row) or (TABLES[options.table] if options.table else CURVES)
    with tempfile.TemporaryDirectory() as folder:
        if options.per_class:
            os.environ["UDML_DATA"] = str(link_first_images(options.dataset, options.per_class, Path(folder)))
        dataset = catalog.load(options.dataset)
        results = read_rows(options.out) if options.resume else {}
        for name, method_and_fields in rows.items():
            row = complete_row(method_and_fields, options.epochs, options.common)
            if not is_equal(results.get(name), row, options.seeds):
                specs = [plan_row(dataset, row, seed, backbone=options.backbone, split="seen")
                         for seed in range(options.seeds)]
                runs = [finish_run(find_or_create_run(spec, options.runs), name) for spec in specs]
                results[name] = row_result(row, runs, specs[0], dataset, MEASURES)
            write_record(options.out, build_record(options, dataset, results))
            print(name, results[name]["summary"]["final"], flush=True)


def complete_row(method_and_fields: str, epochs: int, common: str) -> str:
    """Return a row with the settings of training from scratch, which `common` and then the row's own fields replace."""
    method, *fields = method_and_fields.split()
    return " ".join([method, SCRATCH.format(epochs=epochs), *common.split(), *fields])


def link_first_images(dataset: str, per_class: int, folder: Path) -> Path:
    """Fill a data folder with links to the first images of every class; return it.

    Args:
        dataset: Name of the data set's folder below UDML_DATA.
        per_class: Number of training images of every class; a fifth as many are test images.
        folder: The folder to fill.
    """
    base = data_folder()
    assert base is not None, "UDML_DATA must be set to the folder that contains the data set."
    for half, share in HALVES.items():
        for source in sorted((base / dataset / half).iterdir()):
            target = folder / dataset / half / source.name
            target.mkdir(parents=True, exist_ok=True)
            for file in sorted(source.iterdir())[: round(share * per_class)]:
                if not (target / file.name).is_symlink():
                    (target / file.name).symlink_to(file)
    return folder


def build_record(options: argparse.Namespace, dataset: Dataset, results: dict[str, Any]) -> dict[str, Any]:
    return provenance("seen_categories") | {
        "dataset": dataset.title, "images": len(dataset), "backbone": options.backbone,
        "comparable": is_comparable(results),
        "printed": {name: {"knn@200": PRINTED[name]} for name in ("Start", *results) if name in PRINTED}
        if options.dataset == "cifar10" and not options.table else {},
        "protocol": "seen: the authors' division into halves; percent; [mean, standard deviation] over the seeds",
        "rows": results}


if __name__ == "__main__":
    main()
