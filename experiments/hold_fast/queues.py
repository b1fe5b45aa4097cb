"""Submissions that are killed, 200 waiting runs that are canceled at once, and runs that vanish under a page."""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np

from experiments.hold_fast.attempt import Hostility, count_event
from experiments.hold_fast.damage import PAGES, analyzed
from experiments.hold_fast.forked import answer_of, in_child, kill_at
from experiments.hold_fast.inputs import quiet
from experiments.hold_fast.kills import link_tree
from experiments.hold_fast.small_runs import METHODS, difference, finish, planned, undisturbed
from tests.app.opening import opened
from udml_core.runs import Run, create_run, list_runs
from udml_core.runs.trash import delete_run
from udml_core.work import jobs

MOST = 200
"""Waiting runs."""
OPERATIONS = 25
"""File operations of a submission, about."""


def cancel_all(random: np.random.Generator, scratch: Path) -> str | None:
    """Cancel many waiting runs at once; finished and stopped runs stay as they are."""
    whole = undisturbed("pca")
    link_tree(whole.folder, scratch / whole.id)
    number = int(random.integers(2, MOST + 1))
    waiting = [create_run(planned("pca"), scratch) for _ in range(number)]
    for run in waiting:
        run.queue({})
        count_event()
    chosen = random.choice(number, int(random.integers(0, number)), replace=False)
    for position in chosen[:5]:
        jobs.stop(waiting[position])
    with patch("udml_core.work.jobs.launch.launch"), patch("udml_core.work.jobs.launch.ensure_dispatcher"):
        jobs.cancel_waiting(scratch)
    if left := jobs.waiting_runs(scratch):
        return f"{len(left)} of {number} runs still wait"
    states = {run.id: run.status().state for run in list_runs(scratch)}
    if states.pop(whole.id, "") != "done" or set(states.values()) != {"stopped"} or len(states) != number:
        return f"{number} canceled runs are {sorted(set(states.values()))}, {len(states)} of them"
    return None


def kill_submission(random: np.random.Generator, scratch: Path) -> str | None:
    """Kill the process that submits a run, as the server when a training begins: the run is there whole, or not at all.
    """
    method, root = str(random.choice(list(METHODS))), scratch / "runs"
    root.mkdir()

    def submit() -> None:
        kill_at(root, int(random.integers(1, OPERATIONS)))
        with patch("udml_core.work.jobs.launch.launch"), patch("udml_core.work.jobs.launch.ensure_dispatcher"):
            jobs.submit(planned(method), root)

    in_child(submit)
    count_event()
    for run in list_runs(root):
        jobs.waiting_runs(root)
        finish(run)
        if broken := difference(run, undisturbed(method)):
            return f"{method}: {broken}"
    return None


def vanish(random: np.random.Generator, scratch: Path) -> str | None:
    """Open a page with a run, remove the run, and use the page on."""
    whole = analyzed(str(random.choice(["rpml", "plm"])))
    runs = scratch / "runs"
    run = Run(runs / whole.id)
    link_tree(whole.folder, run.folder)
    page, is_kept = str(random.choice(PAGES)), bool(random.random() < 0.5)

    def show() -> str | None:
        with quiet(), patch.dict(os.environ, {"UDML_RUNS": str(runs)}):
            test = opened(page, run=run.id)
            (partial(delete_run, run) if is_kept else partial(shutil.rmtree, run.folder))()
            for _ in range(2):
                test.run()
                if test.exception:
                    return f"{page}: {test.exception[0].message}\n{test.exception[0].stack_trace[-3:]}"
        return None

    count_event()
    return answer_of(show, scratch / "report")


PARTS = (Hostility("canceled", cancel_all, goal=1000), Hostility("submissions", kill_submission, weight=2),
         Hostility("vanishing", vanish, limit=240, goal=50))
