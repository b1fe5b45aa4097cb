"""The clock of a race, which stands still while another run holds the device, and its progress in words."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import RLock

from udml_core.base.errors import duration
from udml_core.base.steady import LATE
from udml_core.base.ticking import ALMOST
from udml_core.data.dataset import DETAIL, WAITING, step_name

TELLING_SHARE = 0.05
"""Smallest share of a step from which its time is estimated."""
TELLING_IMAGES = 0.01
"""Smallest share of the images from which the time of the others is estimated."""
TELLING_SECONDS = 3.0
"""Shortest time of a computation from which the rest is estimated."""
HALVED = 2.0
"""Seconds in which half of what a shown time is too long is taken from it."""
FINISHING, LEFT = "finishing", " left"
"""What a reported time says at the end of a race, and how it ends before."""
UNKNOWN = "how long this takes is not known yet"
"""What is said of a step that was never measured on this machine."""
MET = 1.0
"""Seconds from which a time that is left is shown."""


def clock_words(seconds: float) -> str:
    """Return a time as minutes and seconds that a reader sees tick, such as 1:40."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def left_words(phase: str) -> str:
    """Return the time that is left by a phase that `RaceProgress` reported; empty if it names none."""
    said = phase.rpartition(DETAIL)[2].rpartition(", ")[2]
    return said if said == FINISHING or said.endswith(LEFT) else ""


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


class Forecast:
    """What is left of a computation, from the share that its first seconds finished."""

    def __init__(self, clock: Callable[[], float], telling: float = TELLING_SHARE) -> None:
        """Start without a share.

        Args:
            clock: Returns the seconds of the race without waiting.
            telling: The smallest share that tells: less where each part takes as long as any other.
        """
        self._clock, self._telling = clock, telling
        self._first: tuple[float, float] | None = None

    def __call__(self, share: float) -> float | None:
        """Return the expected seconds until it ends; None until its first seconds tell.

        The time before the first share is left out: it loads data and builds the model.

        Args:
            share: Finished share, 0 to 1.
        """
        now = self._clock()
        if self._first is None or share < self._first[1]:
            self._first = now, share
        began, first = self._first
        if now - began < TELLING_SECONDS or share - first < self._telling:
            return None
        return (now - began) * (1 - share) / (share - first)


class Countdown:
    """A time that is left as it is shown: it runs down or stands still, and never rises.

    It begins with a bound. A shorter estimate is reached within seconds, and not at once, so that a single estimate
    which was too short is hardly seen. While an estimate is longer than what is shown, the shown time stands still.

    Attributes:
        is_late: Whether the estimate is clearly longer than what is shown.
    """

    def __init__(self) -> None:
        """Begin without a time."""
        self._left: float | None = None
        self._at, self.is_late = 0.0, False

    def __call__(self, now: float, expected: float) -> float:
        """Return the seconds to show.

        Args:
            now: The seconds of the race so far.
            expected: The expected seconds that are left, or a bound of them.
        """
        passed, self._at = max(0.0, now - self._at), now
        left = expected if self._left is None else self._left
        too_long = max(0.0, left - passed - expected)
        self._left = min(left, expected + too_long * 0.5 ** (passed / HALVED))
        self.is_late = expected > LATE * self._left
        return self._left


class RaceProgress:
    """Reports the progress of a race: its share and its time belong together, and the share never falls.

    The time that is left is never less than what is known: a candidate whose share grows slowly takes longer than was
    expected, and so do the candidates after it, as a busy machine slows down all of them.
    """

    def __init__(self, report: Callable[[float, str], None], elapsed: Callable[[], float], seconds: float,
                 least: float = 0.0) -> None:
        """Begin without an estimate.

        Args:
            report: Receives the share of the race, 0 to 1, and the step with its time.
            elapsed: Returns the seconds of the race so far, without waiting.
            seconds: The time for the judges and all candidates.
            least: Share of the time that candidates get in any case, however long the judges take.
        """
        self._report, self._elapsed, self._seconds, self._least = report, elapsed, seconds, least * seconds
        self._end: float | None = None
        self._slower: float | None = None
        self._began, self._own, self._rest = 0.0, 0.0, 0.0
        self._phase, self._last = (0.0, 0.0), 0.0
        self._shown = Countdown()
        self._step, self._done, self._lock = "", 0.0, RLock()

    def __call__(self, share: float, step: str) -> None:
        """Report a step with the time of the race.

        Args:
            share: Finished share of the candidate; 0 if it is not known.
            step: The step.
        """
        with self._lock:
            self._follow(self._elapsed(), share)
            self._step = step
            self.tick()

    def tick(self) -> None:
        """Report the last step again with the time of now."""
        with self._lock:
            if self._step:
                self._tell(self._step)

    def _tell(self, step: str) -> None:
        now, expected = self._elapsed(), self.seconds_left()
        bound = max(self._seconds - now, self._least)
        left, passed = self._shown(now, bound if expected is None else expected), clock_words(now)
        # A race may end before its time, so that the whole time and a time left would contradict each other.
        is_bound = expected is None and not self._shown.is_late
        is_whole = is_bound and now < self._seconds
        passed = f"{passed} of {clock_words(self._seconds)} min" if is_whole else f"{passed} min so far"
        rest = FINISHING if left < 1 else (
            f"{clock_words(left)} of its time{LEFT}" if is_bound else
            f"{'more than' if self._shown.is_late else 'about'} {duration(left)}{LEFT}")
        time_words = f"{passed}, {rest}"
        done = min(ALMOST, now / max(now + left, 1e-9))
        self._done = max(self._done, done)  # a bar that falls back looks like a fault
        self._report(self._done, step if step_name(step) == WAITING else f"{step}{DETAIL}{time_words}")

    def begin_candidates(self, seconds: float) -> None:
        """Note that the judges are ready.

        Args:
            seconds: The time until the race ends, with that of the judges.
        """
        with self._lock:
            self._seconds, self._least = seconds, 0.0

    def announce(self, name: str, left: float | None, own: float) -> None:
        """Report that a candidate is tried.

        Args:
            name: The candidate.
            left: Expected seconds until the race ends; None if they are not known.
            own: The candidate's share of them.
        """
        with self._lock:
            now = self._elapsed()
            self._end, self._slower = None if left is None else now + left, None
            self._began, self._own, self._rest = now, own, max(0.0, (left or 0.0) - own)
            self._phase, self._last = (now, 0.0), 0.0
            self(0.0, f"trying {name}")

    def seconds_left(self) -> float | None:
        """Return the expected seconds until the race ends, at most the rest of its time; None if they are not known."""
        now = self._elapsed()
        end = max(filter(None, (self._end, self._slower)), default=0.0)
        return None if self._end is None or end <= now else min(end, max(now, self._seconds)) - now or None

    def _follow(self, now: float, share: float) -> None:
        """Learn from the share of a candidate how long it and the candidates after it take."""
        if share <= 0:
            return
        if share < self._last:  # another phase of the candidate begins
            self._phase = now, share
        (began, first), self._last = self._phase, share
        if share - first < TELLING_SHARE or now <= began:
            return
        own_left = (now - began) * (1 - share) / (share - first)
        slowdown = max(1.0, (now - self._began + own_left) / self._own) if self._own else 1.0
        self._slower = now + own_left + slowdown * self._rest
