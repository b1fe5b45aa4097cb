"""Every row of a zero-shot table: methods on one data set, several seeds, each a real run with its evaluation.

    python -m experiments.zero_shot birds100 --seeds 3 --out assets/results/birds100-zero-shot.json \\
        --row "RPML=rpml" --row "RPML, start PCA=rpml beginning=pca"

A row is NAME=METHOD FIELD=VALUE … and may set the encoder's image size with @size=N. Frozen, PCA of the same width and
the start stand in every run's evaluation and are written once a seed. `--table` adds the rows of a paper's ablation,
each with what is given behind `--with` (fields, @size):

    python -m experiments.zero_shot birds100 --out assets/results/birds100-plm-ablation.json \\
        --table plm-ablation --with "epochs=10"
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from udml_core.cli import _parsed
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.evaluation import headline_measures
from udml_core.files import jsonable
from udml_core.jobs import plan
from udml_core.runs import Run, RunRequest, Spec, create_run, installed_versions
from udml_core.workers import train as worker

TABLES = {
    "plm-ablation": {  # PLM's table 3
        "Full": "plm", "No admission": "plm admission=false", "Binary similarity": "plm similarity=binary",
        "Both": "plm admission=false similarity=binary"},
    "plm-fields": {  # PLM's figure 3: each field alone, the others as they are by default
        "as the defaults": "plm", "proxies' step × 100": "plm proxy_rate=100.0",
        **{f"Nρ = {count}": f"plm proxies={count}" for count in (0, 1, 10, 500)},
        **{f"m = {flat}": f"plm flat={flat}" for flat in (1, 2, 5, 7)},
        **{f"Nα = {alpha:g}, Nβ = {beta:g}": f"plm n_alpha={alpha} n_beta={beta}"
           for alpha, beta in ((4.0, 0.0), (4.0, 2.0), (4.0, 4.0), (1.0, 0.5), (0.5, 0.5), (8.0, 0.5))},
        **{f"δ = {scale:g}": f"plm scale={scale}" for scale in (0.2, 0.5, 1.0)}},
    "pslr-components": {  # PSLR's table 7, its figure 6 and its neighbor graph
        "L_z": "pslr reconstruction=false structure=false divergence=false",
        "L_z + L_r": "pslr structure=false divergence=false", "L_z + L_r + L_s": "pslr",
        "on instance features": "pslr latent=false", "with neighbors": "pslr graph=neighbors"},
    "pslr-eta": {  # PSLR's figure 7
        f"{method.upper()}, η = {eta:g}": f"{method} eta={eta}" for method in ("pslr", "isif")
        for eta in (1.0, 10.0, 100.0)},
    "every-method": {  # heads of one width on frozen features; sRPML, which only trains encoders, is not among them
        "RPML, random start": "rpml", "RPML": "rpml beginning=pca", "PLM": "plm", "PSLR": "pslr",
        "PSLR, no divergence": "pslr divergence=false", "ISIF": "isif", "NCE": "nce",
        "NPSoftmax": "nce softmax=full", "Whitening": "whiten",
        **{f"{title}, few labels": f"{words} dimension=128" for title, words in (
            ("SSDML", "ssdml beginning=pca"), ("Triplet", "triplet"), ("Angular", "angular"))},
        **{f"{title}, few labels": title.lower() for title in ("LRML", "SERAPH", "ISDML", "APLLR", "APIT")},
        **{f"{title}, pairs": f"{words} dimension=128" for title, words in (
            ("NML", "nml"), ("ML", "ml"), ("KML", "kml"))},
        **{f"{title}, all labels": f"{words} dimension=128" for title, words in (
            ("NCA", "nca"), ("LMNN(s)", "lmnn variant=square"), ("LMNN(r)", "lmnn"))}},
    "instance": {"PSLR": "pslr", "ISIF": "isif", "NCE": "nce", "NPSoftmax": "nce softmax=full"},
}
MEASURES = ("recall@1", "recall@2", "recall@4", "recall@8", "map@r", "nmi")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset")
    parser.add_argument("--row", action="append", default=[])
    parser.add_argument("--table", choices=TABLES)
    parser.add_argument("--with", dest="common", default="")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    rows = (TABLES[given.table] if given.table else {}) | dict(row.split("=", 1) for row in given.row)
    if not rows:
        parser.error("at least one --row, or a --table, is needed")
    dataset = catalog.load(given.dataset)
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, words in rows.items():
            row = f"{words} {given.common}".strip()
            found = [finished(create_run(planned(dataset, row, seed), Path(folder)), name) for seed in range(given.seeds)]
            results[name] = {"row": row, "runs": found, "summary": summary(found)}
            given.out.write_text(json.dumps(jsonable(record(dataset.title, results)), indent=1) + "\n")
            print(name, results[name]["summary"]["final"], flush=True)


def planned(dataset: Dataset, row: str, seed: int, **rest: Any) -> Spec:
    """The spec of METHOD FIELD=VALUE … @size=N."""
    method, *settings = row.split()
    size = next((int(one[6:]) for one in settings if one.startswith("@size=")), None)
    fields = _parsed([one for one in settings if not one.startswith("@")])
    return plan(RunRequest.make({"dataset": dataset.name, "method": method, "fields": fields, "size": size, "seed": seed}
                                | rest), dataset)


def finished(run: Run, name: str) -> dict[str, Any]:
    """What a run gives, once it has been worked on from where it stands to its end; without the time that it waited."""
    status = worker.work(run, analyse=False)
    if status.state != "done":
        sys.exit(f"{name}, seed {run.spec().seed}: {status.message}")
    return {"seed": run.spec().seed, "seconds": status.finished - status.started,
            "evaluation": {name: headline_measures(row) for name, row in (run.evaluation() or {}).items()},
            "curves": run.metrics()[0]}


def summary(found: list[dict[str, Any]], measures: Iterable[str] = MEASURES) -> dict[str, dict[str, list[float]]]:
    """Mean and standard deviation over the seeds, of every candidate and measure."""
    return {candidate: {measure: spread([one["evaluation"][candidate][measure] for one in found])
                        for measure in measures} for candidate in found[0]["evaluation"]}


def record(title: str, results: dict[str, Any]) -> dict[str, Any]:
    return made_by("zero_shot") | {
        "dataset": title, "protocol": "zero-shot: first half of the classes by sorted name trains, second half tests; "
                                      "percent; [mean, standard deviation] over the seeds", "rows": results}


def made_by(module: str) -> dict[str, Any]:
    """With what command, when and on what a record was made."""
    words = " ".join(f'"{one}"' if " " in one else one for one in sys.argv[1:])
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU, {os.cpu_count()} cores"
    return {"command": f"python -m tests.benchmarks.{module} {words}", "device": device,
            "versions": installed_versions(), "date": time.strftime("%Y-%m-%d")}


def spread(values: list[float]) -> list[float]:
    return [round(statistics.mean(values), 2), round(statistics.stdev(values), 2) if len(values) > 1 else 0.0]


if __name__ == "__main__":
    main()
