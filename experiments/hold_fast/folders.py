"""Move, copy and delete folders under a live run."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np

from experiments.hold_fast.attempt import Hostility
from experiments.hold_fast.forked import before_operations, in_child
from experiments.hold_fast.kills import operations_of
from experiments.hold_fast.small_runs import METHODS, difference, finish, finished_epochs, planned, undisturbed
from udml_core.runs import Run, create_run
from udml_core.work.workers import train as worker

DEEDS = ("move", "copy", "delete", "move all", "delete all", "trash")


def disturb_folder(random: np.random.Generator, scratch: Path) -> str | None:
    """Do something to the folder of a live run at a random file operation; what is left of it must be usable."""
    method, deed = str(random.choice(list(METHODS))), str(random.choice(DEEDS))
    root, elsewhere = scratch / "runs", scratch / "elsewhere"
    whole, run = undisturbed(method), create_run(planned(method), root)
    number = int(random.integers(1, operations_of(method) + 1))

    def act(count: int, _event: str) -> None:
        if count == number:
            disturb(deed, run, elsewhere)

    def work() -> None:
        before_operations(run.folder, act)
        worker.work(run)

    in_child(work)
    if deed.startswith(("move", "delete")) and (elsewhere.exists() or deed.startswith("delete")) and _is_back(run):
        return f"{method}, {deed} before operation {number}: the worker made {run.folder} again: " \
               f"{sorted(path.name for path in run.folder.rglob('*'))}"
    for other in (run, Run(elsewhere / run.id)):
        if other.has_spec():
            finished_epochs(other)
            finish(other)
            if broken := difference(other, whole):
                return f"{method}, {deed} before operation {number}: {broken}"
    return None


def _is_back(run: Run) -> bool:
    """Return whether a worker has written into a removed folder; a lock's empty file may be left."""
    return run.folder.exists() and any(path.name != "lock" for path in run.folder.rglob("*"))


def disturb(deed: str, run: Run, elsewhere: Path) -> None:
    """Do something to the folder of a run or to the folder of runs."""
    root = run.folder.parent
    match deed:
        case "move":
            elsewhere.mkdir()
            run.folder.rename(elsewhere / run.id)
        case "copy":
            elsewhere.mkdir()
            shutil.copytree(run.folder, elsewhere / run.id, ignore=shutil.ignore_patterns("lock"))
        case "delete":
            shutil.rmtree(run.folder)
        case "move all":
            os.rename(root, elsewhere)
        case "delete all":
            shutil.rmtree(root)
        case "trash":
            (root / ".trash").mkdir()
            run.folder.rename(root / ".trash" / run.id)


PART = Hostility("folders", disturb_folder)
