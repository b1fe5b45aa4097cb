"""Start the waiting tasks of a lane one after the other, as a process of its own.

    python dispatch.py ROOT LANE [DEVICE_LOCK]

A waiting task is a file, not a process: its status says `waiting`. A lane is a device, which one run at a time uses,
`analyses` or `races`. A dispatcher starts the task with the earliest ticket, waits until its worker has ended, and ends
when no task waits. It may die at any moment: the worker goes on, and the next dispatcher continues with the queue.

The process lives as long as something waits, so that it imports only the standard library, filelock and small modules,
and is started by the path of this file: importing its package would load NumPy and torch.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from udml_core.base import handover, locks
from udml_core.base.plain_files import read_object, read_text, write_text

ANALYSES, RACES = "analyses", "races"
"""The lanes of analyses: a race takes minutes to an hour, and others do not wait behind it."""
RACE = "advice"
"""The kind of analysis that is a race."""
FOLDER = ".dispatch"
"""Folder of the dispatchers' locks, inside the folder of runs."""
ENVIRONMENT = "environment.json"
"""The name of `tasks.ENVIRONMENT`, which cannot be imported here."""
OWNER = "engine.json"
"""The name of `engines.owner.FILE`: another engine starts this task."""
TICKET_FILE = "ticket"
"""Where a moved run keeps its ticket. The worker alone writes the status, so a move never overwrites its progress."""
INHERITED = ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES")
"""Environment variables, besides UDML_…, that a worker takes from there. None of them can load code."""
EXPOSED = "UDML_EXPOSED"
"""Limits the paths that a worker reads; only the task says whether it does, not the app that started the dispatcher."""
STARTING_SECONDS = 2.0
"""Seconds in which a new dispatcher may take the lock; readers hold it for microseconds."""
DEVICE_POLL = 0.3
YIELDING = 5
"""How much nicer a worker is than the app: where both want the processor, a page gets three quarters of it."""
NEVER_STARTED = "The worker ended before it started. Read the log, then resume."
PACKAGE_ROOT = Path(__file__).resolve().parents[3]


def main(root: Path, lane: str, device_lock: str = "") -> None:
    """Start the waiting tasks of a lane until none is left, unless another process does."""
    started: set[tuple[str, float]] = set()
    while True:
        try:
            with locks.held(lock_path(root, lane), STARTING_SECONDS):
                while task := head(root, lane, started):
                    if device_lock:
                        with FileLock(device_lock).acquire(poll_interval=DEVICE_POLL):
                            pass
                        task = head(root, lane, started)  # The queue may have changed meanwhile.
                    if task is not None:
                        ticket = read_status(task).get("ticket", 0.0)
                        started.add((str(task), ticket))
                        execute(task, lane, ticket)
        except (Timeout, OSError):  # Another dispatcher lives, or the folder of runs is gone.
            return
        if head(root, lane, started) is None:  # A task may have come between the last look and the release.
            return


def head(root: Path, lane: str, started: set[tuple[str, float]] | None = None) -> Path | None:
    """Return the waiting task of a lane with the earliest ticket; None if no task waits.

    Args:
        root: The folder of runs.
        lane: A device, `analyses` or `races`.
        started: Tasks and tickets to leave out, because they were started once.
    """
    queue = sorted((order_key(task, status.get("ticket", 0.0)), str(task), status.get("ticket", 0.0))
                   for task, status in waiting(root, lane))
    return next((Path(task) for _, task, ticket in queue
                 if (task, ticket) not in (started or ()) and is_free(Path(task))), None)


def waiting(root: Path, lane: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the waiting tasks of a lane with their statuses, in no order."""
    is_analysis = lane in (ANALYSES, RACES)
    for path in root.glob("[!.]*/analyses/[!.]*/status.json" if is_analysis else "[!.]*/status.json"):
        status = read_status(path.parent)
        waits = status.get("state") == "waiting" and status.get("pid") is None
        queued = waits and (path.parent / ENVIRONMENT).exists() and not (path.parent / OWNER).exists()
        queued = queued and isinstance(status.get("ticket", 0.0), int | float)
        spec = (queued and read_object(path.parent / "spec.json")) or {}
        if queued and lane == (lane_of(spec.get("kind")) if is_analysis else spec.get("device")):
            yield path.parent, status


def lane_of(kind: object) -> str:
    """Return the lane of a kind of analysis."""
    return RACES if kind == RACE else ANALYSES


def order_key(task: Path, ticket: float) -> float:
    """Return the key by which tasks start: the ticket of a move (see `queue.move`), else of the submission."""
    try:
        return float(read_text(task / TICKET_FILE))
    except (OSError, ValueError):
        return ticket


def execute(task: Path, lane: str, ticket: float) -> None:
    """Start the worker of a task, or give the task to one that waits, and wait until it ends."""
    is_run = lane not in (ANALYSES, RACES)
    command = "work" if is_run else "analyse-work"
    kept = {name: value for name, value in (read_object(task / ENVIRONMENT) or {}).items()
            if (name.startswith("UDML_") or name in INHERITED) and isinstance(value, str)}

    def is_untouched(status: dict[str, Any]) -> bool:
        return status.get("state") == "waiting" and status.get("ticket") == ticket

    try:
        is_taken = is_run and handover.hand_over(ready_folder(task.parent), task, kept)
        if not is_taken or is_untouched(read_status(task)):  # a process that waited may have ended at this moment
            start_worker([command, str(task)], task / "log.txt", kept).wait()
        status = read_status(task)
        if is_untouched(status) and not (task / "stop").exists() and is_free(task):
            ended = {"state": "interrupted", "finished": time.time(), "message": NEVER_STARTED}
            write_text(task / "status.json", json.dumps(status | ended))
    except OSError:  # The folder was removed, or the disk is full; the next task may still run.
        return


def start_worker(words: list[str], log_path: Path, settings: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start `python -m udml_core` with these words in a process group of its own, which lets pages go first."""
    paths = [str(PACKAGE_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {name: value for name, value in os.environ.items() if name != EXPOSED}
    environment = own | settings | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONIOENCODING": "utf-8"}
    group: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        group = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.BELOW_NORMAL_PRIORITY_CLASS}
    with log_path.open("ab") as log:
        worker = subprocess.Popen([sys.executable, "-m", "udml_core", *words], stdin=subprocess.DEVNULL, stdout=log,
                                  stderr=log, env=environment, **group)
    if sys.platform != "win32":
        with suppress(OSError):  # the worker may have ended
            os.setpriority(os.PRIO_PROCESS, worker.pid, os.getpriority(os.PRIO_PROCESS, 0) + YIELDING)
    return worker


def lock_path(root: Path, lane: str) -> Path:
    """Return the path of the lock that the dispatcher of a lane holds while it lives."""
    folder = root / FOLDER
    folder.mkdir(exist_ok=True)
    return folder / f"{lane.replace(':', '-')}.lock"


def ready_folder(root: Path) -> Path:
    """Return the folder in which workers that wait for a run offer themselves."""
    return root / FOLDER / "ready"


def is_free(task: Path) -> bool:
    """Return whether a task exists and no worker holds its lock."""
    return task.is_dir() and not is_held(task / "lock")


def is_held(lock: Path) -> bool:
    """Return whether a process holds a lock, or may hold it; none does if its file is missing."""
    try:
        return locks.is_held(lock)
    except OSError:
        return True


def read_status(task: Path) -> dict[str, Any]:
    """Return the stored status of a task; empty if it cannot be read."""
    return read_object(task / "status.json") or {}


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
