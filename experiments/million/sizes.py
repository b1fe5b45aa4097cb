"""The table of sizes: the same steps for images and vectors from 6,000 to a million, in one or several versions.

Each step is a process of its own with a limit of processor seconds. A step that takes longer is stopped, and its row
says how far it came. If a run is stopped after its embedding was stored, the later steps use that embedding.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from experiments.million.size_step import STEPS

STEP = Path(__file__).with_name("size_step.py")
LIMITS = (200, 800)
WIDTH, CLASSES, NOISE = 64, 1000, 1.0
BLOCK = 50_000
THREADS = "2"
VERSIONS = ("before", "after")
MEASURES = ("seconds", "processor seconds", "memory, MB", "load")
SHOWN = {"read": "open the data set", "run": "run of frozen features", "features": "· its features",
         "until searchable": "· until it can be searched", "evaluation": "· its evaluation", "pca": "PCA map",
         "umap": "UMAP", "clusters": "graph and clusters at ε = 0.65", "refine": "refine the test half",
         "start, imports": "start with stored features: imports", "start, reading": "· reading",
         "start, epoch and embedding": "· epoch and embedding"}
LOADING = "loading the network"
FEATURES = ("features", LOADING)
"""Phases of computing features; 25b57a3 does not name the first one."""
LASSO = "lasso"
"""A step in the app of this version, of the largest size."""
NO_EMBEDDING = "not possible: the run was stopped before its embedding was stored"
FORCE = """
import importlib, sys
def library(*names):
    for name in names:
        try:
            return importlib.import_module("udml_core." + name)
        except ModuleNotFoundError:
            pass
runs = library("runs")
(run,) = runs.list_runs(runs.runs_folder())
run.write_status(run.stored_status().model_copy(update={"state": "done", "phase": "", "share": 1.0}))
"""
"""Calls a run finished whose embedding is stored."""


@dataclass(frozen=True)
class Size:
    """A data set of the table.

    Attributes:
        title: Its title in the table.
        images: Number of images or vectors.
        dataset: Its name; none for vectors that are made.
        encoder: Backbone and image size.
        steps: The steps.
    """

    title: str
    images: int
    dataset: str = ""
    encoder: str = "efficientnet-lite0:112"
    steps: tuple[str, ...] = ("read", "run", "pca", "clusters", "refine", "start")


SIZES = {size.images: size for size in (
    Size("5,902 birds, 112 px", 5_902, "birds100"),
    Size("70,000 Fashion-MNIST, 96 px", 70_000, "fashion-mnist", "efficientnet-lite0:96"),
    Size("200,000 × 64 vectors", 200_000, steps=tuple(STEPS)),
    Size("1,000,000 × 64 vectors", 1_000_000, steps=(*STEPS, LASSO)))}


def write_vectors(folder: Path, rows: int) -> Path:
    """Write invented vectors (n, 64) of 1,000 classes and their labels, unless they are there; return their path."""
    path = folder / f"{rows}.npy"
    if not path.with_suffix(".parquet").exists():
        folder.mkdir(parents=True, exist_ok=True)
        random = np.random.default_rng(0)
        centers = random.standard_normal((CLASSES, WIDTH), dtype=np.float32)
        labels = random.integers(0, CLASSES, rows)
        with path.open("wb") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (rows, WIDTH)})
            for start in range(0, rows, BLOCK):
                block = centers[labels[start : start + BLOCK]]
                block = block + NOISE * random.standard_normal(block.shape, dtype=np.float32)
                file.write((block / np.linalg.norm(block, axis=1, keepdims=True)).astype("<f4").tobytes())
        names = np.array([f"class {number:03d}" for number in range(CLASSES)])
        parquet.write_table(pa.table({"label": names[labels]}), path.with_suffix(".parquet"))
    return path


def sizes_record(root: Path, before: Path, sizes: Sequence[int], limits: Sequence[int], kept: bool) -> dict[str, Any]:
    """Execute the steps of some sizes with an earlier version and with this one, and return the record's tables.

    Args:
        root: Folder of vectors, runs and traces; finished steps are kept there.
        before: The folder that holds the earlier `udml_core`.
        sizes: Numbers of images, of `SIZES`; all if empty.
        limits: Processor seconds after which a step of the earlier version, and of this one, is stopped.
        kept: Whether only steps are shown that were finished or stopped before, and nothing is measured.
    """
    trees = dict(zip(VERSIONS, (before, Path(__file__).parents[2]), strict=True))
    chosen = {images: replace(SIZES[images], steps=() if kept else SIZES[images].steps) for images in sizes or SIZES}
    rows = {f"{size.title}: {version}": figures(measure_size(tree, root / version, size, limit))
            for size in chosen.values() for (version, tree), limit in zip(trees.items(), limits, strict=True)}
    commits = {version: _commit(tree) for version, tree in trees.items()}
    return {"commits": commits, "protocol": (
        f"commit {commits['before']} before, {commits['after']} after; each step in a process of its own, whose start "
        f"counts, with {THREADS} threads; a row says after how many processor seconds a step was stopped; the peak of "
        f"memory counts mapped files; vectors of {CLASSES:,} classes with noise; the load is the mean number of "
        "running processes in the minute before a step"),
        "datasets": {"Sizes before and after": {"rows": rows}}}


def _commit(tree: Path) -> str:
    return subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], cwd=tree, check=True, capture_output=True,
                          text=True).stdout.strip()


def measure_size(tree: Path, root: Path, size: Size, limit: int) -> dict[str, Any]:
    """Execute the steps of a size that are not done with the library of a tree, and return the rows of its steps."""
    folder = root / str(size.images)
    folder.mkdir(parents=True, exist_ok=True)
    name = size.dataset or str(write_vectors(root.parent / "vectors", size.images))
    environment = os.environ | {
        "UDML_CACHE": str(folder / "cache"), "UDML_RUNS": str(folder / "runs"), "UDML_MAPS": "0", "UDML_EXAMPLES": "0",
        "UDML_ALLOW": str(root.parent), "PYTHONPATH": str(tree),
        "OMP_NUM_THREADS": THREADS, "NUMBA_NUM_THREADS": THREADS}
    kept = folder / "rows.json"
    rows: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    for step in size.steps:
        if step in rows or (step == LASSO and root.name != VERSIONS[-1]):
            continue
        if step == LASSO:
            rows[step] = _measure_lasso(folder, environment)
        elif step not in ("read", "run") and not any((folder / "runs").glob("*/embeddings.npy")):
            rows[step] = {"stopped": NO_EMBEDDING}
        else:
            rows[step] = _measure_step([step, name, size.encoder], folder / f"{step}.trace", environment, tree, limit)
        kept.write_text(json.dumps(rows, indent=1), encoding="utf-8")
        print(size.title, step, json.dumps({key: value for key, value in rows[step].items() if key != "phases"}),
              flush=True)
        if step == "run" and "stopped" in rows[step] and any((folder / "runs").glob("*/embeddings.npy")):
            subprocess.run([sys.executable, "-c", FORCE], check=True, env=environment, cwd=tree)
    return rows


def _measure_lasso(folder: Path, environment: dict[str, str]) -> dict[str, Any]:
    """Draw a lasso on the map of a run in the app of this version, in a real Chromium."""
    from experiments.million.pages import lasso_seconds  # tests and a browser

    (run,) = (folder / "runs").glob("*/embeddings.npy")
    load = os.getloadavg()[0]
    return {"load": load, "page": lasso_seconds(run.parent.name, environment)}


def _measure_step(arguments: list[str], trace: Path, environment: dict[str, str], tree: Path,
                  limit: int) -> dict[str, Any]:
    """Execute a step, at most for so many processor seconds, and return its figures and its phases."""
    trace.unlink(missing_ok=True)
    load, begun, clock = os.getloadavg()[0], time.monotonic(), time.time()
    with trace.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen([sys.executable, str(STEP), *arguments, str(trace), str(limit)], cwd=tree,
                                   env=environment, stdout=log, stderr=log)
    _, ended, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(ended)
    seconds = time.monotonic() - begun
    lines = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()] if trace.exists() else []
    if lines:
        lines[0]["process start"] = lines[0].pop("began") - clock
    row: dict[str, Any] = {"seconds": seconds, "processor seconds": usage.ru_utime + usage.ru_stime,
                           "memory, MB": lines[-1]["memory"] if lines else None, "load": load}
    if process.returncode == -signal.SIGXCPU:
        row["stopped"] = (f"stopped after {limit} processor seconds: {lines[-1]['phase']}, "
                          f"{100 * lines[-1]['share']:.0f} %")
    elif process.returncode:
        words = trace.with_suffix(".log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        row["failed"] = words[-1] if words else f"exit status {process.returncode}"
    return row | {"phases": _phases(lines)}


def figures(steps: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of a size as the record shows them, from the rows of its steps.

    A run is split into features, the time until it can be searched, and evaluation. In 25b57a3 a run can be searched at
    its end.
    """
    row: dict[str, Any] = {}
    for step, measured in steps.items():
        reason = measured.get("stopped") or measured.get("failed")
        if step == "start":
            row |= _start(measured)
            continue
        row |= {f"{step}, stopped": reason} if reason else {}
        if "seconds" in measured:
            row |= {f"{step}, {name}": round(measured[name], 2) for name in MEASURES if measured[name] is not None}
        row |= {name: round(value, 2) for name, value in measured.get("page", {}).items()}
        if step == "run":
            row |= _split_run(measured)
    return row


def _split_run(measured: Mapping[str, Any]) -> dict[str, Any]:
    """Return seconds and processor seconds of the features, until the run can be searched, and of the evaluation."""
    phases, row = measured["phases"], dict[str, Any]()
    names = [line["phase"] for line in phases]
    first = next((number for number, name in enumerate(names) if name in FEATURES), None)
    last = max((number for number, name in enumerate(names) if name in FEATURES), default=0)
    searchable = next((line for line in phases if line.get("searchable")), None)
    evaluated = [line for line in phases if line["phase"] == "evaluation"]
    for name, key in (("seconds", "seconds"), ("processor seconds", "processor")):
        if first and "features" in names and last + 1 < len(phases):
            loading = [line[key] for line in phases if line["phase"] == LOADING]
            row |= {f"loading the network, {name}": round(loading[-1] - loading[0], 2)} if loading else {}
            begun = phases[first if names[first] == LOADING else first - 1]
            row[f"features, {name}"] = round(phases[last + 1][key] - begun[key], 2)
        if searchable:
            row[f"until searchable, {name}"] = round(searchable[key], 2)
        if evaluated and phases[-1]["phase"] == "end":
            row[f"evaluation, {name}"] = round(phases[-1][key] - evaluated[0][key], 2)
    return row


def _start(measured: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a start with stored features: process, imports, reading, and the epoch with the embedding."""
    phases = measured["phases"]
    marks = {line["phase"]: line for line in reversed(phases)}
    ends = {"imports": marks["imported"], "reading": marks["training"], "epoch and embedding": phases[-1]}
    row: dict[str, Any] = {"start, process, seconds": round(phases[0]["process start"], 2)}
    for name, key in (("seconds", "seconds"), ("processor seconds", "processor")):
        last = 0.0
        for part, line in ends.items():
            row[f"start, {part}, {name}"] = round(line[key] - last, 2)
            last = line[key]
    return row


def as_table(record: Mapping[str, Any]) -> str:
    """Return processor seconds and peak memory before and after as a Markdown table, a row for each step of a size."""
    lines = ["| | before, processor s | after | before, GB | after |", "|---|---:|---:|---:|---:|"]
    rows = next(iter(record["datasets"].values()))["rows"]
    for title in dict.fromkeys(name.rpartition(": ")[0] for name in rows):
        before, after = (rows[f"{title}: {name}"] for name in VERSIONS)
        lines.append(f"| **{title}** | | | | |")
        for part, words in SHOWN.items():
            cells = [_cell(row, part, "processor seconds") for row in (before, after)]
            cells += [_cell(row, part, "memory, MB") for row in (before, after)]
            if any(cells):
                lines.append(f"| {words} | " + " | ".join(cell or "–" for cell in cells) + " |")
    return "\n".join(lines)


def _cell(row: Mapping[str, Any], part: str, measure: str) -> str:
    """Return a figure as the table shows it, or how far a step came that was stopped; empty without the step."""
    value, reason = row.get(f"{part}, {measure}"), row.get(f"{part}, stopped")
    if reason:
        return "" if measure == "memory, MB" else reason.replace(" processor seconds", "")
    if value is None:
        return ""
    return f"{value / 1000:.1f}" if measure == "memory, MB" else f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _phases(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the first and the last line of each phase, and each line with more than the progress."""
    chosen = []
    for number, line in enumerate(lines):
        neighbors = [lines[other]["phase"] for other in (number - 1, number + 1) if 0 <= other < len(lines)]
        if len(line) > 5 or len(neighbors) < 2 or any(phase != line["phase"] for phase in neighbors):
            chosen.append(line)
    return chosen
