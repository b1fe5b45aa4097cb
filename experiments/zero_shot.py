"""Compare methods zero-shot on one data set.

Every row and seed is a run with its evaluation.

    python -m experiments.zero_shot birds100 --seeds 3 --out assets/results/birds100-zero-shot.json \\
        --row "RPML=rpml" --row "RPML, start PCA=rpml beginning=pca"

A row is NAME=METHOD FIELD=VALUE …; @size=N sets the encoder's image size. Every run's evaluation contains the frozen
features, PCA of the same width and the embedding before training, so these need no rows. `--table` adds the rows of a
paper's ablation, and `--with` adds fields or @size to every row:

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

from udml_core.cli import parse_settings
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.evaluation import headline_measures
from udml_core.files import jsonable
from udml_core.jobs import plan
from udml_core.runs import Run, RunRequest, Spec, create_run, installed_versions
from udml_core.workers import train as worker

TABLES = {
    "plm-ablation": {  # PLM's table 3, under both readings of its neighborhoods
        f"{title}, through the {through}": f"plm {fields}through={through}" for through in ("point", "origin")
        for title, fields in (("Full", ""), ("No admission", "admission=false "),
                              ("Binary similarity", "similarity=binary "),
                              ("Both", "admission=false similarity=binary "))},
    "plm-fields": {  # PLM's figure 3: one field varies, the others keep their defaults
        "as the defaults": "plm", "through the origin": "plm through=origin",
        "PCA without centering": "plm beginning=pca", "no whole view": "plm whole_view=false",
        "proxies' step × 100": "plm proxy_rate=100.0",
        **{f"Nρ = {count}": f"plm proxies={count}" for count in (0, 1, 10, 500)},
        **{f"m = {flat}": f"plm flat={flat}" for flat in (1, 2, 5, 7)},
        **{f"Nα = {alpha:g}, Nβ = {beta:g}": f"plm n_alpha={alpha} n_beta={beta}"
           for alpha, beta in ((4.0, 0.0), (4.0, 2.0), (4.0, 4.0), (1.0, 0.5), (0.5, 0.5), (8.0, 0.5))},
        **{f"δ = {scale:g}": f"plm scale={scale}" for scale in (0.2, 0.5, 1.0)}},
    "pslr-components": {  # PSLR's table 7, its figure 6 and its neighbor graph
        "L_z": "pslr reconstruction=false structure=false divergence=false",
        "L_z + L_r": "pslr structure=false divergence=false", "L_z + L_r + L_s": "pslr",
        "on instance features": "pslr latent=false", "with neighbors": "pslr graph=neighbors",
        "fixed target": "pslr fixed_target=true", "printed sums": "pslr scale=sum",
        "printed sums, rate / 100": "pslr scale=sum learning_rate=1e-5",
        "log sigma from -3": "pslr first_log_sigma=-3.0", "scale of 0.2": "pslr scale=mixed first_log_sigma=-3.0",
        "ISIF": "isif", "ISIF one-sided": "isif one_sided=true"},
    "pslr-eta": {  # PSLR's figure 7
        f"{method.upper()}, η = {eta:g}": f"{method} eta={eta}" for method in ("pslr", "isif")
        for eta in (1.0, 10.0, 100.0)},
    "every-method": {  # heads of one width on frozen features; sRPML is missing because it only trains encoders
        "RPML, random start": "rpml", "RPML": "rpml beginning=pca", "PLM": "plm", "PSLR": "pslr",
        "PSLR, no divergence": "pslr divergence=false", "ISIF": "isif", "NCE": "nce",
        "NPSoftmax": "nce softmax=full", "Whitening": "whiten",
        **{f"{title}, few labels": f"{row} dimension=128" for title, row in (
            ("SSDML", "ssdml beginning=pca"), ("Triplet", "triplet"), ("Angular", "angular"))},
        **{f"{title}, few labels": title.lower() for title in ("LRML", "SERAPH", "ISDML", "APLLR", "APIT")},
        **{f"{title}, pairs": f"{row} dimension=128" for title, row in (
            ("NML", "nml"), ("ML", "ml"), ("KML", "kml"))},
        **{f"{title}, all labels": f"{row} dimension=128" for title, row in (
            ("NCA", "nca"), ("LMNN(s)", "lmnn variant=square"), ("LMNN(r)", "lmnn"))}},
    "instance": {"PSLR": "pslr", "ISIF": "isif", "NCE": "nce", "NPSoftmax": "nce softmax=full"},
}
MEASURES = ("recall@1", "recall@2", "recall@4", "recall@8", "map@r", "nmi")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--row", action="append", default=[], help="NAME=METHOD FIELD=VALUE … @size=N; repeatable")
    parser.add_argument("--table", choices=TABLES, help="add the rows of a paper's ablation")
    parser.add_argument("--with", dest="common", default="", help="fields or @size=N for every row")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    parser.add_argument("--out", type=Path, required=True, help="the record to write")
    options = parser.parse_args()
    rows = (TABLES[options.table] if options.table else {}) | dict(row.split("=", 1) for row in options.row)
    if not rows:
        parser.error("no rows to measure: give at least one --row, or a --table")
    dataset = catalog.load(options.dataset)
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, method_and_fields in rows.items():
            row = f"{method_and_fields} {options.common}".strip()
            runs = [finish_run(create_run(plan_row(dataset, row, seed), Path(folder)), name)
                    for seed in range(options.seeds)]
            results[name] = {"row": row, "runs": runs, "summary": summarize(runs)}
            options.out.write_text(json.dumps(jsonable(build_record(dataset.title, results)), indent=1) + "\n")
            print(name, results[name]["summary"]["final"], flush=True)


def plan_row(dataset: Dataset, row: str, seed: int, **others: Any) -> Spec:
    """Plan the run of a row.

    Args:
        dataset: The data set.
        row: METHOD FIELD=VALUE … @size=N.
        seed: Seed of the run.
        others: Further run options.
    """
    method, *settings = row.split()
    size = next((int(setting[6:]) for setting in settings if setting.startswith("@size=")), None)
    fields = parse_settings([setting for setting in settings if not setting.startswith("@")])
    request = {"dataset": dataset.name, "method": method, "fields": fields, "size": size, "seed": seed}
    return plan(RunRequest.make(request | others), dataset)


def finish_run(run: Run, name: str) -> dict[str, Any]:
    """Run or resume training to its end and return its result; exit if it fails.

    Args:
        run: The run.
        name: Name of its row, for the error message.

    Returns:
        Seed, seconds of work, headline measures of every candidate embedding, and curves.
    """
    status = worker.work(run, analyse=False)
    if status.state != "done":
        sys.exit(f"{name}, seed {run.spec().seed}: {status.message}")
    return {"seed": run.spec().seed, "seconds": status.finished - status.started,
            "evaluation": {name: headline_measures(row) for name, row in (run.evaluation() or {}).items()},
            "curves": run.metrics()[0]}


def summarize(runs: list[dict[str, Any]], measures: Iterable[str] = MEASURES) -> dict[str, dict[str, list[float]]]:
    """Return mean and standard deviation over the seeds, by candidate and measure."""
    return {candidate: {measure: mean_and_deviation([run["evaluation"][candidate][measure] for run in runs])
                        for measure in measures} for candidate in runs[0]["evaluation"]}


def build_record(title: str, results: dict[str, Any]) -> dict[str, Any]:
    return provenance("zero_shot") | {
        "dataset": title, "protocol": "zero-shot: train on the first half of the classes by sorted name, test on the "
                                      "second half; percent; [mean, standard deviation] over the seeds",
        "rows": results}


def provenance(module: str) -> dict[str, Any]:
    """Return command, device, versions and date of a module's record."""
    arguments = " ".join(f'"{argument}"' if " " in argument else argument for argument in sys.argv[1:])
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU, {os.cpu_count()} cores"
    return {"command": f"python -m experiments.{module} {arguments}", "device": device,
            "versions": installed_versions(), "date": time.strftime("%Y-%m-%d")}


def mean_and_deviation(values: list[float]) -> list[float]:
    return [round(statistics.mean(values), 2), round(statistics.stdev(values), 2) if len(values) > 1 else 0.0]


if __name__ == "__main__":
    main()
