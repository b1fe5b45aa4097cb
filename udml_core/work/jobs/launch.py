"""Start, resume and stop background work.

A run executes as `python -m udml_core work RUN`, an analysis as `python -m udml_core analyse-work FOLDER`, each in its
own process group. Both are started by dispatchers (see `dispatch`): one run at a time uses a device, and one analysis
at a time a folder of runs. A run can be handed to another engine instead (see `udml_core.runs.engines`).
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Literal

import psutil

from udml_core.base.errors import UserError
from udml_core.base.paths import python_path
from udml_core.data.given.pair_sets import PairSet
from udml_core.runs import Run, Spec, create_run, list_runs
from udml_core.runs.analyses import Analysis
from udml_core.runs.engines import EngineRequest, cancel, check_engine, forget_owner, hand_over, read_owner
from udml_core.runs.tasks import ADVICE, LIVE_STATES, Status, Task
from udml_core.work.jobs import dispatch
from udml_core.work.jobs.follow_ups import are_maps_on, is_busy, next_map, want
from udml_core.work.jobs.queue import device_lock, leave_place, waiting_runs

WRITERS = 16
"""Runs that are stopped at the same time."""
PATIENCE = 3.0
"""Seconds that a worker has to end on request."""
BORN_TOLERANCE = 2.0
"""Tolerance in seconds for a process's start time: the system clock is adjusted from time to time."""
PATIENCE_AT_A_CLUSTER = 30.0
"""Seconds that a cluster has to end a job."""
FOLDERS = ("UDML_CACHE", "UDML_DATA", "UDML_RUNS", "UDML_ENGINES")
"""Settings that name a folder; a relative name is meant from the folder in which the task was queued."""


def submit(spec: Spec, root: Path, pairs: PairSet | None = None, maps: bool | None = None,
           engine: EngineRequest | None = None) -> Run:
    """Create a run and queue it.

    Args:
        spec: The planned run.
        root: The folder of runs.
        pairs: The given pairs that the run was planned with.
        maps: Whether UMAP, t-SNE and a grid follow in the background (see `maps`); by default unless the
            environment variable UDML_MAPS is 0.
        engine: The engine that starts the worker; None for the queue of this machine.

    Raises:
        UserError: The engine is not installed or does not accept the run, or the folder cannot be written.
    """
    if engine is not None:
        check_engine(engine)
    run = create_run(spec, root, pairs)
    if are_maps_on() if maps is None else maps:
        want(run, "maps")
    launch(run, engine)
    return run


def resume(task: Run | Analysis, engine: EngineRequest | Literal["local"] | None = None) -> None:
    """Resume a run after its last finished epoch, or compute an analysis again.

    Damaged results of a finished run are computed again.

    Args:
        task: The run or the analysis.
        engine: The engine that a run continues on, `local` for the queue of this machine; by default the engine that
            started it.

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
    start_again(task, engine)


def stop(task: Task) -> Status:
    """Stop a task's whole process group: by request, after three seconds by force.

    Finished epochs stay. A task that is neither waiting nor running does not change.

    Raises:
        UserError: The worker could not be stopped.
    """
    if task.status().state not in LIVE_STATES:
        return task.status()
    task.request_stop()
    owner = read_owner(task.folder)
    if owner is not None:
        cancel(task.folder, owner)
    is_here = owner is None or owner.host == socket.gethostname()
    for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        if not task.is_alive():
            break
        if is_here:
            _signal_group(task, number)
        deadline = time.monotonic() + (PATIENCE if is_here else PATIENCE_AT_A_CLUSTER)
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


def cancel_waiting(root: Path) -> int:
    """Stop all runs that wait in the queue of this machine, and return their number; running runs continue.

    Each gets the mark to stop before the first is stopped, the last one first, so that none starts meanwhile.
    """
    waiting = waiting_runs(root)
    for run in waiting:
        run.request_stop()
    with ThreadPoolExecutor(WRITERS) as pool:  # a disk syncs many small files together in the time of one
        return sum(status.state == "stopped" for status in pool.map(stop, reversed(waiting)))


def start_again(task: Run | Analysis, engine: EngineRequest | Literal["local"] | None = None) -> None:
    """Queue a task again, on another engine if one is named."""
    owner = read_owner(task.folder)
    if engine is None and owner is not None:
        engine = owner.request
    if isinstance(engine, EngineRequest):
        check_engine(engine)
    status = task.stored_status()
    task.clear_failure()
    if isinstance(task, Run):
        leave_place(task)
    task.write_status(Status(state="waiting", ticket=time.time(), epoch=status.epoch, epochs=status.epochs))
    launch(task, engine if isinstance(engine, EngineRequest) else None)


def launch(task: Run | Analysis, engine: EngineRequest | None = None) -> None:
    """Queue a waiting task: the dispatcher of its lane, or an engine, starts the worker.

    Raises:
        UserError: The engine does not accept the task, which has then failed.
    """
    settings = settings_now()
    if engine is not None:
        task.leave_queue()
        try:
            hand_over(task.folder, engine, settings)
        except UserError as error:
            task.write_status(task.stored_status().model_copy(
                update={"state": "failed", "finished": time.time(), "message": str(error)}))
            raise
        return
    forget_owner(task.folder)
    task.queue(settings)
    if isinstance(task, Run):
        ensure_dispatcher(task.folder.parent, task.spec().device)
    else:
        ensure_dispatcher(task.run.folder.parent, dispatch.lane_of(task.spec().kind))


def settings_now() -> dict[str, str]:
    """Return the environment variables that a task queued by this process gets."""
    return {name: os.path.abspath(value) if name in FOLDERS and value else value
            for name, value in os.environ.items() if name.startswith("UDML_") or name in dispatch.INHERITED}


def wake(root: Path) -> None:
    """Resume the queues and the wanted maps, as after a restart of the computer."""
    devices = {run.spec().device for run in list_runs(root)
               if run.stored_status().state == "waiting" and read_owner(run.folder) is None}
    for lane in sorted(devices):
        ensure_dispatcher(root, lane)
    for lane in (dispatch.ANALYSES, dispatch.RACES):
        if dispatch.head(root, lane):
            ensure_dispatcher(root, lane)
    start_maps(root)


def ensure_dispatcher(root: Path, lane: str) -> None:
    """Start the dispatcher of a lane unless it lives.

    A dispatcher that is about to end looks at the queue once more after it has released its lock, so that a task queued
    before this call is never forgotten.
    """
    with suppress(FileNotFoundError):  # the folder of runs is gone
        if dispatch.is_held(dispatch.lock_path(root, lane)):
            return
        device = "" if lane in (dispatch.ANALYSES, dispatch.RACES) else device_lock(lane).lock_file
        # -P keeps this folder's queue.py from hiding the standard library's.
        reap(subprocess.Popen([sys.executable, "-P", dispatch.__file__, str(root), lane, device], cwd=root,
                               env=os.environ | {"PYTHONPATH": python_path()}, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True))


def start_maps(root: Path) -> None:
    """Start the process that computes the maps that runs want, if none trains now; a second process ends by itself."""
    if next_map(root) is not None and not is_busy(root):
        reap(dispatch.start_worker(["map-work", str(root)], root / ".maps.log", {}))


def start_in_background(analysis: Analysis) -> subprocess.Popen[bytes]:
    """Start an analysis outside of the queue; it pauses while a run trains."""
    return dispatch.start_worker(["analyse-work", str(analysis.folder), "--background"], analysis.log_path, {})


def reap(process: subprocess.Popen[bytes]) -> None:
    """Leave no zombie behind when the process ends."""
    Thread(target=process.wait, name="udml-reaper", daemon=True).start()


def _signal_group(task: Task, number: int) -> None:
    """Signal the worker and its child processes."""
    status = task.stored_status()
    if status.pid is None:
        return
    try:
        worker = psutil.Process(status.pid)
        is_as_old = abs(worker.create_time() - status.pid_born) <= BORN_TOLERANCE
        # A clock that was set changes the start of every process.
        is_named = any(Path(word).name == task.id for word in worker.cmdline()) and "udml_core" in worker.cmdline()
        if not (is_as_old or is_named):  # another process has this number now
            return
        family = [worker, *worker.children(recursive=True)]
        if hasattr(os, "killpg") and os.getpgid(status.pid) == status.pid:
            os.killpg(status.pid, number)
            family = family[1:]  # `torchrun` gives each process a group of its own
    except (psutil.Error, ProcessLookupError, PermissionError):
        return
    for process in family:
        with suppress(psutil.Error):
            process.send_signal(number)
