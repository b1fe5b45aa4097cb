"""The stages in which images are prepared, so that a user sees which is in progress and how many follow."""

from __future__ import annotations

from dataclasses import dataclass

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
    return Stage(at + 1, count, STAGES[at], said, (at + share) / count)


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
