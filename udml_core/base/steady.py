"""A time that is left as readers see it: in steps, which hold while a busy machine makes estimates jump."""

from __future__ import annotations

STEPS = (5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 75.0, 120.0, 180.0, 300.0, 420.0, 600.0, 900.0, 1200.0, 1800.0,
         2700.0, 3600.0)
"""The times that are shown, in seconds; beyond, each is half as long again."""
PATIENCE = 20.0
"""Seconds for which a shown time holds before it rises by a step."""
LATE = 1.25
"""Share of the shown time from which an estimate is clearly longer."""


def step_from(seconds: float) -> float:
    """Return the shortest step that is not shorter than a time."""
    step = next((step for step in STEPS if step >= seconds), STEPS[-1])
    while step < seconds:
        step *= 1.5
    return step


class SteadyTime:
    """A time that is left: it falls with its estimate, and rises by one step at most, after a while.

    Attributes:
        is_late: Whether the estimate is clearly longer than what is shown.
    """

    def __init__(self) -> None:
        """Begin without a time."""
        self._shown, self._since, self.is_late = 0.0, 0.0, False

    def __call__(self, now: float, expected: float) -> float:
        """Return the seconds to show.

        Args:
            now: The time in seconds.
            expected: The expected seconds that are left.
        """
        step = step_from(expected)
        if not self._shown or step < self._shown:
            self._shown, self._since = step, now
        elif step > self._shown and now - self._since >= PATIENCE:
            self._shown, self._since = step_from(self._shown + 1), now
        elif step == self._shown:
            self._since = now
        self.is_late = expected > LATE * self._shown
        return self._shown
