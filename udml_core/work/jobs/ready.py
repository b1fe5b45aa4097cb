"""Keep a worker that has loaded its libraries while a page is open that can start a run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import psutil

from udml_core.base import handover
from udml_core.work.jobs import dispatch
from udml_core.work.jobs.follow_ups import is_busy
from udml_core.work.jobs.launch import reap, settings_now

SWITCH = "UDML_READY"
"""Environment variable: with the value 0, no worker waits."""
LEAST_MEMORY = 2e9
"""Bytes of free memory from which a worker may wait, which takes about 0.5 GB."""
_started: list[subprocess.Popen[bytes]] = []


def keep_ready(root: Path) -> None:
    """Start a worker that waits for the next run, unless one waits or a run trains; it ends soon after the last call.

    Args:
        root: The folder of runs.
    """
    if os.environ.get(SWITCH, "1") == "0":
        return
    folder = dispatch.ready_folder(root)
    handover.want(folder)
    if any(worker.poll() is None for worker in _started) or handover.is_waiting(folder) or is_busy(root):
        return
    if psutil.virtual_memory().available < LEAST_MEMORY:
        return
    _started[:] = [dispatch.start_worker(["ready-work", str(root)], folder / "log.txt", settings_now())]
    reap(_started[0])
