"""The worker's side of a task: lock, status, stop requests and readable failures."""

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

from udml_core.base.errors import UserError
from udml_core.base.peak_memory import forget_peak, peak_memory
from udml_core.data.dataset import Report, step_name
from udml_core.methods.shared.distributed import is_shared, will_restart
from udml_core.runs.tasks import RESERVE_BYTES, TRAINING, Status, Task

HEARTBEAT = 0.5
PAUSE_LOOKS = 0.1
"""Seconds between two looks at whether a pause has ended or a training is to rest."""
log = logging.getLogger("udml")


class StopRequestedError(BaseException):
    """A request to stop; not an `Exception`, so that no handler in between catches it."""


class Reporter:
    """Writer of the status, at most twice a second while only the share changes.

    Attributes:
        status: The last written status.
    """

    def __init__(self, task: Task, follow: Report = lambda _share, _phase: None) -> None:
        """Write the status of a task; `follow` receives the progress too."""
        self._task = task
        self._follow = follow
        self._last = self._looked = 0.0
        self._rested = 0.0
        self._measures_memory = False
        self.status = task.stored_status()

    def measure_memory(self) -> None:
        """Keep the largest memory of each phase from now on; of tasks within a task only the inner one may."""
        self._measures_memory = True
        forget_peak()

    def change(self, **values: Any) -> None:
        """Update fields of the status and write it at once."""
        now = time.time()
        if step_name(values.get("phase", self.status.phase)) != step_name(self.status.phase):
            values |= {"phase_started": now, "share_started": values.get("share", self.status.share)}
            values |= {"peaks": self._peaks()} if self._measures_memory else {}
            values = {"seconds": self._seconds(now)} | values
        self.status = self.status.model_copy(update=values | {"heartbeat": now})
        self._task.write_status(self.status)
        self._last = time.monotonic()

    def _seconds(self, now: float) -> dict[str, float]:
        """Return the time of each phase with that of the phase that ends now."""
        phase, seconds = step_name(self.status.phase), self.status.seconds
        passed = now - self.status.phase_started
        return seconds | {phase: seconds.get(phase, 0.0) + passed} if phase and passed >= 0 else seconds

    def _peaks(self) -> dict[str, float]:
        """Return the largest memory of each phase with that of the phase that ends now, and begin the next."""
        phase, peaks = step_name(self.status.phase), self.status.peaks
        peak = max(peaks.get(phase, 0.0), peak_memory())
        forget_peak()
        return peaks | {phase: peak}

    def share(self, share: float, phase: str) -> None:
        """Report the finished share of a phase; rest or stop if requested.

        Raises:
            StopRequestedError: A stop was requested.
            UserError: The task's folder was removed.
        """
        self._follow(share, phase)
        if step_name(phase) != step_name(self.status.phase) or time.monotonic() - self._last > HEARTBEAT:
            self.stop_if_requested()
            self.change(share=share, phase=phase)
        if phase == TRAINING and time.monotonic() - self._looked > PAUSE_LOOKS:
            self._looked = time.monotonic()
            self.rest_if_requested(share)

    def clock(self) -> float:
        """Return the time in seconds that passes while the training does not rest; only differences have a meaning."""
        return time.monotonic() - self._rested

    def rest_if_requested(self, share: float = 0.0) -> None:
        """Rest while a user pauses the training: the worker keeps its place in the epoch, its memory and its device.

        Args:
            share: The finished share of the epoch.

        Raises:
            StopRequestedError: A stop was requested meanwhile.
            UserError: The task's folder was removed meanwhile.
        """
        if not self._task.pause_requested():
            return
        began = time.monotonic()
        self.change(share=share, paused=True)
        while self._task.pause_requested():
            self.stop_if_requested()
            time.sleep(PAUSE_LOOKS)
        rested = time.monotonic() - began
        self._rested += rested
        # Times that are expected from the time so far do not count the rest.
        self.change(paused=False, phase_started=self.status.phase_started + rested)

    def stopped(self) -> None:
        """Note that the work was stopped."""
        self.change(state="stopped", finished=time.time(), message="Stopped.")

    def stop_if_requested(self) -> None:
        """End the work if a user has requested a stop or removed the task.

        Signals do not reach every worker.

        Raises:
            StopRequestedError: A stop was requested.
            UserError: The task's folder was removed.
        """
        if not self._task.has_spec():
            raise UserError(f"The folder {self._task.folder} was removed during the work.")
        if self._task.stop_requested():
            _stop()


def execute(task: Task, work: Callable[[Reporter], None], follow: Report = lambda _share, _phase: None) -> Status:
    """Execute a task in this process, unless it is done.

    A stop or a failure is recorded in the status, not raised.

    Args:
        task: The task.
        work: The work; it reports its progress to the given reporter.
        follow: Receives the progress too.

    Returns:
        The final status.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", force=True)
    with task.lock().acquire(timeout=5):
        if not task.has_spec():  # removed before this worker began; the lock has made its folder again
            log.error("%s was removed; its worker ends", task.folder)
            return Status(state="failed", message=f"{task.folder.name} was removed.")
        if task.stored_status().state == "done":
            return task.stored_status()
        reporter = Reporter(task, follow)
        if task.stop_requested():
            reporter.stopped()
            return reporter.status
        previous = signal.signal(signal.SIGTERM, _stop)
        try:
            starter = psutil.Process(os.getppid() if is_shared() else os.getpid())  # what a stop signals
            reporter.change(state="waiting", pid=starter.pid, pid_born=starter.create_time(), message="",
                            phase="waiting", paused=False)
            task.reserve()
            work(reporter)
            reporter.change(state="done", finished=time.time(), phase="", share=1.0)
            log.info("done")
        except StopRequestedError:
            if task.has_supervisor() and not task.stop_requested():
                log.info("ended by a signal; the run can be started again")
                return reporter.status
            log.info("stopped")
            reporter.stopped()
        except Exception as error:
            if will_restart() and not isinstance(error, UserError):
                raise  # another process may have died, and all are started again
            if not task.has_spec():
                log.error("%s was removed; its worker ends", task.folder)
                return reporter.status.model_copy(update={"state": "failed", "message": str(error)})
            if task.stop_requested():  # a stop in the middle of foreign code may come out as an error of that code
                log.info("stopped", exc_info=error)
                reporter.stopped()
            else:
                _record_failure(task, reporter, error)
        finally:
            task.release_reserve()
            signal.signal(signal.SIGTERM, previous)
        return reporter.status


def _stop(*_signal: Any) -> NoReturn:
    """End the work, and ignore further signals until it has ended."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise StopRequestedError


def _record_failure(task: Task, reporter: Reporter, error: Exception) -> None:
    """Write a message to the status and the trace to error.txt, even on a full disk."""
    disk_is_full = _is_disk_full(task, error)
    task.release_reserve()
    trace = traceback.format_exc()
    if isinstance(error, UserError):
        message = str(error)
    elif disk_is_full:
        message = "The disk is full. Finished epochs are kept. Free some space, then resume."
    elif isinstance(error, MemoryError | torch.OutOfMemoryError):
        message = "Out of memory. Use fewer or smaller images or a smaller batch, then start a new run."
    elif isinstance(error, OSError) and error.errno is not None:
        message = (f"The system refused to read or write {error.filename or 'a file'}: {error.strerror}. Finished "
                   "epochs are kept. Allow it, then resume.")
    else:
        message = f"{type(error).__name__}: {error}"
    try:
        log.error("%s\n%s", message, trace)
        task.write_error(trace)
    except OSError:
        pass
    reporter.change(state="failed", finished=time.time(), message=message)


def _is_disk_full(task: Task, error: Exception) -> bool:
    """Return whether a full disk caused an error.

    NumPy and faiss lose the number of the error, so the remaining space decides as well.
    """
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return isinstance(error, OSError | RuntimeError) and shutil.disk_usage(task.folder).free < RESERVE_BYTES
