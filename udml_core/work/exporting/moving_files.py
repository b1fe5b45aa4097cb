"""Carry out a plan of moved images: the list first, then one file after the other."""

from __future__ import annotations

import io
import os
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

from udml_core.base.errors import UserError, counted, quoted
from udml_core.base.files import replace_text
from udml_core.base.moving import move_file
from udml_core.base.spreadsheets import write_rows
from udml_core.data.dataset import Report
from udml_core.data.given.log import append_to_log, log_path_of
from udml_core.work.exporting.moving import COLUMNS, KIND, MOVED, MovedFile, MovePlan, read_moved, why_not


def move_files(plan: MovePlan, report: Report | None = None) -> int:
    """Move the files of a plan.

    Args:
        plan: The plan.
        report: Receives the progress; an exception that it raises interrupts the move, which the same plan continues.

    Returns:
        The number of moved files.

    Raises:
        UserError: The folders have changed since the plan, or cannot be written. Files that moved stay listed.
    """
    lock = log_path_of(plan.dataset, KIND).with_name("moving.lock")
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(lock, timeout=0):
            if not plan.is_back:
                append_to_log(plan.dataset, KIND, {"folder": str(plan.away)})
                plan.away.mkdir(parents=True, exist_ok=True)
                _write_list(plan, (*plan.listed, *plan.items))
            for number, item in enumerate(plan.items):
                _move(plan, item)
                if report is not None:
                    report((number + 1) / len(plan.items), "moving files")
            if hasattr(os, "sync"):
                os.sync()  # once: the names of all files are on the disk
            if plan.is_back:
                _end_list(plan)
    except Timeout as error:
        raise UserError("Another window or command is moving these images. Wait until it has ended.") from error
    except OSError as error:
        raise UserError(f"The move to {quoted(str(plan.target))} was interrupted: {error}. Each file is whole in one "
                        "of the two folders; repeat the move to continue.") from error
    return len(plan.items)


def _move(plan: MovePlan, item: MovedFile) -> None:
    """Move one file, unless something has changed since the plan."""
    if (reason := why_not(item.file, plan.source, plan.target, is_known=True)) \
            or (plan.source / item.file).stat().st_size != item.bytes:
        raise UserError(f"{quoted(item.file)} was not moved: {reason or 'the file has changed since'}. Show the plan "
                        "again.")
    path = plan.target / item.file
    path.parent.mkdir(parents=True, exist_ok=True)
    move_file(plan.source / item.file, path)


def _write_list(plan: MovePlan, items: tuple[MovedFile, ...]) -> None:
    text = io.StringIO(newline="")
    write_rows(text, [COLUMNS, *((item.file, item.bytes, str(plan.home)) for item in items)])
    replace_text(plan.away / MOVED, text.getvalue())


def _end_list(plan: MovePlan) -> None:
    """Keep files that could not move back on the list; without any, remove the list and the folders it filled."""
    listed = read_moved(plan.away)[0]
    rest = tuple(item for item in listed if os.path.lexists(plan.away / item.file))
    if rest:
        _write_list(plan, rest)
        return
    (plan.away / MOVED).unlink()
    folders = {parent for item in listed for parent in Path(item.file).parents if parent.parts}
    for folder in sorted(folders, key=lambda folder: -len(folder.parts)):
        with suppress(OSError):  # the user has put something there
            (plan.away / folder).rmdir()


def moved_words(plan: MovePlan, count: int) -> str:
    """Say what was moved."""
    return f"Moved {counted(count, 'file')} to {quoted(str(plan.target))}."
