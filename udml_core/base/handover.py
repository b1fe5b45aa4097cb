"""Hand a task to a process that has loaded its libraries already and waits.

Such a process holds the lock `NAME.lock` in a folder while it lives, and offers itself in `NAME.json`. A dispatcher
that removes the offer has the process for itself, and names the task in `NAME.task`. The process waits only while a
page wants it, which touches the file `wanted` from time to time.

Needs only the standard library, locks and plain files, as the dispatcher does.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from udml_core.base import locks
from udml_core.base.plain_files import read_object, write_text

WANTED = "wanted"
ATTENTION = 60.0
"""Seconds for which a waiting process is wanted after a page has asked for it."""
POLL = 0.05
DECIDED = 5.0
"""Seconds that a dispatcher may take from removing an offer to naming the task."""
OUTLIVED = 0.1
"""Seconds between two looks at whether the process still lives."""


def want(folder: Path) -> None:
    """Note that a page may start a task soon."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / WANTED).touch()


def is_wanted(folder: Path) -> bool:
    """Return whether a page has asked for a waiting process lately."""
    with suppress(OSError):
        return abs(time.time() - (folder / WANTED).stat().st_mtime) < ATTENTION
    return False


def is_waiting(folder: Path) -> bool:
    """Return whether a process waits, or loads its libraries for it; remove the offers of processes that died."""
    living = [offer for offer in folder.glob("*.json") if _lives(offer) or not _take(offer)]
    return bool(living)


@contextmanager
def offered(folder: Path, settings: Mapping[str, str]) -> Iterator[Path]:
    """Offer this process; remove what it wrote when it ends.

    Args:
        folder: The folder of offers.
        settings: The environment that its tasks must have.

    Yields:
        The file of the offer.
    """
    folder.mkdir(parents=True, exist_ok=True)
    offer = folder / f"{os.getpid()}.json"
    try:
        with locks.held(offer.with_suffix(".lock"), 1.0):
            write_text(offer, json.dumps(dict(settings)))
            yield offer
    finally:
        for ending in (".json", ".task", ".lock"):
            offer.with_suffix(ending).unlink(missing_ok=True)


def received(offer: Path) -> Path | None:
    """Wait for a task; return None once no page wants the process, or its folder is gone."""
    while offer.exists():
        if not is_wanted(offer.parent) and _take(offer):
            return None
        time.sleep(POLL)
    deadline = time.monotonic() + DECIDED
    while time.monotonic() < deadline:
        with suppress(OSError):
            return Path(offer.with_suffix(".task").read_text(encoding="utf-8"))
        time.sleep(POLL)
    return None


def hand_over(folder: Path, task: Path, settings: Mapping[str, str]) -> bool:
    """Give a task to a waiting process and wait until the process ends; return whether there was one.

    Args:
        folder: The folder of offers.
        task: The folder of the task.
        settings: The environment that the task was queued with; only a process that has the same may take it.
    """
    for offer in folder.glob("*.json"):
        if read_object(offer) != dict(settings) or not _lives(offer) or not _take(offer):
            continue
        write_text(offer.with_suffix(".task"), str(task))
        while _lives(offer):
            time.sleep(OUTLIVED)
        return True
    return False


def _lives(offer: Path) -> bool:
    try:
        return locks.is_held(offer.with_suffix(".lock"))
    except OSError:
        return False


def _take(offer: Path) -> bool:
    """Remove an offer; only one process can."""
    try:
        offer.unlink()
    except OSError:
        return False
    return True
