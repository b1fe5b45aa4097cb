"""The worker's side of a task: it holds the lock, writes the status, and ends in a state that a person can act on."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import signal
import time
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

import psutil
import torch

from udml_core.errors import UserError
from udml_core.tasks import RESERVE_BYTES, Status, Task

HEARTBEAT = 0.5
log = logging.getLogger("udml")


class StopRequestedError(BaseException):
    """The worker was told to end; not an Exception, so that nothing on the way swallows it."""


class Reporter:
    """Writes the status, at most twice a second unless something changed that a person waits for."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._last = 0.0
        self.status = task.stored_status()

    def change(self, **values: Any) -> None:
        """Write at once."""
        now = time.time()
        if values.get("phase", self.status.phase) != self.status.phase:
            values["phase_started"] = now
        self.status = self.status.model_copy(update=values | {"heartbeat": now})
        self._task.write_status(self.status)
        self._last = time.monotonic()

    def share(self, share: float, phase: str) -> None:
        """Write now and then, and end where that is asked for."""
        if phase != self.status.phase or time.monotonic() - self._last > HEARTBEAT:
            self.heed()
            self.change(share=share, phase=phase)

    def heed(self) -> None:
        """End the work here where somebody asked for that, or removed the task: no signal reaches every worker.

        Raises:
            StopRequestedError: a stop was requested.
            UserError: the task's folder is gone.
        """
        if not self._task.has_spec():
            raise UserError(f"The folder {self._task.folder} was removed while it was worked on.")
        if self._task.stop_requested():
            _stop()


def execute(task: Task, do: Callable[[Reporter], None]) -> Status:
    """Do a task here to its end; one that is done stays so. Being stopped and its failure are written down, not raised.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", force=True)
    with task.lock().acquire(timeout=5):
        if task.stored_status().state == "done":
            return task.stored_status()
        reporter = Reporter(task)
        if task.stop_requested():
            reporter.change(state="stopped", finished=time.time(), message="Stopped.")
            return reporter.status
        previous = signal.signal(signal.SIGTERM, _stop)
        try:
            born = psutil.Process().create_time()
            reporter.change(state="waiting", pid=os.getpid(), pid_born=born, message="", phase="waiting")
            task.reserve()
            do(reporter)
            reporter.change(state="done", finished=time.time(), phase="", share=1.0)
            log.info("done")
        except StopRequestedError:
            log.info("stopped")
            reporter.change(state="stopped", finished=time.time(), message="Stopped.")
        except Exception as error:
            if not task.has_spec():
                log.error("%s was removed, so its worker ends", task.folder)
                return reporter.status.model_copy(update={"state": "failed", "message": str(error)})
            _record_failure(task, reporter, error)
        finally:
            task.release_reserve()
            signal.signal(signal.SIGTERM, previous)
        return reporter.status


def _stop(*_signal: Any) -> NoReturn:
    """End the work, once: what asks again meanwhile does not disturb the way out."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise StopRequestedError


def _record_failure(task: Task, reporter: Reporter, error: Exception) -> None:
    """A message that a person can use in the status, the trace in error.txt, also where the disk is full."""
    disk_is_full = _is_disk_full(task, error)
    task.release_reserve()
    trace = traceback.format_exc()
    if isinstance(error, UserError):
        message = str(error)
    elif disk_is_full:
        message = "The disk is full. What was finished is kept: free some space, then resume."
    elif isinstance(error, MemoryError | torch.OutOfMemoryError):
        message = "The memory did not suffice. Choose fewer or smaller images, or a smaller batch, then start again."
    else:
        message = f"{type(error).__name__}: {error}"
    try:
        log.error("%s\n%s", message, trace)
        task.write_error(trace)
    except OSError:
        pass
    reporter.change(state="failed", finished=time.time(), message=message)


def _is_disk_full(task: Task, error: Exception) -> bool:
    """By the error's number; NumPy and faiss lose it, so also by the room that is left beside the reserve."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return isinstance(error, OSError | RuntimeError) and shutil.disk_usage(task.folder).free < RESERVE_BYTES
