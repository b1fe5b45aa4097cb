"""Power cuts: what was not synced is lost, and unsynced renames did not happen."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np

from experiments.hold_fast.attempt import Hostility, count_event
from experiments.hold_fast.forked import before_operations, in_child
from experiments.hold_fast.kills import operations_of
from experiments.hold_fast.small_runs import METHODS, difference, finish, finished_epochs, planned, undisturbed
from udml_core.runs import Run, create_run
from udml_core.work.workers import train as worker

CUTS = 3
CUT = 9
"""Exit code of a child whose power was cut."""
EXPENDABLE = ("log.txt", "lock", "ballast", "error.txt")
"""Files whose loss costs nothing."""


class Disk:
    """Remembers the content that each file had when it was last synced, and the renames since their folder was."""

    def __init__(self) -> None:
        self.synced: dict[int, tuple[int, int]] = {}
        self.renames: list[tuple[Path, Path, Path | None]] = []

    def sync(self, handle: int) -> None:
        """Stand in for `os.fsync`."""
        state = os.fstat(handle)
        self.synced[state.st_ino] = (state.st_size, state.st_mtime_ns)
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        self.renames = [rename for rename in self.renames if rename[1].parent != path]

    def keep(self, folder: Path) -> None:
        """Take what a folder holds as synced."""
        for path in folder.rglob("*"):
            state = path.stat()
            self.synced[state.st_ino] = (state.st_size, state.st_mtime_ns)

    def rename(self, source: Path, target: Path) -> None:
        """Note a rename that is about to happen, and keep what it replaces."""
        kept = target.with_name(f".{target.name}.{len(self.renames)}.kept") if target.is_file() else None
        if kept is not None:
            kept.unlink(missing_ok=True)
            os.link(target, kept)
        self.renames.append((source, target, kept))

    def lost(self, folder: Path) -> list[Path]:
        """Return the files with content that never reached the disk."""
        def is_lost(path: Path) -> bool:
            state = path.stat()
            return self.synced.get(state.st_ino) != (state.st_size, state.st_mtime_ns)

        return sorted(path for path in folder.rglob("*")
                      if path.is_file() and path.name not in EXPENDABLE and is_lost(path))

    def cut_power(self, folder: Path, random: np.random.Generator | None = None) -> None:
        """Damage each lost file, and undo some of the last unsynced renames.

        Args:
            folder: The folder.
            random: Chooses the damage; without it each lost file becomes empty.
        """
        for path in self.lost(folder):
            size, kind = path.stat().st_size, "empty" if random is None else random.choice(["empty", "zeros", "half"])
            path.write_bytes({"empty": b"", "zeros": bytes(size), "half": path.read_bytes()[:size // 2]}[str(kind)])
        undone = 0 if random is None else int(random.integers(len(self.renames) + 1))
        for source, target, kept in reversed(self.renames[len(self.renames) - undone:]):
            with suppress(OSError):  # the target was moved or removed since
                target.rename(source)
                if kept is not None:
                    kept.rename(target)
        for path in folder.rglob(".*.kept"):
            path.unlink()


@contextmanager
def forgetful_disk() -> Iterator[Disk]:
    """Replace `os.fsync` and renames by a disk that remembers what was synced."""
    disk, replace = Disk(), os.replace

    def note_and_replace(source: str | Path, target: str | Path) -> None:
        disk.rename(Path(source), Path(target))
        replace(source, target)

    with mock.patch("os.fsync", disk.sync), mock.patch("os.replace", note_and_replace):
        yield disk


def cut_power(random: np.random.Generator, scratch: Path) -> str | None:
    """Cut the power several times at random file operations of one run, then let it end."""
    method = str(random.choice(list(METHODS)))
    whole, run = undisturbed(method), create_run(planned(method), scratch)
    epochs = 0
    for _ in range(CUTS):
        number, chance = int(random.integers(1, operations_of(method) + 1)), random.spawn(1)[0]
        if in_child(partial(work_until_cut, run, number, chance)) == CUT:
            count_event()
        finished = finished_epochs(run)
        if finished < epochs:
            return f"{method}: {epochs} epochs were finished, {finished} are left"
        epochs = finished
        run.clear_failure()
    finish(run)
    return difference(run, whole)


def work_until_cut(run: Run, number: int, random: np.random.Generator) -> None:
    """Work until the power is cut before a file operation below the run's folder; this belongs into a child."""
    with forgetful_disk() as disk:
        disk.keep(run.folder)

        def cut(count: int, _event: str) -> None:
            if count == number:
                disk.cut_power(run.folder, random)
                os._exit(CUT)

        before_operations(run.folder, cut)
        worker.work(run)


PART = Hostility("power-cuts", cut_power, weight=4, goal=202)
