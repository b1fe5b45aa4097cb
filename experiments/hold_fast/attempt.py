"""What a part of the campaign is, and what one attempt at it needs."""

from __future__ import annotations

import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import numpy as np


@dataclass(frozen=True)
class Hostility:
    """One kind of hostility.

    Attributes:
        name: Name in the table and on the command line.
        try_once: Makes one attempt with a random generator and an empty scratch folder, which is removed afterwards.
            Returns None if the app held, and otherwise what broke. An exception counts as broken.
        batch: Attempts in one turn; many for attempts of milliseconds, one for attempts of seconds.
        weight: Share of the time, relative to other parts.
        limit: Seconds after which an attempt counts as broken, because something hangs.
        on_request: Whether only `--part` chooses it.
        seconds: Usual time of an attempt, which is not begun with less time left.
        goal: Hostile events after which `--goals` ends the part.
    """

    name: str
    try_once: Callable[[np.random.Generator, Path], str | None]
    batch: int = 1
    weight: float = 1.0
    limit: float = 300.0
    on_request: bool = False
    seconds: float = 0.0
    goal: int = 100


class HangsError(BaseException):
    """An attempt has taken too long; no handler of ordinary errors catches it."""


class Outcome(NamedTuple):
    """What came of one attempt.

    Attributes:
        broken: None if the app held, otherwise what broke.
        events: Hostile events, at least 1.
        figures: What the part measured, by name.
    """

    broken: str | None
    events: int
    figures: dict[str, float]


_events = [0]
_figures: dict[str, float] = {}


def count_event() -> None:
    """Count a hostile event, of which one attempt can make several: a kill, a power cut, a stop."""
    _events[0] += 1


def note_figure(name: str, value: float) -> None:
    """Note what an attempt has measured."""
    _figures[name] = value


def attempt_once(part: Hostility, seed: int) -> Outcome:
    """Make the attempt of a seed."""
    _events[0] = 0
    _figures.clear()
    broken = _try_once(part, seed)
    return Outcome(broken, max(1, _events[0]), dict(_figures))


def _try_once(part: Hostility, seed: int) -> str | None:
    with tempfile.TemporaryDirectory(prefix="hold-fast-", ignore_cleanup_errors=True) as scratch:
        try:
            with _limited(part.limit):
                return part.try_once(np.random.default_rng(seed), Path(scratch))
        except (Exception, HangsError):
            return traceback.format_exc()


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise `HangsError` in the body after some seconds, even while it waits for a file or a process."""
    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise HangsError(f"the attempt has not ended after {seconds:g} seconds")

    former = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


@cache
def _shared() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="hold-fast-shared-", ignore_cleanup_errors=True)


def shared_folder(name: str) -> Path:
    """Return a folder that all attempts of this process share, such as for undisturbed runs; removed at the end."""
    folder = Path(_shared().name) / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder
