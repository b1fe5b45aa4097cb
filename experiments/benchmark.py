"""Compare all methods with one encoder and one budget for each data set, within a budget of minutes.

    python -m experiments.benchmark --budget 20 --dataset digits
    python -m experiments.benchmark --budget 600

The rows are declared in `experiments/benchmark_rows.py`: every method of the project, frozen features, PCA of the same
dimension, a learning rate of 0, and refinements without training, with three seeds. Rows run in the order of their
expected time. The record is written after every finished row, and the same command resumes: finished runs of an equal
spec in the folder `--runs` are reused, and rows of the record stay if their text and the version of the protocol are
equal. A row that does not fit into the remaining time is not started, unless `--force` is given. At the end the command
lists what was not measured. By default the runs are in the app's folder, so that the page Benchmark can open them.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import io
import json
import time
import tokenize
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from experiments.benchmark_rows import (
    BATCH,
    LAST_RATE,
    PAPER_TABLES,
    PLM_RATE,
    RECORD,
    SEEDS,
    TRACKS,
    VIEWS,
    Compared,
    benchmark_rows,
)
from experiments.campaign import Campaign, first_images
from experiments.campaign_rows import PlannedRow
from experiments.recording import mean_and_deviation, provenance, write_record
from experiments.zero_shot import PROTOCOL, find_or_create_run, finish_run, plan_row, row_result
from udml_core.base.arrays import Booleans
from udml_core.base.files import replace_text
from udml_core.base.peak_memory import forget_peak, peak_memory
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.methods import find_method
from udml_core.numerics.evaluation import evaluate, headline_measures, nearest_is_hit
from udml_core.numerics.refinement import Recipe
from udml_core.results.benchmark import pack_hits
from udml_core.runs import Run, Spec, runs_folder
from udml_core.runs.analyses import AnalysisSpec, analysis_at, plan_analysis
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.work.workers import analyse as analysis_worker

COSTS = "benchmark-costs.json"
"""File in the folder of the runs: what each finished run has cost, by its id."""
NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
Result = TypeVar("Result")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, required=True, metavar="MINUTES", help="time for all rows")
    parser.add_argument("--dataset", action="append", choices=[track.dataset for track in TRACKS],
                        help="measure only this data set; repeatable")
    parser.add_argument("--row", action="append", help="measure only this row; repeatable")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    parser.add_argument("--runs", type=Path, default=runs_folder(), help="folder that keeps the runs")
    parser.add_argument("--out", type=Path, default=Path(f"assets/results/{RECORD}.json"), help="the record")
    parser.add_argument("--force", action="store_true", help="start rows that do not fit into the remaining time")
    parser.add_argument("--again", action="store_true", help="measure rows that the record has already")
    options = parser.parse_args()
    rows = [replace(row, record=options.out.stem) for track in TRACKS for row in benchmark_rows(track)
            if (not options.dataset or row.dataset in options.dataset) and (not options.row or row.name in options.row)]
    if not rows:
        parser.error("no declared row has this name")
    rows.sort(key=lambda row: row.seconds)
    benchmark = BenchmarkCampaign(options.budget, options.device, options.runs, options.out.parent, options.force,
                          options.again)
    for row, reason in benchmark.run(list[PlannedRow](rows)):
        print(f"not measured: {row.dataset}, {row.name}: {reason}", flush=True)


class BenchmarkCampaign(Campaign):
    """A campaign whose rows of several data sets are in one record, with costs and refinements."""

    def _stored(self, row: PlannedRow, path: Path) -> dict[str, Any]:
        record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        rows = record.get("datasets", {}).get(row.dataset, {}).get("rows", {})
        return {name: result for name, result in rows.items() if result["protocol"] == PROTOCOL
                and (result["recipe"] or all("hits" in run for run in result["runs"]))}

    def _measure(self, row: PlannedRow, path: Path, stored: dict[str, Any]) -> None:
        assert isinstance(row, Compared)
        with first_images(row, self.runs):
            dataset = catalog.load(row.dataset)
            specs = [plan_row(dataset, row.row, seed, device=self.device) for seed in range(row.seeds)]
            results = [measured_run(find_or_create_run(spec, self.runs), row) for spec in specs]
        stored[row.name] = benchmark_result(row, results, row_result(row.row, results, specs[0], dataset, ()))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_record(path, self._benchmark(row, dataset, specs[0], stored, path))
        summary = stored[row.name]["summary"]
        print("  " + "  ".join(f"{name} {summary[name][0]:.1f} ±{summary[name][1]:.1f}"
                               for name in ("recall@1", "map@r", "nmi", "seconds") if name in summary), flush=True)

    def _benchmark(self, row: Compared, dataset: Dataset, spec: Spec, rows: dict[str, Any],
                   path: Path) -> dict[str, Any]:
        """Return the record with the rows of one data set replaced."""
        before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        track = next(track for track in TRACKS if track.dataset == row.dataset)
        images = f"{len(dataset):,} images, {track.images:,} of them in the training half"
        part = {"head": "linear heads", "last": "the encoder's last blocks, a head where a method trains only that"}
        own = {"title": dataset.title, "near": track.near, "encoder": f"{spec.backbone} at {spec.encoder.size} px",
               "budget": f"{images}; {track.epochs} passes over these in batches of {BATCH}; {part[track.trains]}; "
                         f"dimension {track.dimension} where a method has this field; {track.labels} labels for "
                         "methods with few labels", "rows": rows}
        return provenance("benchmark") | {
            "command": f"python -m experiments.benchmark --budget {self.budget:g} --device {self.device} "
                       f"--out assets/results/{row.record}.json",
            "protocol": f"split {spec.split}: train on half of the classes, test on the others; {SEEDS} seeds; for "
                        f"each data set one encoder, one number of passes over the training images and {VIEWS} cached "
                        "views of an image for every method that trains on views; each row states the fields that "
                        "it sets, all others are the method's defaults; last blocks keep the statistics of batch "
                        f"normalization frozen; for last blocks the learning rate is {LAST_RATE:g}, or {PLM_RATE:g} "
                        "for PLM and STML, but methods with few labels and sRPML keep their default; percent; [mean, "
                        "standard deviation] over the seeds; hits: one bit for each test image, whether its nearest "
                        "image is of its class; seconds of the clock and of the processor, and peak memory in MB, are "
                        "of the process, which measures several rows; lines of code of the method's file",
            "comparable": False, "papers": [vars(table) for table in PAPER_TABLES],
            "datasets": before.get("datasets", {}) | {row.dataset: own}}


def measured_run(run: Run, row: Compared) -> dict[str, Any]:
    """Finish a run and its refinement; return seed, run id, measures, costs, and the hits of a run without recipe."""
    is_done = run.stored_status().state == "done"
    result, costs = with_costs(run, run.id, is_done, lambda: finish_run(run, row.name))
    evaluation = result["evaluation"]
    costs |= {"seconds": result["seconds"]}  # without the time of waiting for the device
    hits: dict[str, str] = {}
    if row.recipe:
        spec = plan_analysis(Refinement, recipe=row.recipe, scope="test", frames=("final",))
        is_done = analysis_at(run, spec).is_done()
        final, costs = with_costs(run, f"{run.id} {row.recipe}", is_done, lambda: refined_measures(run, spec))
        evaluation = {"initial": evaluation["final"], "final": final}
    else:
        hits = {"hits": pack_hits(test_hits(run))}
    return hits | {
        "seed": result["seed"], "run": run.id, "costs": costs,
        "evaluation": {name: evaluation[name] for name in ("initial", "final")}}


def test_hits(run: Run) -> Booleans:
    """Return for each test image whether the nearest image in the trained embedding is of the same class."""
    dataset = run.dataset()
    test = run.spec().halves(dataset, "last").test
    return nearest_is_hit(run.embeddings("final")[test], np.asarray(dataset.labels)[test])


def with_costs(run: Run, key: str, is_done: bool, compute: Callable[[], Result]) -> tuple[Result, dict[str, float]]:
    """Compute a result and return it with its costs, which the file `COSTS` keeps beside the run.

    A result that is done already has the costs of the command that computed it, none if that was another command.
    """
    path = run.folder.parent / COSTS
    costs: dict[str, dict[str, float]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    with Meter() as meter:
        result = compute()
    if not is_done:
        costs[key] = {"seconds": meter.seconds, "processor seconds": meter.processor, "MB": meter.megabytes}
        replace_text(path, json.dumps(costs, indent=1) + "\n")
    return result, costs.get(key, {})


def refined_measures(run: Run, spec: AnalysisSpec) -> dict[str, float]:
    """Refine the run's embedding of the test half and measure it; a ranking has Recall@1 and MAP@R only."""
    refined = analysis_worker.keep(run, spec, lambda _share, _phase: None).result_of(Refinement)
    measures = {name: after for name, (_, after) in refined.measures.items() if name in ("recall@1", "map@r")}
    if Recipe.parse(spec.recipe).find("ranking") is not None:
        return measures
    labels = np.asarray(run.dataset().labels)[refined.indices]
    return headline_measures(evaluate(refined.embedding, labels, run.embeddings("final")[refined.indices]))


def benchmark_result(row: Compared, runs: list[dict[str, Any]], result: dict[str, Any]) -> dict[str, Any]:
    """Return a row as the record stores it.

    Args:
        row: The row.
        runs: Results of `measured_run`, one a seed.
        result: The row as the campaign stores it.
    """
    method = find_method(row.method)
    sees_gallery = bool(row.recipe) and Recipe.parse(row.recipe).sees_gallery(has_training=True)
    values = [run["evaluation"]["final"] | run["costs"] for run in runs]
    summary = {name: mean_and_deviation([value[name] for value in values])
               for name in values[0] if all(name in value for value in values)}
    if not row.recipe:
        file = inspect.getsourcefile(method)
        assert file is not None
        summary["lines"] = [lines_of_code(Path(file).read_text(encoding="utf-8")), 0.0]
    return result | {
        "method": row.method, "is method": row.is_method, "recipe": row.recipe,
        "supervision": method.card.supervision, "sees test images": sees_gallery, "printed": printed_figures(row),
        "runs": [rounded(run) for run in runs], "summary": summary}


def printed_figures(row: Compared) -> dict[str, dict[str, float]]:
    """Return the papers' figures of a row's method on the data set that is most like the row's, by table."""
    if not row.is_method:
        return {}
    return {table.title: {table.printed: table.figures[row.method]} for table in PAPER_TABLES
            if table.data == row.near and row.method in table.figures}


def rounded(run: dict[str, Any]) -> dict[str, Any]:
    """Return a seed's result without invisible digits."""
    evaluation = {candidate: {name: round(value, 2) for name, value in measures.items()}
                  for candidate, measures in run["evaluation"].items()}
    return run | {"evaluation": evaluation,
                  "costs": {name: round(value, 1) for name, value in run["costs"].items()}}


def lines_of_code(source: str) -> int:
    """Count the lines of a module without blank lines, comments and docstrings."""
    lines = {line for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type not in NO_CODE
             for line in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


@dataclass
class Meter:
    """Measures time and peak memory of what runs inside it.

    Attributes:
        seconds: Seconds of the clock.
        processor: Processor seconds of all threads.
        megabytes: Peak memory of the process meanwhile; where the peak cannot be reset, since its start.
    """

    seconds: float = 0.0
    processor: float = 0.0
    megabytes: float = 0.0

    def __enter__(self) -> Meter:
        forget_peak()
        self._began = time.monotonic(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds, self.processor = time.monotonic() - self._began[0], time.process_time() - self._began[1]
        self.megabytes = peak_memory() / 2**20


if __name__ == "__main__":
    main()
