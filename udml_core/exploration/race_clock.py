"""The clock of a race, which stands still while another run holds the device."""

from __future__ import annotations

import time
from collections.abc import Callable


class RaceClock:
    """Seconds without those that a race waited for the device."""

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
