"""A worker that loads its libraries before there is a run, so that a training begins at the click.

It waits while a page that can start a run is open, and costs memory but no computing time meanwhile.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from udml_core.base import handover

LIBRARIES = ("udml_core.work.workers.train", "udml_core.methods.rpml", "udml_core.methods.shared.epoch_loop",
             "udml_core.numerics.second_opinion", "scipy.sparse", "sklearn.cluster")
"""What a training imports before its first epoch and its results, also where it imports late."""
began: float | None = None
"""When this process got its run; None in a process that was started for one."""


def wait_and_work(folder: Path, settings: dict[str, str], work: Callable[[Path], None]) -> None:
    """Load the libraries, wait for a run and execute it; end without one once no page wants this process.

    Args:
        folder: The folder of offers.
        settings: The environment that the run must have.
        work: Executes the run in a folder.
    """
    global began
    with handover.offered(folder, settings) as offer:
        for name in LIBRARIES:
            with suppress(Exception):  # the run says what is missing, if it needs it
                importlib.import_module(name)
        task = handover.received(offer)
        if task is None:
            return
        began = time.time()
        _write_to(task / "log.txt")
        work(task)


def _write_to(log_path: Path) -> None:
    """Send what this process prints to the log of the run."""
    with log_path.open("ab") as log:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(log.fileno(), stream.fileno())
