"""Start, resume and stop background work.

A run executes as `python -m udml_core work RUN`, an analysis as `python -m udml_core analyse-work FOLDER`, each in its
own process group. One run at a time uses a device; analyses start at once, on the CPU.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from udml_core.analyses import Analysis
from udml_core.data.given.pairs import PairSet
from udml_core.errors import UserError
from udml_core.runs import Run, Spec, create_run
from udml_core.tasks import ADVICE, LIVE_STATES, Status, Task

PATIENCE = 3.0
"""Seconds that a worker has to end on request."""
BORN_TOLERANCE = 2.0
"""Tolerance in seconds for a process's start time: the system clock is adjusted from time to time."""


def submit(spec: Spec, root: Path, pairs: PairSet | None = None) -> Run:
    """Create a run and start its worker, which waits until the device is free.

    Args:
        spec: The planned run.
        root: The folder of runs.
        pairs: The given pairs that the run was planned with.
    """
    run = create_run(spec, root, pairs)
    launch(run)
    return run


def resume(task: Run | Analysis) -> None:
    """Resume a run after its last finished epoch, or compute an analysis again.

    Damaged results of a finished run are computed again.

    Raises:
        UserError: The task is finished, a worker is already working on it, or its method is unknown.
    """
    if isinstance(task, Run):
        task.spec().build_method()
    state = task.status().state
    if state == "done" and not (isinstance(task, Run) and task.broken_result()):
        raise UserError(f"{task.id} is done; there is nothing to resume.")
    if state in LIVE_STATES:
        raise UserError(f"{task.id} is already {state}. {ADVICE[state]}")
    start_again(task)


def stop(task: Task) -> Status:
    """Stop a task's whole process group: by request, after three seconds by force.

    Finished epochs stay. A task that is neither waiting nor running does not change.

    Raises:
        UserError: The worker could not be stopped.
    """
    if task.status().state not in LIVE_STATES:
        return task.status()
    task.request_stop()
    for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        if not task.is_alive():
            break
        _signal_group(task, number)
        deadline = time.monotonic() + PATIENCE
        while task.is_alive() and time.monotonic() < deadline:
            time.sleep(0.05)
    status = task.stored_status()
    if task.is_alive():
        raise UserError(f"{task.id} did not stop: its worker, process {status.pid}, ignored the signal. It stops at "
                        "its next step; if it does not, end that process.")
    if status.state in LIVE_STATES:
        status = status.model_copy(update={"state": "stopped", "finished": time.time(), "message": "Stopped."})
        task.write_status(status)
    return status


def start_again(task: Run | Analysis) -> None:
    """Queue a task again and start its worker."""
    status = task.stored_status()
    task.clear_failure()
    task.write_status(Status(state="waiting", ticket=time.time(), epoch=status.epoch, epochs=status.epochs))
    launch(task)


def launch(task: Run | Analysis) -> None:
    """Start the worker process of a task."""
    command = "work" if isinstance(task, Run) else "analyse-work"
    package_root = str(Path(__file__).resolve().parents[2])
    paths = [package_root, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONIOENCODING": "utf-8"}
    group: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        group = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    with task.log_path.open("ab") as log:
        subprocess.Popen([sys.executable, "-m", "udml_core", command, str(task.folder)], stdin=subprocess.DEVNULL,
                         stdout=log, stderr=log, env=environment, **group)


def _signal_group(task: Task, number: int) -> None:
    """Signal the worker and its child processes."""
    status = task.stored_status()
    if status.pid is None:
        return
    try:
        worker = psutil.Process(status.pid)
        if abs(worker.create_time() - status.pid_born) > BORN_TOLERANCE:  # another process has this number now
            return
        family = [worker, *worker.children(recursive=True)]
        if hasattr(os, "killpg") and os.getpgid(status.pid) == status.pid:
            os.killpg(status.pid, number)
            return
    except (psutil.Error, ProcessLookupError, PermissionError):
        return
    for process in family:
        with suppress(psutil.Error):
            process.send_signal(number)
