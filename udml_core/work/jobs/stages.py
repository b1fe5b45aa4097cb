"""The stages in which images are prepared, so that a user sees which is in progress and how many follow."""

from __future__ import annotations

import math
from dataclasses import dataclass

from udml_core.base.errors import counted, duration
from udml_core.data.dataset import DETAIL, step_name
from udml_core.data.features import features_file
from udml_core.runs import Run
from udml_core.runs.analyses import Analysis
from udml_core.runs.tasks import Status
from udml_core.work.jobs.follow_ups import wants

READING, FEATURES, SEARCH, MAP, AUDIT = range(5)
STAGES = ("reading the files", "computing the features", "preparing the search", "computing the map",
          "comparing all images")
OF_FEATURES = ("loading the network", "thumbnails")
"""Phases beside `features …` that belong to the features."""
OF_SEARCH = ("training", "embedding", "evaluation")
CAUTION, EARLY_CAUTION = 1.25, 0.1
"""By how much a promised time exceeds the time that the share so far would take: a factor, and how much more early on,
divided by the share, because the first images say little of the others."""
COARSE = 5
"""Seconds to whose multiples a promised time is rounded up."""


@dataclass(frozen=True)
class Stage:
    """Where the preparation of images is.

    Attributes:
        number: Number of the stage, from 1.
        count: Number of stages.
        name: What happens in it.
        detail: What is done now, such as the speed; empty if the name says it.
        share: Finished share of the whole preparation, 0 to 1, if all stages took the same time.
    """

    number: int
    count: int
    name: str
    detail: str
    share: float

    @property
    def words(self) -> str:
        """The stage in words, such as "Step 2 of 5, computing the features: 34 images per second"."""
        return f"Step {self.number} of {self.count}, {self.name}" + (f": {self.detail}" if self.detail else "")


@dataclass(frozen=True)
class Promise:
    """By when a stage shall end, as it was said; it is never said to end later.

    Attributes:
        stage: The task and the number of its stage.
        end: The time in seconds since 1970.
        is_late: Whether the stage seems to take longer than was said.
    """

    stage: tuple[str, int]
    end: float
    is_late: bool = False

    def left_words(self, now: float) -> str:
        """Return the time left in words, which does not rise, or that it takes longer than was said."""
        left = COARSE * math.ceil(max(self.end - now, 1.0) / COARSE)
        return "longer than expected" if self.is_late else f"at most about {duration(left)} left in this step"


def promise_of(stage: tuple[str, int], status: Status, now: float, earlier: Promise | None) -> Promise | None:
    """Return by when a stage ends, from the share that is finished; None before an estimate is possible.

    Args:
        stage: The task and the number of its stage.
        status: The status of the task.
        now: The time in seconds since 1970.
        earlier: What was said last, of any stage.
    """
    known = earlier if earlier is not None and earlier.stage == stage else None
    if not status.seconds_left or not status.share:
        return known
    expected = status.heartbeat + status.seconds_left
    end = expected + status.seconds_left * (CAUTION - 1 + EARLY_CAUTION / status.share)
    if known is None or end < known.end:
        return Promise(stage, end)
    return Promise(stage, known.end, is_late=max(expected, now) > known.end)


def stage_of(task: Run | Analysis, status: Status) -> Stage:
    """Return the stage of a task that prepares images.

    Args:
        task: The run of their features, or the map or the audit that follows it.
        status: The status of the task.
    """
    phase_at = _index(task, status)
    at = max(phase_at, SEARCH if _are_features_stored(task) else READING)
    with_audit = at == AUDIT or wants(task if isinstance(task, Run) else task.run, "audit")
    count = len(STAGES) if with_audit else AUDIT
    phase, _, detail = status.phase.partition(DETAIL)
    said = status.phase if phase_at == READING and phase not in ("", "starting") else detail
    share = min(1.0, status.share) if at == phase_at else 0.0
    left_out = (task if isinstance(task, Run) else task.run).spec().excluded.count if at in (SEARCH, MAP) else 0
    again = f" again, without {counted(left_out, 'image')}" if left_out else ""  # it was done with all images before
    return Stage(at + 1, count, f"{STAGES[at]}{again}", said, (at + share) / count)


def _are_features_stored(task: Run | Analysis) -> bool:
    """Return whether a run goes on after its features, which a run before it has stored with other exclusions."""
    spec = (task if isinstance(task, Run) else task.run).spec()
    return features_file(spec.fingerprint, spec.encoder).exists()


def _index(task: Run | Analysis, status: Status) -> int:
    """Return the index of a task's stage."""
    if isinstance(task, Analysis):
        return AUDIT if task.spec().kind == "audit" else MAP
    phase = step_name(status.phase)
    if phase in OF_SEARCH:
        return SEARCH
    if status.searchable:  # the map and the neighbor graph follow the evaluation
        return MAP
    return FEATURES if "features" in phase or phase in OF_FEATURES else READING
