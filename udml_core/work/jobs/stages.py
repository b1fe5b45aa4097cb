"""The stages in which images are prepared, so that a user sees which is in progress and how many follow."""

from __future__ import annotations

import math
from dataclasses import dataclass

from udml_core.base.errors import counted, duration
from udml_core.data.dataset import DETAIL, step_name
from udml_core.data.features import features_file
from udml_core.data.speed import measured_speed
from udml_core.runs import Run
from udml_core.runs.analyses import Analysis, analysis_at
from udml_core.runs.tasks import SHARE_TO_GO_BY, Status
from udml_core.work.jobs.estimate import evaluation_kind, follow_kind, image_kind_of, measured_image_speed
from udml_core.work.jobs.follow_ups import AUDIT as AUDIT_REQUEST
from udml_core.work.jobs.follow_ups import wants

READING, FEATURES, AUDIT, SEARCH, MAP = STAGES = ("reading the files", "computing the features",
                                                  "comparing all images", "preparing the search", "computing the map")
"""The stages in their order; an audit is not always one of them."""
OF_FEATURES = ("loading the network",)
"""Phases beside `features …` that belong to the features."""
EMBEDDING = ("training", "embedding")
"""Short phases between the features and the search."""
OF_SEARCH = ("thumbnails", "evaluation")
CAUTION, EARLY_CAUTION = 1.25, 0.1
"""By how much a promised time exceeds the time that the share so far would take: a factor, and how much more early on,
divided by the share, because the first images say little of the others."""
TELLS = 0.2
"""Share of a stage from which its own pace says more than what was measured before it."""
LATE = "longer than expected"
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
        again: That it was done before, with all images; empty if it was not.
    """

    number: int
    count: int
    name: str
    detail: str
    share: float
    again: str = ""

    @property
    def words(self) -> str:
        """The stage in words, such as "Step 2 of 5, computing the features: 34 images per second"."""
        what = f"{self.name}{self.again}" + (f": {self.detail}" if self.detail else "")
        return f"Step {self.number} of {self.count}, {what}" if self.count > 1 else f"{what[:1].upper()}{what[1:]}"


@dataclass(frozen=True)
class Promise:
    """By when a stage shall end, as it was said; it is never said to end later.

    Attributes:
        stage: The task and the number of its stage.
        end: The time in seconds since 1970.
        is_late: Whether the stage seems to take longer than was said.
        ends: When it seems to end now; None if its share does not tell.
    """

    stage: tuple[str, int]
    end: float
    is_late: bool = False
    ends: float | None = None

    def left_words(self, now: float) -> str:
        """Return the time left in words, which does not rise unless it takes longer than was said, and says so."""
        if self.is_late and self.ends is None:
            return LATE
        end = self.ends if self.is_late and self.ends is not None else self.end
        left = f"about {duration(COARSE * math.ceil(max(end - now, 1.0) / COARSE))} left in this step"
        return f"{LATE}, {left}" if self.is_late else left


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
    return Promise(stage, known.end, max(ends, now) > known.end, ends)


def _seconds_left(status: Status) -> float | None:
    """Return the remaining seconds of a phase, of the evaluation at most if its first steps take longest; else None.

    The other short phases of a stage take a small part of it, and say nothing of the whole.
    """
    phase = step_name(status.phase)
    if phase in (*EMBEDDING, *OF_SEARCH) and phase != "evaluation":
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
    if not isinstance(task, Run) or stage.name not in (SEARCH, MAP):
        return None
    kind = (evaluation_kind if stage.name == SEARCH else follow_kind)(task.spec())
    known, each = measured_speed(kind), measured_speed(image_kind_of(kind))
    return known if known is not None else None if each is None else each * images


def features_seconds(task: Run | Analysis, stage: Stage, images: int) -> float | None:
    """Return how long the features of a run should take by the speed that was measured when they began; else None.

    Args:
        task: The run.
        stage: The stage.
        images: Number of its images.
    """
    if not isinstance(task, Run) or stage.name != FEATURES:
        return None
    each = measured_image_speed(task.spec().encoder, task.spec().device)
    return None if each is None else each * images


def stage_of(task: Run | Analysis, status: Status) -> Stage:
    """Return the stage of a task that prepares images.

    Args:
        task: The run of their features, or the map or the audit that follows it.
        status: The status of the task.
    """
    run, stages = task if isinstance(task, Run) else task.run, _stages_of(task)
    phase_at = stages.index(_name(task, status))
    # A run goes on after its features if a run before it has stored them with other exclusions.
    at = max(phase_at, stages.index(FEATURES) + 1) if _are_features_stored(run) and FEATURES in stages else phase_at
    phase, _, detail = status.phase.partition(DETAIL)
    is_named = phase in OF_FEATURES or (stages[phase_at] == READING and phase not in ("", "starting"))
    said = status.phase if is_named else detail
    share = min(1.0, status.share) if at == phase_at else 0.0
    left_out = run.spec().excluded.count if stages[at] in (SEARCH, MAP) else 0
    return Stage(at + 1, len(stages), stages[at], said, (at + share) / len(stages),
                 f" again, without {counted(left_out, 'image')}" if left_out else "")


def _stages_of(task: Run | Analysis) -> tuple[str, ...]:
    """Return the stages of a preparation; an audit that follows a finished run has only its own."""
    if isinstance(task, Analysis) and task.spec().kind == AUDIT_REQUEST.kind:
        return (AUDIT,)
    run = task if isinstance(task, Run) else task.run
    with_audit = wants(run, "audit") or analysis_at(run, AUDIT_REQUEST).has_spec()
    return tuple(stage for stage in STAGES if with_audit or stage != AUDIT)


def _are_features_stored(run: Run) -> bool:
    """Return whether the features of a run's images are stored."""
    return features_file(run.spec().fingerprint, run.spec().encoder).exists()


def _name(task: Run | Analysis, status: Status) -> str:
    """Return the stage of a task."""
    if isinstance(task, Analysis):
        return AUDIT if task.spec().kind == AUDIT_REQUEST.kind else MAP
    phase = step_name(status.phase)
    if not status.searchable:
        return FEATURES if "features" in phase or phase in (*OF_FEATURES, *EMBEDDING) else READING
    if wants(task, "audit"):
        return AUDIT
    return SEARCH if phase in (*EMBEDDING, *OF_SEARCH) else MAP  # the map and the neighbor graph follow the evaluation
