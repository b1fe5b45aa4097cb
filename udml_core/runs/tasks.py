"""Background tasks.

A task is a folder with its status, its worker's lock, requests to stop, and the trace of a failure.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from filelock import FileLock
from pydantic import BaseModel, ConfigDict

from udml_core.base import locks, paths
from udml_core.base.errors import UserError
from udml_core.base.files import Record, read_record, read_regular, replace_text
from udml_core.data.dataset import step_name
from udml_core.runs.engines import Owner, job_of, read_owner

State = Literal["waiting", "running", "done", "failed", "stopped", "interrupted"]
LIVE_STATES: tuple[State, ...] = ("waiting", "running")
ENVIRONMENT = "environment.json"
"""Settings of the process that queued a task. A waiting task without this file was never queued."""
STARTING_SECONDS = 120.0
"""Seconds that a new task has until it is queued, or until a worker takes its lock and writes its process number."""
RESERVE_BYTES = 65_536
TRAINING = "training"
"""Phase of the epochs of a run."""
SHARE_TO_GO_BY = 0.03
"""Smallest finished share of a phase from which the remaining time is estimated."""
ADVICE: dict[State, str] = {
    "waiting": "It starts as soon as its device is free.",
    "running": "Wait until it has finished.",
    "done": "",
    "failed": "Read its error message, then resume it or start a new one.",
    "stopped": "Resume it to continue after its last finished step.",
    "interrupted": "Its worker died. Resume it to continue after its last finished step.",
}
"""The user's next step in each state."""
class Status(BaseModel):
    """The progress of a task.

    Attributes:
        state: The state of the task.
        phase: Name of the current phase.
        phase_started: Start of the phase in seconds since 1970.
        share: Finished share of the phase, 0 to 1.
        share_started: The same at the first report of the phase, which may follow after its first images.
        epoch: Number of the last finished epoch.
        epochs: Number of planned epochs.
        ticket: Time of submission in seconds since 1970; tasks start in this order.
        started: Start of the work in seconds since 1970.
        finished: End of the work in seconds since 1970.
        heartbeat: Time of the last write in seconds since 1970.
        epoch_seconds: Duration of the last epoch.
        pid: Process number of the worker.
        pid_born: Start of that process in seconds since 1970, because the system reuses process numbers.
        message: Reason of a failure or a stop.
        searchable: Whether the embeddings and the index of a run are stored, also while it is being evaluated.
        paused: Whether the worker rests between two steps of the training until a user continues it.
        planned: Bytes of memory that each part of a run was expected to need, before the first one began.
        peaks: Largest resident memory in bytes in each phase of a run that has ended, mapped files included.
        seconds: Time of each phase that has ended.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    state: State = "waiting"
    phase: str = ""
    phase_started: float = 0.0
    share: float = 0.0
    share_started: float = 0.0
    epoch: int = 0
    epochs: int = 0
    ticket: float = 0.0
    started: float | None = None
    finished: float | None = None
    heartbeat: float = 0.0
    epoch_seconds: float | None = None
    pid: int | None = None
    pid_born: float = 0.0
    message: str = ""
    searchable: bool = False
    paused: bool = False
    planned: dict[str, float] = {}
    peaks: dict[str, float] = {}
    seconds: dict[str, float] = {}

    @property
    def is_paused(self) -> bool:
        """Whether a run rests in the middle of its training."""
        return self.state == "running" and self.paused

    @property
    def can_search(self) -> bool:
        """Whether a run can be searched, mapped and exported."""
        return self.state == "done" or self.searchable

    @property
    def seconds_left(self) -> float | None:
        """Remaining seconds of training, or of the phase before or after it.

        None before an estimate is possible, and during the evaluation, whose steps take unequal times.
        """
        if self.state != "running" or step_name(self.phase) == "evaluation":
            return None
        elapsed = self.heartbeat - self.phase_started
        done = self.share - self.share_started
        is_known = done > SHARE_TO_GO_BY and elapsed >= 0  # the clock can have gone back
        if self.phase != TRAINING:
            return elapsed * (1 - self.share) / done if is_known else None
        epoch = self.epoch_seconds or (elapsed / done if is_known else None)
        return None if epoch is None else max(0.0, (self.epochs - self.epoch - self.share) * epoch)


@dataclass(frozen=True)
class Task:
    """The folder of a task that a worker executes in its own process.

    Attributes:
        folder: The folder; its name is the id.
    """

    folder: Path

    @property
    def id(self) -> str:
        return self.folder.name

    def has_spec(self) -> bool:
        """Return whether the folder still describes the task.

        A worker ends when a user has removed its task.
        """
        return (self.folder / "spec.json").exists()

    def read_spec(self, model: type[Record], title: str) -> Record:
        """Read the spec as a record; `title` names the task in an error.

        Raises:
            UserError: The file is missing or damaged.
        """
        path = self.folder / "spec.json"
        try:
            return read_record(model, path)
        except (OSError, ValueError) as error:
            raise UserError(f"{path} must describe {title}, but could not be read: {error}") from error

    @property
    def is_example(self) -> bool:
        """Whether the task belongs to a run that came with the app and can only be read."""
        return paths.EXAMPLES in self.folder.parents

    def check_writable(self) -> None:
        """Check that the folder may change.

        Raises:
            UserError: The task belongs to an example.
        """
        if self.is_example:
            raise UserError(f"{self.id} belongs to an example, which cannot be changed. Start a new run with its "
                            "settings, or compute analyses in your own copy.")

    # Status

    def stored_status(self) -> Status:
        """Return the last written status, without checking that a worker is alive."""
        try:
            return read_record(Status, self.folder / "status.json")
        except (OSError, ValueError):
            return Status(state="interrupted", message="The status file could not be read.")

    def status(self) -> Status:
        """Return the status.

        The state is `interrupted` if the task should be in progress but its worker is dead. A task in a queue has no
        worker yet.
        """
        status = self.stored_status()
        owner = read_owner(self.folder) if status.state in LIVE_STATES else None
        if owner is not None:
            return self._status_at(owner)
        starting = abs(time.time() - status.ticket) < STARTING_SECONDS  # the clock can have gone back since
        waits = status.state == "waiting" and status.pid is None and (starting or self.is_queued())
        if status.state in LIVE_STATES and not waits and not self.is_alive():
            after = self.stored_status()
            if after.state != status.state:  # the worker ended between the two reads
                return after
            return status.model_copy(update={"state": "interrupted"})
        return status

    def _status_at(self, owner: Owner) -> Status:
        """Return the status of a task that an engine works on; the engine is asked while no worker lives."""
        is_alive, status = self.is_alive(), self.stored_status()
        if is_alive or status.state not in LIVE_STATES:
            return status
        job = job_of(self.folder, owner)
        if job.state == "waiting" or (not owner.job and abs(time.time() - owner.submitted) < STARTING_SECONDS):
            return status.model_copy(update={"state": "waiting", "phase": job.words, "pid": None})
        if job.state == "ended":
            after = self.stored_status()  # the worker may have ended between the two reads
            return after if after.state not in LIVE_STATES else after.model_copy(
                update={"state": "interrupted", "message": job.words})
        return status.model_copy(update={"phase": job.words}) if status.state == "waiting" else status

    def write_status(self, status: Status) -> None:
        self.check_writable()
        replace_text(self.folder / "status.json", status.model_dump_json())

    def lock(self) -> FileLock:
        """Return the lock that the worker holds while it lives."""
        self.check_writable()
        return FileLock(self.folder / "lock")

    def is_alive(self) -> bool:
        """Return whether a worker holds the lock. A process number alone proves nothing."""
        return self.is_held_by_worker() or _is_held(self._supervisor_path)

    def is_held_by_worker(self) -> bool:
        """Return whether a worker holds the task's own lock."""
        return _is_held(self.folder / "lock")

    def supervisor_lock(self) -> FileLock:
        """Return the lock of the process that starts several workers together, and starts them again if one dies."""
        self.check_writable()
        return FileLock(self._supervisor_path)

    @property
    def _supervisor_path(self) -> Path:
        return self.folder / "supervisor.lock"

    def has_supervisor(self) -> bool:
        """Return whether an engine or `torchrun` started the worker, and may start it again after a signal."""
        return "TORCHELASTIC_RUN_ID" in os.environ or read_owner(self.folder) is not None

    # Queue

    def queue(self, environment: dict[str, str]) -> None:
        """Mark the task as one that a dispatcher starts with these environment variables."""
        replace_text(self.folder / ENVIRONMENT, json.dumps(environment))

    def leave_queue(self) -> None:
        """Take the task out of the dispatchers' queue."""
        (self.folder / ENVIRONMENT).unlink(missing_ok=True)

    def is_queued(self) -> bool:
        return (self.folder / ENVIRONMENT).exists()

    # Log and error

    @property
    def log_path(self) -> Path:
        return self.folder / "log.txt"

    def log_tail(self, lines: int = 20) -> str:
        """Return the last lines of the worker's log."""
        return _tail(self.log_path, lines)

    def error(self) -> str:
        """Return the trace of a failure; empty without a failure."""
        return _tail(self.folder / "error.txt", 10_000)

    def write_error(self, trace: str) -> None:
        (self.folder / "error.txt").write_text(trace, encoding="utf-8")

    # Stop and resume

    def clear_failure(self) -> None:
        """Remove the trace of a failure and the requests to stop and to pause, before a resume."""
        self.check_writable()
        for name in ("error.txt", "stop", "pause"):
            (self.folder / name).unlink(missing_ok=True)

    def request_stop(self) -> None:
        self.check_writable()
        (self.folder / "stop").touch()

    def stop_requested(self) -> bool:
        return (self.folder / "stop").exists()

    def request_pause(self) -> None:
        """Ask the worker to rest after its current step, with all that it holds in memory, until `end_pause`."""
        self.check_writable()
        (self.folder / "pause").touch()

    def end_pause(self) -> None:
        self.check_writable()
        (self.folder / "pause").unlink(missing_ok=True)

    def pause_requested(self) -> bool:
        return (self.folder / "pause").exists()

    def reserve(self) -> None:
        """Occupy some bytes, so that the error message still fits when the disk is full."""
        (self.folder / "ballast").write_bytes(bytes(RESERVE_BYTES))

    def release_reserve(self) -> None:
        (self.folder / "ballast").unlink(missing_ok=True)


def _is_held(lock: Path) -> bool:
    try:
        return locks.is_held(lock)
    except OSError:
        return False


def _tail(path: Path, lines: int) -> str:
    try:
        return "\n".join(read_regular(path).decode("utf-8", errors="replace").splitlines()[-lines:])
    except OSError:
        return ""
