"""What an engine says about a job, and how a job is cancelled.

No pickle is read here: submitit's results stay unread, because the run's folder holds them all.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from udml_core.base.errors import UserError
from udml_core.runs.engines.owner import Owner

SECONDS_KEPT = 2.0
"""Seconds for which an answer of Slurm is used again: pages ask for every run, and the cluster has other users."""
PATIENCE, TIME_TO_END = 20.0, 3.0
"""Seconds for an answer of Slurm, and for a job of submitit to end."""
WAITING = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"}
RUNNING = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"}
_answers: dict[str, tuple[float, float, list[tuple[str, str, str, str]] | str]] = {}
_asking = threading.Lock()


@dataclass(frozen=True)
class Job:
    """What an engine says about a job.

    Attributes:
        state: `unknown` if the engine does not answer.
        words: The answer for users.
    """

    state: Literal["waiting", "running", "ended", "unknown"]
    words: str


def job_of(folder: Path, owner: Owner) -> Job:
    """Ask the engine about the job of a run.

    Args:
        folder: The run's folder; its name is the job's name in Slurm.
        owner: The run's engine.
    """
    return _slurm_job(folder, owner) if owner.request.engine == "slurm" else _local_job(folder, owner)


def cancel(folder: Path, owner: Owner) -> None:
    """Cancel the jobs of a run, also a job whose number was lost when a process died.

    Raises:
        UserError: Slurm does not answer.
    """
    if owner.request.engine == "slurm":
        words = ["scancel", f"--user={owner.user}", f"--name={folder.name}"]
        done = _call(words)
        if isinstance(done, str):
            raise UserError(f"{folder.name} could not be cancelled in Slurm: {done.rstrip('.')}. Try again, "
                            f"or run `{' '.join(words)}`.")
        _answers.clear()
        return
    controller = _controller(folder, owner)
    if controller is not None:
        with suppress(psutil.Error):  # it may end meanwhile
            _end(controller)


def _end(controller: psutil.Process) -> None:
    """End submitit's process and its children."""
    family = [*controller.children(recursive=True), controller]
    controller.send_signal(signal.SIGINT)  # what submitit's own `cancel` sends
    _, alive = psutil.wait_procs(family, timeout=TIME_TO_END)
    for process in alive:  # a program that was started in the background of a script ignores SIGINT
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(alive, timeout=TIME_TO_END)


def _slurm_job(folder: Path, owner: Owner) -> Job:
    jobs = _slurm_jobs(owner.user, owner.submitted)
    if isinstance(jobs, str):
        return Job("unknown", f"Slurm does not answer: {jobs}")
    own = [job for job in jobs if job[3] == folder.name]
    for states, state in ((RUNNING, "running"), (WAITING, "waiting")):
        for number, code, reason, _ in own:
            if code in states:
                why = f" ({reason})" if reason not in ("None", "") else ""
                return Job(state, f"job {number} of Slurm is {code.lower()}{why}")  # type: ignore[arg-type]
    last = max(own, key=lambda job: int(job[0]), default=None)
    if last is None:
        return Job("ended", f"Slurm no longer lists job {owner.job}." if owner.job else "Slurm did not get the job.")
    return Job("ended", f"Slurm ended job {last[0]}: {last[1]}.")


def _slurm_jobs(user: str, since: float) -> list[tuple[str, str, str, str]] | str:
    """Return number, state, reason and name of each job of a user; why Slurm does not answer otherwise."""
    with _asking:
        asked_at, answered_at, answer = _answers.get(user, (0.0, 0.0, ""))
        if time.time() - answered_at > SECONDS_KEPT or asked_at < since:
            asked_at = time.time()
            printed = _call(["squeue", "--noheader", "--states=all", f"--user={user}", "--format=%A|%T|%r|%j"])
            answer = printed if isinstance(printed, str) else [
                (number, code, reason, name) for number, code, reason, name in
                (line.split("|", 3) for line in printed if line.count("|") >= 3)]
            _answers[user] = asked_at, time.time(), answer  # a slow answer is kept as long as a quick one
        return answer


def _call(words: list[str]) -> list[str] | str:
    """Return the lines that a command of Slurm prints; the last line of its error otherwise."""
    if shutil.which(words[0]) is None:
        return f"{words[0]} is not on the PATH."
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False,
                              stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{error}."
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"{words[0]} ended with code {done.returncode}."])[-1]
    return done.stdout.splitlines()


def _local_job(folder: Path, owner: Owner) -> Job:
    if owner.host != socket.gethostname():
        return Job("unknown", f"The job runs on {owner.host}, and this is {socket.gethostname()}.")
    if _controller(folder, owner) is None:
        return Job("ended", f"The job {owner.job} of submitit ended.")
    return Job("running", f"job {owner.job} of submitit is running")


def _controller(folder: Path, owner: Owner) -> psutil.Process | None:
    """Return the process of submitit that starts the worker; None if it has ended."""
    try:
        process = psutil.Process(int(owner.job))
        words = process.cmdline()
        alive = process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, ValueError):
        return None
    return process if alive and "submitit.local._local" in words and words[-1].endswith(folder.name) else None
