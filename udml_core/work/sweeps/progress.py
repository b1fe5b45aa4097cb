"""The progress of a sweep, from the statuses of its runs."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from udml_core.runs import Run
from udml_core.runs.tasks import LIVE_STATES, State, Status
from udml_core.work.sweeps.group import Member

MISSING: Literal["missing"] = "missing"
GroupState = State | Literal["missing"]
ENDED: tuple[State, ...] = ("done", "failed")
"""States of runs that need no more time."""
ORDER: tuple[GroupState, ...] = ("running", "waiting", "failed", "interrupted", "stopped", "missing", "done")
"""The state of a group is the first of these that one of its runs has."""


@dataclass(frozen=True)
class GroupProgress:
    """The progress of a group.

    Attributes:
        counts: Number of runs by state; `missing` counts planned runs that do not exist.
        share: Finished share of all runs, 0 to 1; runs in progress count with their finished epochs.
        seconds_left: Expected remaining seconds of the waiting and running runs, by the runs that have finished; None
            before the first has finished, or if no run is in progress.
    """

    counts: dict[GroupState, int]
    share: float
    seconds_left: float | None

    @property
    def state(self) -> GroupState:
        """The state of the whole group."""
        return next((state for state in ORDER if self.counts.get(state)), MISSING)

    @property
    def live(self) -> int:
        """The number of waiting and running runs."""
        return self.counts.get("running", 0) + self.counts.get("waiting", 0)


def progress_of(members: Sequence[Member]) -> GroupProgress:
    """Return the progress of a group's runs."""
    statuses = [(member.run, member.status()) for member in members]
    counts = Counter[GroupState](MISSING if run is None else status.state for run, status in statuses)
    finished = sum(1.0 if status.state == "done" else _share(status) for run, status in statuses if run is not None)
    return GroupProgress(dict(counts), finished / max(len(members), 1), _seconds_left(statuses))


def spent_seconds(members: Sequence[Member], since: float) -> float:
    """Return the seconds of work of a group's finished and failed runs, without runs that had ended before.

    Args:
        members: The runs.
        since: The creation of the group in seconds since 1970.
    """
    statuses = [member.status() for member in members if member.state in ENDED]
    return sum(_duration(status) for status in statuses if (status.finished or 0.0) > since)


def _seconds_left(statuses: Sequence[tuple[Run | None, Status]]) -> float | None:
    """Estimate the remaining seconds: one run at a time uses a device, and devices work side by side."""
    live = [(run, status) for run, status in statuses if run is not None and status.state in LIVE_STATES]
    if not live:
        return None
    durations = defaultdict[str, list[float]](list)
    for run, status in statuses:
        if run is not None and status.state == "done" and status.started is not None:
            durations[_kind(run)].append(_duration(status))
    known = [duration for group in durations.values() for duration in group]
    if not known:
        return None
    left = defaultdict[str, float](float)
    for run, status in live:
        like = durations.get(_kind(run)) or known
        expected = sum(like) / len(like)
        left[run.spec().device] += max(0.0, expected - (_duration(status) if status.state == "running" else 0.0))
    return max(left.values())


def _kind(run: Run) -> str:
    """Return what decides a run's duration most: method and data set."""
    return f"{run.spec().method} {run.spec().fingerprint}"


def _duration(status: Status) -> float:
    """Return the seconds since a run's start, or of a run that has ended."""
    return 0.0 if status.started is None else max(0.0, (status.finished or time.time()) - status.started)


def _share(status: Status) -> float:
    """Return the finished share of a run's epochs."""
    part = status.share if status.phase == "training" else 0.0
    return min(1.0, (status.epoch + part) / max(status.epochs, 1))
