"""Kill workers and analyses at random file operations and at random times."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from experiments.hold_fast.attempt import Hostility, count_event, shared_folder
from experiments.hold_fast.forked import before_operations, in_child, kill_at, killed_after
from experiments.hold_fast.small_runs import METHODS, difference, finish, finished_epochs, planned, undisturbed
from udml_core.runs import Run, create_run
from udml_core.runs.analyses import Analysis, AnalysisSpec, create_analysis, plan_analysis
from udml_core.runs.analyses.kinds.graph import NeighborGraph
from udml_core.runs.analyses.kinds.pca import PCA
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.work.workers import analyse as analysis_worker
from udml_core.work.workers import train as worker

KILLS = 15
"""Kills in one attempt, if its run or analysis does not end before."""


def kill_worker(random: np.random.Generator, scratch: Path) -> str | None:
    """Kill the worker of one run several times, then let it end."""
    method = str(random.choice(list(METHODS)))
    whole, run = undisturbed(method), create_run(planned(method), scratch)
    operations, seconds = operations_of(method), worker_seconds(whole)
    epochs = 0
    for _ in range(KILLS):
        strike(random, lambda: worker.work(run), run.folder, operations, seconds)
        finished = finished_epochs(run)
        if finished < epochs:
            return f"{method}: {epochs} epochs were finished, {finished} are left"
        epochs = finished
        if run.status().state == "done":
            break
        if run.status().state not in ("interrupted", "waiting"):
            return f"{method}: a killed run is {run.status()}"
        run.clear_failure()
    finish(run)
    return difference(run, whole)


def kill_analysis(random: np.random.Generator, scratch: Path) -> str | None:
    """Kill an analysis of a finished run several times, then let it end."""
    run, spec = undisturbed("rpml"), ANALYSES[int(random.integers(len(ANALYSES)))]
    whole = finished_analysis(spec)
    copy = Run(scratch / run.id)
    link_tree(run.folder, copy.folder)
    analysis = create_analysis(copy, spec)
    for _ in range(KILLS):
        strike(random, lambda: analysis_worker.work(analysis), analysis.folder, 40, 1.0)
        if analysis.is_done():
            break
        analysis.clear_failure()
    in_child(lambda: analysis_worker.work(analysis))
    return analysis_difference(analysis, whole)


def strike(random: np.random.Generator, work: Callable[[], object], folder: Path, operations: int,
           seconds: float) -> None:
    """Work in a child that is killed at a random file operation or at a random time."""
    if random.random() < 0.7:
        number = int(random.integers(1, operations + 1))

        def work_and_die() -> None:
            kill_at(folder, number)
            work()

        code = in_child(work_and_die)
    else:
        code = killed_after(work, float(random.random()) * seconds)
    if code == -signal.SIGKILL:
        count_event()


@cache
def operations_of(method: str) -> int:
    """Return the number of file operations of a whole run."""
    run = create_run(planned(method), shared_folder("counted"))
    tally = shared_folder("counts") / method

    def work() -> None:
        counts: list[int] = []
        before_operations(run.folder, lambda count, _event: counts.append(count))
        worker.work(run)
        tally.write_text(str(len(counts)))

    in_child(work)
    return int(tally.read_text())


def worker_seconds(run: Run) -> float:
    """Return the seconds that a worker took for a whole run."""
    status = run.status()
    return (status.finished or 0.0) - (status.started or 0.0)


def link_tree(source: Path, target: Path) -> None:
    """Copy a folder by hard links: files that the app replaces leave the source alone."""
    shutil.copytree(source, target, copy_function=os.link, ignore=shutil.ignore_patterns("lock", "metrics.jsonl"))
    if (source / "metrics.jsonl").exists():
        shutil.copy2(source / "metrics.jsonl", target / "metrics.jsonl")  # appended to, not replaced


ANALYSES = (plan_analysis(NeighborGraph, n_neighbors=8), plan_analysis(Refinement),
            plan_analysis(PCA, scope="sample", frames=("0", "1", "2")))
"""Analyses of a second; UMAP compiles for longer than it computes."""


@cache
def finished_analysis(spec: AnalysisSpec) -> Analysis:
    """Return an analysis that nothing disturbed."""
    analysis = create_analysis(undisturbed("rpml"), spec)
    in_child(lambda: analysis_worker.work(analysis))
    return analysis


def analysis_difference(analysis: Analysis, whole: Analysis) -> str | None:
    """Return how the result of an analysis differs from another's; None if they are equal."""
    if not analysis.is_done():
        return f"{analysis.id} is {analysis.status()}: {analysis.log_tail()}"
    own, expected = (vars(each.result()) for each in (analysis, whole))
    for name, value in expected.items():
        if not (np.array_equal(own[name], value, equal_nan=value.dtype.kind == "f") if isinstance(value, np.ndarray)
                else own[name] == value):
            return f"{analysis.id}: {name} differs"
    return None


PARTS = (Hostility("kills", kill_worker, weight=12, goal=1000),
         Hostility("analysis-kills", kill_analysis))
