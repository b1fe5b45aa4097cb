"""Several kills: every finished epoch stays readable, and the result is bit-equal."""

from __future__ import annotations

import random
import time
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest

from experiments.hold_fast.small_runs import difference, finished_epochs
from tests.running import PROCESSES, wait_for
from tests.running import spec as planned
from udml_core import methods
from udml_core.runs import Run, create_run
from udml_core.work import jobs
from udml_core.work.workers import train as worker

STARTING = 0.3
"""Seconds within which a worker reads its spec, its images and its last epoch."""
FIELDS: dict[str, dict[str, Any]] = {
    "rpml": {"dimension": 32, "epochs": 40, "steps": 6},
    "srpml": {"dimension": 16, "epochs": 6, "batch": 120, "steps": 1, "batch_norm": "batch"},
}
"""Fields of a run that is killed ten times."""
BACKBONE = {"rpml": "pixels", "srpml": "cnn"}


def work(folder: Path) -> None:
    worker.work(Run(folder))


def started(run: Run) -> ForkServerProcess:
    process = PROCESSES.Process(target=work, args=(run.folder,))
    process.start()
    return process


def kill_after(run: Run, process: ForkServerProcess, seconds: float, epochs: int = 0) -> bool:
    """Kill a worker some seconds after a number of epochs; return whether it was working."""
    while process.is_alive() and (run.stored_status().pid is None or len(run.metrics()[0]) < epochs):
        time.sleep(0.01)
    process.join(seconds)
    was_working = process.is_alive()
    process.kill()
    process.join()
    return was_working


@pytest.mark.parametrize(("method", "kills"), [
    ("rpml", 4), *(pytest.param(method, 10, marks=pytest.mark.slow) for method in FIELDS)])
def test_a_run_killed_several_times_ends_bit_equal_to_an_undisturbed_run(
        method: str, kills: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Features that another test stores meanwhile could judge the epochs of one of the two runs alone.
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    planned_epochs = FIELDS[method]["epochs"] * kills // 10
    spec = planned(method, fields=FIELDS[method] | {"epochs": planned_epochs}, backbone=BACKBONE[method], size=8)
    # In a process of its own: other tests may have changed how this process computes.
    whole, run = jobs.submit(spec, tmp_path / "whole"), create_run(spec, tmp_path / "broken")
    wait_for(whole, "done", "failed", "stopped", "interrupted")
    assert whole.status().state == "done", whole.status().message
    status, rows = whole.status(), whole.metrics()[0]
    epoch = ((status.finished or 0) - (status.started or 0)) / planned_epochs
    moments = random.Random(7)
    epochs = 0
    for kill in range(kills):
        # Half of the kills come while the worker starts, half in training: at most kills / 2 steps of `stride` epochs.
        stride = planned_epochs // (kills // 2 + 1)
        delay, since = (STARTING * moments.random(), 0) if kill % 2 else (epoch * moments.random(), kill // 2 * stride)
        assert kill_after(run, started(run), delay, since), "the run ended before its last kill"
        assert run.status().state == "interrupted"
        readable = finished_epochs(run)
        assert all(bool(run.explanations(number)) == (number > 0) for number in range(readable))
        assert readable >= epochs, "a finished epoch was lost"
        epochs = readable
        run.clear_failure()
    assert 1 < epochs < len(rows)
    jobs.resume(run)  # in a new process, started by the queue
    wait_for(run, "done", "failed", "stopped", "interrupted")
    assert run.status().state == "done", run.status().message
    assert difference(run, whole) is None


@pytest.mark.slow
def test_a_run_that_failed_in_its_first_epoch_selects_the_same_model(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Selection ignores epoch 0, although this start (principal components) is best."""
    fields = {"dimension": 16, "alpha": 80.0, "epsilon": 0.9, "epochs": 3, "steps": 3, "beginning": "pca"}
    spec = planned("rpml", split="zero-shot", fields=fields, select="validation")
    whole, run = (create_run(spec, tmp_path) for _ in range(2))
    assert worker.work(whole).state == "done"
    rows = whole.metrics()[0]
    assert rows[0]["validation map@r"] > max(row["validation map@r"] for row in rows[1:])
    with monkeypatch.context() as patch:
        patch.setattr(methods.RPML, "fit", lambda *_: iter([None]))
        assert worker.work(run).state == "failed"
    assert [row["epoch"] for row in run.metrics()[0]] == [0]
    assert worker.work(run).state == "done"
    assert run.best_embedder_path.exists()
    assert difference(run, whole) is None
