"""Learning curves on seen categories: methods that tell images apart, trained from scratch under one budget.

    python -m experiments.seen_categories cifar10 --epochs 200 --runs runs/cifar10 \\
        --out assets/results/cifar10-curves.json

Each row is a real run in the split `seen`: its curve holds weighted kNN (k = 200) on a sample for every epoch, its
evaluation that of the whole test half, with the linear probe. `--table` takes a table of `zero_shot` instead: the
components (PSLR's table 7) or η (its figure 7). Runs stay in the folder `--runs`, and the same command goes on with
those that are not done. `--per-class N` takes the first N training images of every class, and a fifth of that to test,
for a machine without a GPU; of data sets that are folders below UDML_DATA with the halves `train` and `test`.

The paper's setting from scratch: η = 100 (PSLR), SGD .03 with two tenths, momentum .9, weight decay 5e-4, batch 128.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from experiments.zero_shot import TABLES, finished, made_by, planned, summary
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.files import jsonable
from udml_core.paths import data_folder
from udml_core.runs import Run, create_run

CURVES = {"PSLR": "pslr eta=100.0", "ISIF": "isif", "NCE": "nce"}
SCRATCH = ("trains=encoder batch_norm=batch colors=true beginning=random learning_rate=0.03 schedule=steps batch=128 "
           "epochs={epochs}")
PAPER = ("cifar10", "resnet18-small", 200)
PRINTED = {"Start": 33.4, "PSLR": 85.2, "ISIF": 83.6, "NCE": 80.4}
"""PSLR's table 1: knn@200 on CIFAR-10 after 200 epochs of a ResNet-18."""
MEASURES = ("knn@200", "linear probe", "recall@1", "nmi")
HALVES = {"train": 1.0, "test": 0.2}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset")
    parser.add_argument("--row", action="append", default=[], help="NAME=METHOD FIELD=VALUE …")
    parser.add_argument("--table", choices=TABLES)
    parser.add_argument("--with", dest="common", default="")
    parser.add_argument("--backbone", default="resnet18-small")
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--per-class", type=int)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    rows = dict(row.split("=", 1) for row in given.row) or (TABLES[given.table] if given.table else CURVES)
    with tempfile.TemporaryDirectory() as folder:
        if given.per_class:
            os.environ["UDML_DATA"] = str(shrunk(given.dataset, given.per_class, Path(folder)))
        dataset = catalog.load(given.dataset)
        results: dict[str, Any] = {}
        for name, words in rows.items():
            row = f"{words} {SCRATCH.format(epochs=given.epochs)} {given.common}".strip()
            runs = [begun(dataset, row, seed, given.backbone, given.runs) for seed in range(given.seeds)]
            found = [finished(run, name) for run in runs]
            results[name] = {"row": row, "runs": found, "summary": summary(found, MEASURES)}
            given.out.write_text(json.dumps(jsonable(record(given, dataset, results)), indent=1) + "\n")
            print(name, results[name]["summary"]["final"], flush=True)


def begun(dataset: Dataset, row: str, seed: int, backbone: str, folder: Path) -> Run:
    """The run of a row and seed, begun before or now."""
    spec = planned(dataset, row, seed, backbone=backbone, split="seen")
    asked = spec.model_dump(exclude={"created", "versions", "device"})
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.glob("*/spec.json")):
        run = Run(path.parent)
        if run.spec().model_dump(exclude={"created", "versions", "device"}) == asked:
            return run
    return create_run(spec, folder)


def shrunk(dataset: str, per_class: int, folder: Path) -> Path:
    """A data folder with links to the first images of every class of a data set's halves."""
    base = data_folder()
    assert base is not None, "set UDML_DATA"
    for half, share in HALVES.items():
        for source in sorted((base / dataset / half).iterdir()):
            target = folder / dataset / half / source.name
            target.mkdir(parents=True)
            for file in sorted(source.iterdir())[: round(share * per_class)]:
                (target / file.name).symlink_to(file)
    return folder


def record(given: argparse.Namespace, dataset: Dataset, results: dict[str, Any]) -> dict[str, Any]:
    return made_by("seen_categories") | {
        "dataset": dataset.title, "images": len(dataset), "backbone": given.backbone,
        "comparable": (given.dataset, given.backbone, given.epochs) == PAPER and given.per_class is None,
        "printed": {name: {"knn@200": PRINTED[name]} for name in ("Start", *results) if name in PRINTED}
        if given.dataset == PAPER[0] and not given.table else {},
        "protocol": "seen: the authors' division; percent; [mean, standard deviation] over the seeds", "rows": results}


if __name__ == "__main__":
    main()
