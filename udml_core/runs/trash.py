"""Delete runs into a trash folder inside the folder of runs, and restore them.

A name that begins with a dot keeps the trash out of `list_runs`.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from udml_core.base.errors import UserError
from udml_core.base.files import read_regular, replace_text
from udml_core.runs.engines import remove_submission
from udml_core.runs.folder import Run
from udml_core.runs.tasks import LIVE_STATES, Task

TRASH = ".trash"
DELETED_FILE = "deleted"
DAYS_KEPT = 30.0
SECONDS_A_DAY = 86_400.0


@dataclass(frozen=True)
class Contents:
    """What a run's folder holds, and a deletion would lose.

    Attributes:
        epochs: Number of stored epochs.
        analyses: Number of maps, graphs and other analyses.
        size: Size in bytes.
    """

    epochs: int
    analyses: int
    size: int


def contents(run: Run) -> Contents:
    """Count what a run's folder holds."""
    size = 0
    for path in run.folder.rglob("*"):
        try:
            size += path.stat().st_size if path.is_file() else 0
        except OSError:  # removed since it was listed
            continue
    return Contents(len([number for number in run.epoch_numbers() if number]), len(_analyses(run)), size)


def delete_run(run: Run) -> Run:
    """Move a run into the trash of its folder of runs.

    Returns:
        The run in the trash.

    Raises:
        UserError: The run is an example, it or one of its analyses is in progress, or the folder cannot be moved.
    """
    if run.is_example:
        raise UserError(f"{run.id} is an example that comes with the app and cannot be deleted. Hide the examples to "
                        "leave it out of the list.")
    state = run.status().state
    if state in LIVE_STATES:
        raise UserError(f"{run.id} is {state} and cannot be deleted. Stop it first.")
    if any(analysis.status().state in LIVE_STATES for analysis in _analyses(run)):
        raise UserError(f"An analysis of {run.id} is being computed. Wait for it, or cancel it first.")
    trash = run.folder.parent / TRASH
    target = trash / run.id
    try:
        trash.mkdir(exist_ok=True)
        shutil.rmtree(target, ignore_errors=True)
        replace_text(run.folder / DELETED_FILE, str(time.time()))
        run.folder.rename(target)
    except OSError as error:
        (run.folder / DELETED_FILE).unlink(missing_ok=True)
        raise UserError(f"{run.id} could not be deleted: {error}. Check that the folder can be written.") from error
    return Run(target)


def restore_run(run_id: str, root: Path) -> Run:
    """Move a run from the trash back.

    Raises:
        UserError: The run is not in the trash, or a run of its id exists.
    """
    deleted, target = root / TRASH / Path(run_id).name, root / Path(run_id).name
    if not deleted.is_dir():
        raise UserError(f"{run_id} is not in the trash. It was restored already, or the trash was emptied.")
    if target.exists():
        raise UserError(f"{run_id} cannot be restored, because a run of this id exists in {root}.")
    deleted.rename(target)
    (target / DELETED_FILE).unlink(missing_ok=True)
    return Run(target)


def deleted_runs(root: Path) -> list[Run]:
    """List the runs in the trash, the last deleted first."""
    folders = [path for path in (root / TRASH).glob("*") if path.is_dir()]
    return [Run(path) for path in sorted(folders, key=_deleted_at, reverse=True)]


def empty_trash(root: Path, older_than_days: float = 0.0) -> int:
    """Remove the runs in the trash for good.

    Args:
        root: The folder of runs.
        older_than_days: Keep runs that were deleted later than this.

    Returns:
        Number of removed runs.
    """
    last = time.time() - older_than_days * SECONDS_A_DAY
    removed = [run for run in deleted_runs(root) if _deleted_at(run.folder) <= last]
    for run in removed:
        shutil.rmtree(run.folder, ignore_errors=True)
        if not (root / run.id).exists():  # a copy of the run can be there, and its job can run
            remove_submission(root, run.id)
    return len(removed)


def _deleted_at(folder: Path) -> float:
    """Return the time of the deletion in seconds since 1970; the folder's own change without a readable time."""
    try:
        return float(read_regular(folder / DELETED_FILE))
    except (OSError, ValueError):
        return folder.stat().st_mtime if folder.exists() else 0.0


def _analyses(run: Run) -> list[Task]:
    return [Task(path) for path in sorted((run.folder / "analyses").glob("*"))
            if not path.name.startswith(".") and (path / "spec.json").exists()]
