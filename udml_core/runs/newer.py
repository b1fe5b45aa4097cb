"""Images that a folder has gained since a run began, and how to get a run that knows them."""

from __future__ import annotations

import shlex
from pathlib import Path

from udml_core.base.errors import counted
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.given.exclusions import excluded_names
from udml_core.data.given.following import moved_names
from udml_core.runs.command import command_of
from udml_core.runs.finding import list_runs
from udml_core.runs.folder import Run
from udml_core.runs.spec import Spec

PROGRAM = ("udml",)


def say_new_images(run: Run, dataset: Dataset) -> str:
    """Say how many images of a folder are not in a run, and which run or command has them; empty without any.

    Args:
        run: The run.
        dataset: Its images.
    """
    now = catalog.load(run.spec().dataset)
    if now.fingerprint == dataset.fingerprint:
        return ""
    known = set(dataset.names)
    renamed = set(moved_names(now, known).values())
    count = len(set(now.names) - known - renamed - set(excluded_names(now)))
    if not count:
        return ""
    words = f"{counted(count, 'new image')} {'is' if count == 1 else 'are'} not in this run"
    newer = run_of_state(now, run.folder.parent, run.spec())
    return f"{words}; the run {newer.id} has {'it' if count == 1 else 'them'}." if newer else (
        f"{words}. Start another run: {command_of(run.spec(), PROGRAM)}")


def say_run_of(now: Dataset, root: Path) -> str:
    """Say which run knows all images of a folder, or the command that starts it.

    Args:
        now: The folder in its present state.
        root: The folder of the runs.
    """
    what = "udml groups, names and sort know"
    if newest := run_of_state(now, root):
        return f"{what} all images by the run {newest.id}."
    earlier = next((run for run in list_runs(root) if run.spec().dataset == now.name), None)
    command = command_of(earlier.spec(), PROGRAM) if earlier else shlex.join(
        [*PROGRAM, "train", "--dataset", now.name, "--method", "frozen"])
    return f"{what} new images after another run: {command}"


def run_of_state(now: Dataset, root: Path, like: Spec | None = None) -> Run | None:
    """Return the newest finished run of a data set in its present state, by the method and encoder of a spec."""
    for run in list_runs(root):
        spec = run.spec()
        if spec.fingerprint == now.fingerprint and (like is None or (spec.method, spec.fields, spec.encoder.key) == (
                like.method, like.fields, like.encoder.key)) and run.stored_status().can_search:
            return run
    return None
