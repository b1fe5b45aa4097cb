"""The clock of a race, which stands still while another run holds the device, and its progress in words."""

from __future__ import annotations

import time
from collections.abc import Callable

from udml_core.base.errors import duration
from udml_core.data.dataset import DETAIL, WAITING, step_name

ALMOST = 0.99
"""Largest share that is shown before the end: a full bar would stand still."""


class RaceClock:
    """Seconds of a race without the seconds in which it waited for the device."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        """Start a clock.

        Args:
            clock: Returns the time in seconds; `time.monotonic` by default.
        """
        self._clock = clock or (lambda: time.monotonic())
        self._waited = 0.0
        self._since: float | None = None

    def __call__(self) -> float:
        """Return the time in seconds, which has no fixed zero."""
        now = self._clock()
        return now - self._waited - (0.0 if self._since is None else now - self._since)

    def wait(self, is_waiting: bool) -> None:
        """Note whether the race waits for the device from now on."""
        now = self._clock()
        if is_waiting and self._since is None:
            self._since = now
        elif not is_waiting and self._since is not None:
            self._waited, self._since = self._waited + now - self._since, None


class RaceProgress:
    """Reports the progress of a race: its share and its time belong together, whatever a step reports of itself."""

    def __init__(self, report: Callable[[float, str], None], elapsed: Callable[[], float], seconds: float) -> None:
        """Begin without an estimate.

        Args:
            report: Receives the share of the race, 0 to 1, and the step with its time.
            elapsed: Returns the seconds of the race so far, without waiting.
            seconds: The time for all candidates.
        """
        self._report, self._elapsed, self._seconds = report, elapsed, seconds
        self._end: float | None = None

    def __call__(self, _share: float, step: str) -> None:
        """Report a step with the time of the race."""
        now = self._elapsed()
        left = None if self._end is None or self._end <= now else self._end - now
        budget = duration(self._seconds)
        time_words = f"about {duration(left)} left" if left is not None else (
            f"{duration(now)} of at most {budget}" if now <= self._seconds else f"{budget} are over, finishing")
        share = min(ALMOST, now / (self._seconds if left is None else now + left))
        self._report(share, step if step_name(step) == WAITING else f"{step}{DETAIL}{time_words}")

    def announce(self, name: str, left: float | None) -> None:
        """Report that a candidate is tried, and keep the expected seconds until the race ends, if they are known."""
        self._end = None if left is None else self._elapsed() + left
        self(0.0, f"trying {name}")
