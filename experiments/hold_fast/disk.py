"""A full disk, a folder that becomes read-only, files of limited size, and a clock that jumps in Python or below it."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np

from experiments.hold_fast.attempt import Hostility, count_event
from experiments.hold_fast.forked import before_operations, in_child
from experiments.hold_fast.kills import operations_of
from experiments.hold_fast.small_runs import METHODS, difference, finish, finished_epochs, planned, undisturbed
from udml_core.runs import Run, create_run
from udml_core.work.workers import train as worker

SPELLS = 3
"""Spells of trouble in one attempt."""
FAKETIME = "/usr/lib/*/faketime/libfaketimeMT.so.1"
JUMP = 0.3
"""Seconds between two jumps of the clock of a whole process."""


def fail_writes(random: np.random.Generator, run: Run, operations: int, number: int) -> None:
    """Let writes of this process fail from a random one on, for ever or for a while."""
    first = int(random.integers(1, operations + 1))
    last = first + (int(random.integers(1, 4)) if random.random() < 0.5 else 10**9)

    def fail(count: int, _event: str) -> None:
        if first <= count < last:
            raise OSError(number, os.strerror(number), str(run.folder))

    before_operations(run.folder, fail, only_writes=True)


def fill_disk(random: np.random.Generator, run: Run, operations: int) -> None:
    """Let writes fail as on a full disk."""
    fail_writes(random, run, operations, errno.ENOSPC)


def lock_folder(random: np.random.Generator, run: Run, operations: int) -> None:
    """Let writes fail as in a folder that cannot be written, which root would not notice."""
    fail_writes(random, run, operations, int(random.choice([errno.EROFS, errno.EACCES])))


def limit_files(random: np.random.Generator, _run: Run, _operations: int) -> None:
    """Let the system refuse to write more than some bytes into any file, in the middle of a write."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(2 ** random.uniform(9, 18)), resource.RLIM_INFINITY))


def move_clock(random: np.random.Generator, _run: Run, _operations: int) -> None:
    """Let the clock jump at random calls, by up to days in both directions."""
    clock, offset = time.time, [0.0]

    def now() -> float:
        if random.random() < 0.2:
            offset[0] += float(random.choice([-1, 1]) * 10 ** random.uniform(0, 5.5))
        return clock() + offset[0]

    mock.patch("time.time", now).start()


def make_part(name: str, trouble: Callable[[np.random.Generator, Run, int], None], weight: float) -> Hostility:
    """Return the part that works through some spells of trouble, then without."""
    def try_once(random: np.random.Generator, scratch: Path) -> str | None:
        method = str(random.choice(list(METHODS)))
        whole, run = undisturbed(method), create_run(planned(method), scratch)
        epochs = 0
        for _ in range(SPELLS):
            spell = np.random.default_rng(random.integers(2**31))

            def work_in_trouble(spell: np.random.Generator = spell) -> None:
                trouble(spell, run, operations_of(method))
                worker.work(run)

            in_child(work_in_trouble)
            count_event()
            finished, status = finished_epochs(run), run.status()
            if finished < epochs:
                return f"{method}: {epochs} epochs were finished, {finished} are left"
            if status.state == "failed" and "Error" in status.message:
                return f"{method}: not a message for a user: {status.message}; {run.error()}"
            epochs = finished
        finish(run)
        return difference(run, whole)

    return Hostility(name, try_once, weight=weight)


def fake_clock(random: np.random.Generator, scratch: Path) -> str | None:
    """Work in a process whose every clock but the monotonic one jumps by days, as the library faketime lets it."""
    libraries = sorted(Path("/").glob(FAKETIME[1:]))
    if not libraries:
        return "install the package faketime"
    method, clock = str(random.choice(list(METHODS))), scratch / "clock"
    whole, run = undisturbed(method), create_run(planned(method), scratch / "runs")
    clock.write_text("+0", encoding="utf-8")
    fake = {"LD_PRELOAD": str(libraries[0]), "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    worker = subprocess.Popen([sys.executable, "-m", "udml_core", "work", str(run.folder)], env=os.environ | fake,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while worker.poll() is None:
        count_event()
        text = f"{random.choice([-1, 1]) * 10 ** random.uniform(0, 5.5):+.0f}"
        clock.with_suffix(".part").write_text(text, encoding="utf-8")
        clock.with_suffix(".part").rename(clock)
        time.sleep(JUMP)
    return difference(run, whole)


PARTS = (make_part("full-disk", fill_disk, 1), make_part("read-only", lock_folder, 1),
         make_part("file-limit", limit_files, 1), make_part("clock", move_clock, 1),
         Hostility("faketime", fake_clock, on_request=True, goal=600))
