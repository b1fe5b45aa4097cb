"""What follows a run without a further request: its second opinions, maps, and the audit of an imported data set.

A run that wants maps has an empty file `maps-wanted` from its submission on, so that the choice survives a stop, a
resume and a crash; a run of frozen features that an audit waits for has `audit-wanted`, and compares all images before
it is evaluated. After the run one process for all runs of a folder, `python -m udml_core map-work RUNS`, computes what
is left, one after the other (see `udml_core.work.workers.follow_up`), and removes the file.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Literal

from udml_core.base import locks
from udml_core.base.errors import UserError
from udml_core.runs import Run, list_runs
from udml_core.runs.analyses import (
    REFINED,
    Analysis,
    AnalysisSpec,
    analysis_at,
    find_analysis,
    list_analyses,
    plan_analysis,
)
from udml_core.runs.analyses.kinds.audit import DataAudit
from udml_core.runs.analyses.kinds.grid import Grid
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.runs.analyses.kinds.tsne import TSNE
from udml_core.runs.analyses.kinds.umap import UMAP
from udml_core.runs.engines import read_owner
from udml_core.runs.opinions import OF_REFINEMENTS, OF_RUN
from udml_core.runs.search import FROZEN
from udml_core.runs.tasks import LIVE_STATES
from udml_core.runs.used import used_search

SWITCH = "UDML_MAPS"
"""Environment variable: with the value 0, new runs get no maps without a request."""
LEAST_MAPPED, MOST_MAPPED = 100, 20_000
"""Images for which maps are computed. A perplexity of 30 needs about 100; 20,000 take several minutes of one core."""
FollowUp = Literal["maps", "audit", "advice"]
"""What follows a run: its maps, the audit of its data set, or a race for the best search."""
BEGINS = 30.0
"""Seconds after the end of a run in which the process that computes what follows it has surely begun."""
AUDIT = plan_analysis(DataAudit)
"""The request for an audit, which has no choices."""


def are_maps_on() -> bool:
    """Return whether new runs get maps, unless their submission says otherwise."""
    return os.environ.get(SWITCH, "1") != "0"


def want(run: Run, what: FollowUp) -> None:
    """Note what follows a run when it is done."""
    run.check_writable()
    marker_of(run, what).touch()


def wants(run: Run, what: FollowUp) -> bool:
    """Return whether something still follows a run without a further request."""
    return marker_of(run, what).exists()


def withdraw(run: Run, what: FollowUp) -> None:
    """Note that something does not follow a run without a further request."""
    marker_of(run, what).unlink(missing_ok=True)


def marker_of(run: Run, what: FollowUp) -> Path:
    """Return the file beside a run that notes what follows it."""
    return run.folder / f"{what}-wanted"


def planned(run: Run) -> tuple[AnalysisSpec, ...]:
    """Return the requests in their order.

    Whether training helped comes first, then the steps of the search in use on it, the first map and its grid, and the
    slower map.
    """
    umap, (*first, last) = plan_analysis(UMAP), _opinions(run) or (None,)
    grid = plan_analysis(Grid, source=umap.id, frame=umap.frames[-1])
    in_order = (*first, steps_in_use(run), umap, grid, last, plan_analysis(TSNE))
    return tuple(spec for spec in in_order if spec is not None)


def steps_in_use(run: Run) -> AnalysisSpec | None:
    """Return the request for the steps of the search that the user chose for a training's images, on that training.

    Returns:
        None without a training, and if no search with steps was chosen, or it is of this very training.
    """
    if run.spec().method == FROZEN or run.is_example:
        return None
    used = used_search(other for other in list_runs(run.root) if other.spec().fingerprint == run.spec().fingerprint)
    if used is None or used[0].id == run.id or not used[1].startswith(REFINED):
        return None
    return plan_analysis(Refinement, recipe=find_analysis(*used).spec().recipe)


def follows(run: Run, analysis: Analysis) -> bool:
    """Return whether an analysis follows its run without a request."""
    return wants(run, "maps") and any(analysis_at(run, spec).folder == analysis.folder for spec in planned(run))


def left_to_compute(run: Run) -> list[AnalysisSpec]:
    """List what still follows a run without a further request, in its order; nothing unless it is wanted."""
    requests = planned(run) if wants(run, "maps") else ()
    return [spec for spec in requests if not analysis_at(run, spec).folder.exists()]


def _opinions(run: Run) -> tuple[AnalysisSpec, ...]:
    """Return the requests for second opinions that a run can have; frozen features are not compared with themselves."""
    requests = (OF_REFINEMENTS,) if run.spec().method == FROZEN else (OF_RUN, OF_REFINEMENTS)
    try:
        for request in requests:
            request.build_kind().check_run(run)
    except UserError:  # a table of embeddings, or no judge
        return ()
    return requests


def next_map(root: Path) -> tuple[Run, AnalysisSpec] | None:
    """Return what to compute next in a folder of runs, for its newest run first; None if nothing is left.

    The audits of data sets come before all maps: people wait for what they find.
    """
    runs = [run for run in list_runs(root)
            if (wants(run, "maps") or wants(run, "audit")) and run.stored_status().state == "done"]
    for run in runs:
        if wants(run, "audit") and not analysis_at(run, AUDIT).folder.exists():
            return run, AUDIT
        withdraw(run, "audit")
    for run in runs:
        spec = _missing_map(run) if wants(run, "maps") else None
        if spec is not None:
            return run, spec
        withdraw(run, "maps")
    return None


def _missing_map(run: Run) -> AnalysisSpec | None:
    """Return the first request without an analysis; an analysis that failed or was stopped counts as settled."""
    try:
        images = len(run.embeddings("final")) - run.spec().excluded.count
    except UserError:
        return None
    if not LEAST_MAPPED <= images <= MOST_MAPPED:
        return None
    for spec in planned(run):
        has_source = not spec.source or Analysis(run.folder / "analyses" / spec.source).is_done()
        if has_source and not analysis_at(run, spec).folder.exists():
            return spec
    return None


def is_busy(root: Path, run: Run | None = None) -> bool:
    """Return whether maps must wait: a run trains or waits for its device here, or the given run is being analyzed."""
    owners = [(other, read_owner(other.folder)) for other in list_runs(root)]
    here = [other for other, owner in owners if owner is None or owner.request.engine != "slurm"]
    tasks = [*here, *(list_analyses(run) if run else [])]
    return any(task.stored_status().state in LIVE_STATES and task.status().state in LIVE_STATES for task in tasks)


def mapper_lock(root: Path) -> Path:
    """Return the lock that the process computing the maps of a folder of runs holds."""
    return root / ".maps.lock"


def are_maps_coming(run: Run) -> bool:
    """Return whether the wanted maps of a run are computed now, soon after its end, or after the runs in progress."""
    if not wants(run, "maps"):
        return False
    if 0 <= time.time() - (run.stored_status().finished or 0.0) < BEGINS:
        return True
    try:
        return locks.is_held(mapper_lock(run.folder.parent)) or is_busy(run.folder.parent)
    except OSError:
        return False
