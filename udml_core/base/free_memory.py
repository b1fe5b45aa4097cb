"""The memory that a new process can use: what the machine has left, within the limits of control groups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

import psutil

GROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
FILES = {2: ("memory.max", "memory.current"), 1: ("memory.limit_in_bytes", "memory.usage_in_bytes")}
"""The files of a group's limit and use, by the version of control groups."""


def free_memory() -> float:
    """Return the bytes that this machine, container or job has left; cached files count as free."""
    left = float(psutil.virtual_memory().available)
    for folder, version in _groups():
        limit, used = (folder / name for name in FILES[version])
        with suppress(OSError, ValueError):  # no such group is visible in a container, or "max", which is no limit
            left = min(left, int(limit.read_text()) - int(used.read_text()) + _cached(folder))
    return max(0.0, left)


def _groups() -> Iterator[tuple[Path, int]]:
    """Yield the folder of each control group that bounds this process, and its version."""
    try:
        lines = OWN.read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        root = GROUPS / controllers
        for group in (PurePosixPath(path), *PurePosixPath(path).parents):
            yield root / group.relative_to("/"), 1 if controllers else 2


def _cached(folder: Path) -> int:
    """Return the bytes of cached files of a group, which the system gives back when memory is needed."""
    counts = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    return sum(int(counts.get(name, 0)) for name in ("inactive_file", "active_file"))
