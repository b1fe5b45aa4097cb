"""Kill workers that finish what version 0.3.0 began."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from experiments.hold_fast.attempt import Hostility
from experiments.hold_fast.forked import in_child
from experiments.hold_fast.kills import strike
from experiments.real_server import ROOT
from udml_core.runs import Run, list_runs
from udml_core.work.workers import train as worker

WRITTEN = ROOT / "tests" / "runs" / "written_by_0.3.0"
RESULTS = ("evaluation.json", "embeddings.npy", "index.faiss", "embedder.safetensors", "status.json")
"""Files of which a random part is missing, as after a kill in version 0.3.0."""
KILLS, OPERATIONS, SECONDS = 8, 60, 1.0


def finish_former(random: np.random.Generator, scratch: Path) -> str | None:
    """Remove results of a run, let workers that are killed finish it, and compare its embeddings."""
    folders = sorted(folder.name for folder in WRITTEN.iterdir())
    folder = scratch / str(random.choice(folders))
    shutil.copytree(WRITTEN / folder.name, folder)
    (run,) = list_runs(scratch)
    before = np.load(folder / "embeddings.npy")
    for name in {"status.json", *(name for name in RESULTS if random.random() < 0.7)}:
        (folder / name).unlink()
    for _ in range(KILLS):
        strike(random, lambda: worker.work(run), folder, OPERATIONS, SECONDS)
        if run.status().state not in ("interrupted", "waiting", "done"):
            return f"{folder.name}: a killed run is {run.status()}"
        run.clear_failure()
    in_child(lambda: worker.work(run))
    return difference(run, before)


def difference(run: Run, before: np.ndarray) -> str | None:
    """Return how a run differs from what version 0.3.0 has written; None if it does not."""
    if run.status().state != "done" or run.broken_result() is not None:
        return f"{run.folder.name}: {run.status()}, {run.broken_result()}; {run.log_tail()}"
    if not np.array_equal(np.asarray(run.embeddings("final")), before):
        return f"{run.folder.name}: the embeddings differ"
    epochs = [row["epoch"] for row in run.metrics()[0]]
    return None if epochs == [0, 1] else f"{run.folder.name}: the curves have the epochs {epochs}"


PART = Hostility("former-release", finish_former)
