"""Execute one run in several processes that share every batch.

This process becomes torchrun's elastic agent. If one process dies, for example because the system ran out of memory,
the agent ends the others and starts all of them again; they continue after the last finished epoch. The first process
holds the run's lock and writes its files, as in a run of one process.
"""

from __future__ import annotations

import os
import time

import psutil
from filelock import Timeout

from udml_core.base.errors import UserError
from udml_core.runs import Run
from udml_core.runs.tasks import ADVICE, LIVE_STATES, Status

RESTARTS = 3


def work_together(run: Run) -> Status:
    """Execute a run in the processes of its spec.

    A failure is recorded in the status, not raised.

    Raises:
        UserError: A worker is already working on the run.
    """
    # torchrun's modules take a second to load, and only runs of several processes need them.
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import main as run_agent

    processes = run.spec().processes
    try:
        with run.supervisor_lock().acquire(timeout=0):
            if run.is_held_by_worker():
                raise Timeout(str(run.folder / "lock"))
            _begin(run)
            try:
                run_agent(["--standalone", "--nproc-per-node", str(processes), "--max-restarts", str(RESTARTS),
                           "-m", "udml_core", "work", str(run.folder)])
            except SignalException:  # a stop, or the end of the engine's job
                pass
            except ChildFailedError as error:
                _record_failure(run, error)
    except Timeout:
        raise UserError(f"{run.id} is already {run.status().state}. {ADVICE[run.status().state]}") from None
    return run.stored_status()


def _begin(run: Run) -> None:
    """Note this process as the one to signal; a restarted process ends if the run is no longer in progress."""
    process = psutil.Process(os.getpid())
    run.write_status(run.stored_status().model_copy(update={
        "state": "waiting", "pid": process.pid, "pid_born": process.create_time(), "message": "",
        "phase": "starting the processes", "phase_started": time.time(), "heartbeat": time.time(), "finished": None}))


def _record_failure(run: Run, error: Exception) -> None:
    """Say that the processes died again and again, unless the first process recorded why the run ended."""
    status = run.stored_status()
    if status.state in LIVE_STATES:
        run.write_error(str(error))
        run.write_status(status.model_copy(update={
            "state": "failed", "finished": time.time(), "phase": "",
            "message": f"One of the {run.spec().processes} processes died {RESTARTS + 1} times. Read the log; if the "
                       "memory was too small, use fewer processes or a smaller batch."}))
