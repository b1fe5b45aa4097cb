"""Compare methods zero-shot on one data set.

Every row and seed is a run with its evaluation.

    python -m experiments.zero_shot birds100 --seeds 3 --out assets/results/birds100-zero-shot.json \\
        --row "RPML=rpml" --row "RPML, start PCA=rpml beginning=pca"

A row is NAME=METHOD FIELD=VALUE … @OPTION=VALUE; @size=112 sets the encoder's image size, @preset=paper takes all
settings that the method's paper prints. With `--resume`, rows of an existing record are kept if their text and the
version of the protocol are equal. Every run's evaluation contains the frozen
features, PCA of the same width and the embedding before training, so these need no rows. `--table` adds the rows of a
paper's ablation, and `--with` adds fields or options to every row:

    python -m experiments.zero_shot birds100 --out assets/results/birds100-plm-ablation.json \\
        --table plm-ablation --with "epochs=10"
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from experiments.recording import device_name, mean_and_deviation, provenance, record_parser, write_record
from udml_core.base.errors import UserError
from udml_core.cli.commands import parse_settings
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.numerics.evaluation import headline_measures
from udml_core.runs import Run, RunRequest, Spec, create_run
from udml_core.work.jobs import plan, why_not_comparable
from udml_core.work.workers import train as worker

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
    "instance": {"PSLR": "pslr", "ISIF": "isif", "NCE": "nce", "NPSoftmax": "nce softmax=full"},
}
PROTOCOL = 2
"""Version of measuring and evaluating a row. Raise it when earlier rows are no longer comparable with new rows."""
NOT_COMPARED = {"created", "versions"}
"""What the specs of equal runs may differ in; another version of this project may compute another result."""
MEASURES = ("recall@1", "recall@2", "recall@4", "recall@8", "map@r", "nmi")


def main() -> None:
    parser = record_parser(__doc__)
    parser.add_argument("dataset")
    parser.add_argument("--row", action="append", default=[],
                        help="NAME=METHOD FIELD=VALUE … @OPTION=VALUE; repeatable")
    parser.add_argument("--table", choices=TABLES, help="add the rows of a paper's ablation")
    parser.add_argument("--with", dest="common", default="", help="fields or @OPTION=VALUE for every row")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    parser.add_argument("--resume", action="store_true", help="keep rows of an existing record that are equal")
    options = parser.parse_args()
    rows = (TABLES[options.table] if options.table else {}) | dict(row.split("=", 1) for row in options.row)
    if not rows:
        parser.error("no rows to measure: give at least one --row, or a --table")
    dataset = catalog.load(options.dataset)
    results = read_rows(options.out) if options.resume else {}
    with tempfile.TemporaryDirectory() as folder:
        for name, method_and_fields in rows.items():
            row = f"{method_and_fields} {options.common}".strip()
            if not is_equal(results.get(name), row, options.seeds):
                specs = [plan_row(dataset, row, seed) for seed in range(options.seeds)]
                runs = [finish_run(create_run(spec, Path(folder)), name) for spec in specs]
                results[name] = row_result(row, runs, specs[0], dataset)
            write_record(options.out, build_record(dataset.title, results))
            print(name, results[name]["summary"]["final"], flush=True)


def plan_row(dataset: Dataset, row: str, seed: int, **others: Any) -> Spec:
    """Plan the run of a row.

    Args:
        dataset: The data set.
        row: METHOD FIELD=VALUE … @OPTION=VALUE.
        seed: Seed of the run.
        others: Further run options.
    """
    return plan(RunRequest.make({"dataset": dataset.name, "seed": seed} | parse_row(row) | others), dataset)


def parse_row(row: str) -> dict[str, Any]:
    """Return the method, its fields and the run options of METHOD FIELD=VALUE … @OPTION=VALUE."""
    method, *settings = row.split()
    fields = parse_settings([setting for setting in settings if not setting.startswith("@")])
    options = parse_settings([setting[1:] for setting in settings if setting.startswith("@")])
    return {"method": method, "fields": fields} | options


def find_or_create_run(spec: Spec, folder: Path) -> Run:
    """Return the folder's run of an equal spec, or create it."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.glob("*/spec.json")):
        run = Run(path.parent)
        if run.spec().model_dump(exclude=NOT_COMPARED) == spec.model_dump(exclude=NOT_COMPARED):
            return run
    return create_run(spec, folder)


def finish_run(run: Run, name: str) -> dict[str, Any]:
    """Run or resume training to its end and return its result.

    Args:
        run: The run.
        name: Name of its row, for the error message.

    Returns:
        Seed, seconds of work, whether embeddings and PCA have unit length, headline measures of every candidate
        embedding, and curves.

    Raises:
        UserError: The run failed or was stopped.
    """
    if run.stored_status().state in ("failed", "stopped"):
        run.clear_failure()
    status = worker.work(run, analyse=False)
    if status.state != "done":
        raise UserError(f"{name}, seed {run.spec().seed}: {status.message}")
    assert status.started is not None
    assert status.finished is not None
    return {"seed": run.spec().seed, "seconds": status.finished - status.started,
            "unit length": run.is_normalized("final"),
            "evaluation": {name: headline_measures(row) for name, row in (run.evaluation() or {}).items()},
            "curves": run.metrics()[0]}


def summarize(runs: list[dict[str, Any]], measures: Iterable[str] = MEASURES) -> dict[str, dict[str, list[float]]]:
    """Return mean and standard deviation over the seeds, by candidate and measure."""
    return {candidate: {measure: mean_and_deviation([run["evaluation"][candidate][measure] for run in runs])
                        for measure in measures if measure in runs[0]["evaluation"][candidate]}
            for candidate in runs[0]["evaluation"]}


def row_result(row: str, runs: list[dict[str, Any]], spec: Spec, dataset: Dataset,
               measures: Iterable[str] = MEASURES) -> dict[str, Any]:
    """Return a row as a record stores it.

    Args:
        row: The row's text.
        runs: Results of `finish_run`, one a seed.
        spec: The spec of one of the runs.
        dataset: The data set.
        measures: Measures to summarize.
    """
    reasons = why_not_comparable(spec, dataset)
    return {"row": row, "protocol": PROTOCOL, "comparable": not reasons,
            "departures": reasons if spec.preset == "paper" else [], "device": device_name(spec.device),
            "date": time.strftime("%Y-%m-%d"), "version": spec.version, "versions": spec.versions, "runs": runs,
            "summary": summarize(runs, measures)}


def is_equal(result: dict[str, Any] | None, row: str, seeds: int) -> bool:
    """Return whether a stored row is this row under this protocol, with at least as many seeds."""
    return (result is not None and result["row"] == row and result.get("protocol") == PROTOCOL
            and len(result["runs"]) >= seeds)


def read_rows(path: Path) -> dict[str, Any]:
    """Return the rows of an existing record under this protocol; none if there is no record."""
    if not path.exists():
        return {}
    rows: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")).get("rows", {})
    return {name: row for name, row in rows.items() if row.get("protocol") == PROTOCOL}


def build_record(title: str, results: dict[str, Any]) -> dict[str, Any]:
    return provenance("zero_shot") | {
        "dataset": title, "protocol": "zero-shot: train on the first half of the classes by sorted name, test on the "
                                      "second half; percent; [mean, standard deviation] over the seeds",
        "rows": results}


if __name__ == "__main__":
    main()
