"""A thread that acts at intervals while a computation says nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

TICK = 1.0
"""Seconds between two actions."""
ALMOST = 0.99
"""Largest share that is shown before the end: a full bar would stand still."""


@contextmanager
def ticking(tick: Callable[[], None], seconds: float = TICK) -> Iterator[None]:
    """Act at intervals, for example to report that time passes, until the block ends.

    Args:
        tick: The action. An error in it ends the thread and harms nothing else.
        seconds: Time between two actions.
    """
    ended = Event()

    def act() -> None:
        # A request to stop, or a folder that was removed, ends the computation at the next report of its own.
        with suppress(BaseException):
            while not ended.wait(seconds):
                tick()

    thread = Thread(target=act, name="ticking", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
