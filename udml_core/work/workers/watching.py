"""Store steps within an epoch while a page watches a training, at a small share of its time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from udml_core.base.arrays import Array
from udml_core.methods import Embedder
from udml_core.runs import Run
from udml_core.runs.live_steps import is_watched, write_step

LOOKS_APART = 0.2
"""Seconds between two looks at whether a page watches."""
LONGEST_PAUSE, LATER_PAUSE = 1.0, 0.05
"""Seconds between two steps at most, and the share of the time so far that they are apart later."""
SHARE, ALLOWANCE = 0.05, 0.4
"""Largest share of the training time that may be spent, and the seconds that may be spent in any case."""
Measured = Callable[[Embedder], tuple[dict[str, Any], Array, Array | None]]


class StepWatcher:
    """The observer of a training, which stores the first steps densely and later ones about every second.

    Attributes:
        epoch: Number of finished epochs.
    """

    def __init__(self, run: Run, measured: Measured, clock: Callable[[], float] = time.monotonic) -> None:
        """Prepare to observe a run.

        Args:
            run: The run.
            measured: Returns the measures and the embeddings of the sample and of training images.
            clock: Returns the time in seconds.
        """
        self.run, self.epoch = run, 0
        self._measured, self._clock = measured, clock
        self._looked, self._is_watched = float("-inf"), False
        self._steps, self._next, self._spent = 0, 1, 0.0
        self.begin(0, ALLOWANCE)

    def begin(self, epoch: int, cost: float) -> None:
        """Begin the training after an epoch.

        Args:
            epoch: Number of finished epochs.
            cost: Expected seconds of a stored step; the first ones tell the true number.
        """
        self.epoch, self._cost = epoch, cost
        self._began = self._stored = self._clock()

    def observe(self, share: float, embedder: Callable[[], Embedder]) -> None:
        """Store the embedding after a step if it is due; the end of an epoch is stored by the epoch."""
        self._steps += 1
        now = self._clock()
        if share >= 1 or not self._is_due(now) or not self._has_viewer(now):
            return
        row, sample, trained = self._measured(embedder().eval())
        write_step(self.run, {"epoch": round(self.epoch + share, 3)} | row, sample, trained)
        while self._next <= self._steps:
            self._next *= 2
        self._stored = self._clock()
        self._cost = self._stored - now
        self._spent += self._cost

    def _is_due(self, now: float) -> bool:
        """Return whether a step is due and affordable: steps 1, 2, 4, 8 and so on, and then by time."""
        elapsed = now - self._began
        pause = max(LONGEST_PAUSE, LATER_PAUSE * elapsed)
        affordable = self._spent + self._cost <= max(ALLOWANCE, SHARE * elapsed)
        return affordable and (self._steps >= self._next or now - self._stored >= pause)

    def _has_viewer(self, now: float) -> bool:
        if now - self._looked >= LOOKS_APART:
            self._looked, self._is_watched = now, is_watched(self.run)
        return self._is_watched
