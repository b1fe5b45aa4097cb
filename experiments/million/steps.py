"""The steps from a table to its pages, each in a process of its own, whose figures are kept beside the table."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.memory import peak_megabytes
from experiments.million.table import write_table
from udml_core.data import catalog
from udml_core.numerics.galleries import StoredGallery
from udml_core.numerics.graph import AuthorityGraph
from udml_core.runs import Run, RunRequest, create_run, list_runs, runs_folder
from udml_core.runs.analyses import list_analyses, plan_analysis
from udml_core.runs.analyses.kinds.graph import NeighborGraph
from udml_core.runs.analyses.kinds.pca import PCA
from udml_core.runs.search import Query, Retrieval
from udml_core.work.jobs.planning import plan
from udml_core.work.workers import analyse, train

QUERIES = 200
GRAPH_NEIGHBORS = 20
Row = dict[str, float]


def table_name(folder: Path, rows: int) -> str:
    """Return the name of the data set, without labels: the classes are a column to color and filter by."""
    return f"{folder / 'table' / f'{rows}.npy'}#label="


def write(folder: Path, rows: int) -> Row:
    """Write the table."""
    write_table(folder / "table", rows)
    return {}


def open_table(folder: Path, rows: int) -> Row:
    """Open the table for the first time, and again."""
    row = {}
    for visit in ("first", "later"):
        start = time.monotonic()
        catalog.load(table_name(folder, rows))
        row[f"open the table, {visit} time, s"] = time.monotonic() - start
    return row


def run(folder: Path, rows: int) -> Row:
    """Execute a run of frozen features: embedding, search index, evaluation and, for a large table, a PCA map."""
    dataset = catalog.load(table_name(folder, rows))
    created = create_run(plan(RunRequest(dataset=dataset.name, method="frozen"), dataset), runs_folder())
    start = time.monotonic()
    status = train.work(created, analyse=False)
    assert status.state == "done", status.message
    row = {"run with embedding, index and evaluation, s": time.monotonic() - start}
    index = created.gallery_path
    if index.exists():
        manifest = StoredGallery.open(index).manifest
        assert manifest.recall is not None
        row |= {"index, s": manifest.seconds, "index, recall@10": manifest.recall.recall}
    return row


def pca(folder: Path, rows: int) -> Row:  # noqa: ARG001 (the run of the folder)
    """Compute the PCA map of all images."""
    analyse.keep(_run(), plan_analysis(PCA, frames=("final",)), _no_report)
    return {}


def graph(folder: Path, rows: int) -> Row:  # noqa: ARG001
    """Compute the neighbor graph of the training half, from which clusters are formed."""
    spec = plan_analysis(NeighborGraph, scope="train", frames=("final",), n_neighbors=GRAPH_NEIGHBORS)
    analyse.keep(_run(), spec, _no_report)
    return {}


def clusters(folder: Path, rows: int) -> Row:  # noqa: ARG001
    """Form the clusters at several ε."""
    (analysis,) = list_analyses(_run(), NeighborGraph)
    result = analysis.result()
    assert isinstance(result, AuthorityGraph)
    row, seconds = {}, []
    for epsilon in (0.65, 0.5, 0.6, 0.7, 0.8):
        start = time.monotonic()
        formed = result.clusters(epsilon)
        seconds.append(time.monotonic() - start)
        row.setdefault("clusters", float(len(formed.modes)))
    return row | {"clusters at the first ε, s": seconds[0], "clusters at another ε, s": float(np.median(seconds[1:]))}


def search(folder: Path, rows: int) -> Row:  # noqa: ARG001
    """Search with single images: in all images, in the test half, and with a filter that keeps one of 20."""
    start = time.monotonic()
    opened = Retrieval(_run())
    opened.frame("final").index  # noqa: B018 (opened on first use)
    row = {"open the search, s": time.monotonic() - start}
    kept = np.asarray(opened.dataset.columns["shop"] == "shop 3")
    searches: dict[str, Callable[[Query], Any]] = {
        "all images": opened.search, "the test half": partial(opened.search, gallery="test"),
        "one of 20 by a filter": partial(opened.search, allowed=kept)}
    queries = np.random.default_rng(0).choice(len(opened.dataset), QUERIES, replace=False)
    for name, find in searches.items():
        milliseconds, used = [], time.process_time()
        for query in queries.tolist():
            start = time.perf_counter()
            find(Query((query,)))
            milliseconds.append(1000 * (time.perf_counter() - start))
        row[f"search in {name}, mean of the processor, ms"] = 1000 * (time.process_time() - used) / QUERIES
        row[f"search in {name}, median, ms"] = float(np.median(milliseconds))
        row[f"search in {name}, 95 %, ms"] = float(np.percentile(milliseconds, 95))
    return row


STEPS: dict[str, Callable[[Path, int], Row]] = {
    step.__name__: step for step in (write, open_table, run, pca, graph, clusters, search)}
"""The steps in their order."""


def execute(step: str, folder: Path, rows: int) -> Row:
    """Execute a step in this process; return its figures, its seconds and its largest memory."""
    start, used = time.monotonic(), time.process_time()
    row = STEPS[step](folder, rows)
    used = time.process_time() - used
    memory = peak_megabytes() * 1024**2 / 1e6
    return {f"{step}, s": time.monotonic() - start, f"{step}, processor seconds": used,
            f"{step}, largest memory, MB": memory} | row


def _run() -> Run:
    (only,) = list_runs(runs_folder())
    return only


def run_id() -> str:
    """Return the id of the run."""
    return _run().id


def _no_report(_share: float, _step: str) -> None: ...
