"""Work in the background is a folder: where it stands, who is at it, how it is stopped, why it failed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict

from udml_core.files import replace_text

State = Literal["waiting", "running", "done", "failed", "stopped", "interrupted"]
LIVE_STATES: tuple[State, ...] = ("waiting", "running")
STARTING_SECONDS = 120.0
"""How long a submitted worker may take until it holds its lock and has written its process number."""
RESERVE_BYTES = 65_536
SHARE_TO_GO_BY = 0.03
"""The share of a phase from which its time left is told."""
ADVICE: dict[State, str] = {
    "waiting": "It waits for its turn.",
    "running": "It is being worked on.",
    "done": "",
    "failed": "See its message, then resume it or start another.",
    "stopped": "Resume it to go on behind what it finished.",
    "interrupted": "Its worker died. Resume it to go on behind what it finished.",
}
"""What a person can do in each state."""


class Status(BaseModel):
    """Where a task stands.

    share: of the phase that is going on, 0 to 1. ticket: its place in the order of arrival. pid, pid_born: its worker's
    process number and when that process began, so that a number that was given out again is told apart.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    state: State = "waiting"
    phase: str = ""
    phase_started: float = 0.0
    share: float = 0.0
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

    @property
    def seconds_left(self) -> float | None:
        """Time left of the training, or of the phase before or after it; None until there is something to go by."""
        if self.state != "running":
            return None
        gone = self.heartbeat - self.phase_started
        if self.phase != "training":
            return gone * (1 - self.share) / self.share if self.share > SHARE_TO_GO_BY else None
        epoch = self.epoch_seconds or (gone / self.share if self.share > SHARE_TO_GO_BY else None)
        return None if epoch is None else max(0.0, (self.epochs - self.epoch - self.share) * epoch)


@dataclass(frozen=True)
class Task:
    """The folder of something that a worker does in a process of its own."""

    folder: Path

    @property
    def id(self) -> str:
        return self.folder.name

    def has_spec(self) -> bool:
        """Whether it still says what is to be done; its worker ends where somebody removed it."""
        return (self.folder / "spec.json").exists()

    # Where it stands

    def stored_status(self) -> Status:
        """The status as last written, whether or not anybody is alive to change it."""
        try:
            return Status.model_validate_json((self.folder / "status.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return Status(state="interrupted", message="The status file could not be read.")

    def status(self) -> Status:
        """The status, `interrupted` where the worker that should be working is dead."""
        status = self.stored_status()
        if status.state in LIVE_STATES and not self.is_alive():
            starting = status.pid is None and time.time() - status.ticket < STARTING_SECONDS
            if not starting:
                after = self.stored_status()
                if after.state != status.state:  # it ended between the two looks
                    return after
                return status.model_copy(update={"state": "interrupted"})
        return status

    def write_status(self, status: Status) -> None:
        replace_text(self.folder / "status.json", status.model_dump_json())

    def lock(self) -> FileLock:
        """Held by the worker while it lives."""
        return FileLock(self.folder / "lock")

    def is_alive(self) -> bool:
        """Whether a worker holds the lock; never judged by a process number."""
        if not self.folder.is_dir():  # taking the lock would make it
            return False
        try:
            with self.lock().acquire(timeout=0.05, poll_interval=0.01):
                return False
        except Timeout:
            return True
        except OSError:
            return False

    # What it says

    @property
    def log_path(self) -> Path:
        return self.folder / "log.txt"

    def log_tail(self, lines: int = 20) -> str:
        return _tail(self.log_path, lines)

    def error(self) -> str:
        """The trace of a failure, or nothing."""
        return _tail(self.folder / "error.txt", 10_000)

    def write_error(self, trace: str) -> None:
        (self.folder / "error.txt").write_text(trace, encoding="utf-8")

    # Ending it and going on

    def clear_failure(self) -> None:
        """Forget what ended it before, on the way to going on with it."""
        (self.folder / "error.txt").unlink(missing_ok=True)
        (self.folder / "stop").unlink(missing_ok=True)

    def request_stop(self) -> None:
        (self.folder / "stop").touch()

    def stop_requested(self) -> bool:
        return (self.folder / "stop").exists()

    def reserve(self) -> None:
        """Keep a little room, so that a full disk leaves space for the message."""
        (self.folder / "ballast").write_bytes(bytes(RESERVE_BYTES))

    def release_reserve(self) -> None:
        (self.folder / "ballast").unlink(missing_ok=True)


def _tail(path: Path, lines: int) -> str:
    try:
        return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
    except OSError:
        return ""
