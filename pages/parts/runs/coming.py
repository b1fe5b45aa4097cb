"""Whether the verdict without labels on a run is being computed, or follows."""

from __future__ import annotations

from udml_core.runs import Run
from udml_core.runs.analyses import Analysis, analysis_at
from udml_core.runs.opinions import OF_RUN, obstacle
from udml_core.runs.tasks import LIVE_STATES
from udml_core.work import jobs
from udml_core.work.jobs.follow_ups import steps_in_use


def is_judged_later(run: Run) -> bool:
    """Return whether the verdict on a run is being computed, or follows in the background."""
    return not run.is_example and not obstacle(run) and is_coming(run)


def parts_of_verdict(run: Run) -> list[Analysis]:
    """List what a verdict on a run counts: its second opinion, then the steps of the search in use on it."""
    return [analysis_at(run, spec) for spec in (OF_RUN, steps_in_use(run)) if spec is not None]


def is_coming(run: Run) -> bool:
    """Return whether a part of the verdict on a run is being computed, or follows in the background."""
    parts = parts_of_verdict(run)
    return any(part.folder.exists() and part.status().state in LIVE_STATES for part in parts) or (
        any(not part.folder.exists() for part in parts) and jobs.are_maps_coming(run))
