"""The stages in which images are prepared, so that a user sees which is in progress and how many follow."""

from __future__ import annotations

import math
from dataclasses import dataclass

from udml_core.base.errors import counted, duration
from udml_core.data.dataset import DETAIL, step_name
from udml_core.data.features import features_file
from udml_core.data.speed import measured_speed
from udml_core.runs import Run
from udml_core.runs.analyses import Analysis
from udml_core.runs.tasks import SHARE_TO_GO_BY, Status
from udml_core.work.jobs.estimate import evaluation_kind, follow_kind, image_kind_of, measured_image_speed
from udml_core.work.jobs.follow_ups import wants

READING, FEATURES, SEARCH, MAP, AUDIT = range(5)
STAGES = ("reading the files", "computing the features", "preparing the search", "computing the map",
          "comparing all images")
OF_FEATURES = ("loading the network",)
"""Phases beside `features …` that belong to the features."""
OF_SEARCH = ("training", "embedding", "thumbnails", "evaluation")
CAUTION, EARLY_CAUTION = 1.25, 0.1
"""By how much a promised time exceeds the time that the share so far would take: a factor, and how much more early on,
divided by the share, because the first images say little of the others."""
TELLS = 0.2
"""Share of a stage from which its own pace says more than what was measured before it."""
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
        return "longer than expected" if self.is_late else f"about {duration(left)} left in this step"


def promise_of(stage: tuple[str, int], status: Status, now: float, earlier: Promise | None,
               expected: float | None = None, bound: float | None = None) -> Promise | None:
    """Return by when a stage ends, from the share that is finished; None before an estimate is possible.

    Args:
        stage: The task and the number of its stage.
        status: The status of the task.
        now: The time in seconds since 1970.
        earlier: What was said last, of any stage.
        expected: Seconds that the whole stage should take, by earlier stages, if its steps take unequal times.
        bound: Seconds that the whole stage should take at most, as its first images were measured, while its own share
            says little.
    """
    known = earlier if earlier is not None and earlier.stage == stage else None
    left = _seconds_left(status)
    if expected is not None:
        return Promise(stage, now + CAUTION * expected) if known is None else Promise(stage, known.end, now > known.end)
    if not left or not status.share:
        return known
    ends = status.heartbeat + left
    end = ends + left * (CAUTION - 1 + EARLY_CAUTION / status.share)
    if bound is not None and status.share < TELLS:
        end = min(end, status.heartbeat + CAUTION * bound)
    if known is None or end < known.end:
        return Promise(stage, end)
    return Promise(stage, known.end, is_late=max(ends, now) > known.end)


def _seconds_left(status: Status) -> float | None:
    """Return the remaining seconds of a phase, of the evaluation at most if its first steps take longest; else None.

    What comes before the evaluation in its stage takes a small part of it, and says nothing of the whole.
    """
    phase = step_name(status.phase)
    if phase in OF_SEARCH and phase != "evaluation":
        return None
    elapsed, done = status.heartbeat - status.phase_started, status.share - status.share_started
    if phase != "evaluation":
        return status.seconds_left
    return elapsed * (1 - status.share) / done if done > SHARE_TO_GO_BY and elapsed >= 0 else None


def expected_seconds(task: Run | Analysis, stage: Stage, images: int) -> float | None:
    """Return how long the search or the map of a run should take, by this or other images of its encoder.

    Args:
        task: The run.
        stage: The stage.
        images: Number of its images.

    Returns:
        The seconds; None for other stages, and before one was measured on this machine.
    """
    if not isinstance(task, Run) or stage.number not in (SEARCH + 1, MAP + 1):
        return None
    kind = (evaluation_kind if stage.number == SEARCH + 1 else follow_kind)(task.spec())
    known, each = measured_speed(kind), measured_speed(image_kind_of(kind))
    return known if known is not None else None if each is None else each * images


def features_seconds(task: Run | Analysis, stage: Stage, images: int) -> float | None:
    """Return how long the features of a run should take by the speed that was measured when they began; else None.

    Args:
        task: The run.
        stage: The stage.
        images: Number of its images.
    """
    if not isinstance(task, Run) or stage.number != FEATURES + 1:
        return None
    each = measured_image_speed(task.spec().encoder, task.spec().device)
    return None if each is None else each * images


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
    is_named = phase in OF_FEATURES or (phase_at == READING and phase not in ("", "starting"))
    said = status.phase if is_named else detail
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
