"""Find the best search of a data set in the background: its frozen features, then the race that starts from them.

The features belong to a run of the method `frozen` on all images, so that no label decides what is searched. A race
that waits for the features is noted with their run, so that it starts even if the browser is closed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from udml_core.base.errors import UserError
from udml_core.base.files import read_regular, replace_text
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import EncoderSpec
from udml_core.data.given.exclusions import excluded_names
from udml_core.exploration.race import FROZEN, Outcome
from udml_core.exploration.race_measured import Serves
from udml_core.runs import Run, RunRequest, find_run, frozen_runs, list_runs
from udml_core.runs.aims import keep_aim
from udml_core.runs.analyses import (
    Analysis,
    AnalysisSpec,
    analysis_at,
    list_analyses,
    plan_analysis,
)
from udml_core.runs.analyses.kinds.advice import Advice, check_count
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.runs.spec import ExclusionList, Spec
from udml_core.runs.tasks import LIVE_STATES
from udml_core.work.jobs import launch
from udml_core.work.jobs.analysis_request import analyse
from udml_core.work.jobs.follow_ups import marker_of, withdraw
from udml_core.work.jobs.launch import submit
from udml_core.work.jobs.planning import plan
from udml_core.work.jobs.raced import kind_of, own_first

MOST_BYTES = 100_000
TRIAL, FORMER_TRIAL = "candidate", "advice"
"""The tag of runs that a race started, and the one that earlier versions wrote."""


@dataclass(frozen=True)
class Advising:
    """What is computed for a race.

    Attributes:
        run: The run of the frozen features, finished or not; None if there is none.
        analysis: The race, in any state; None if it was not started.
        is_wanted: Whether the race follows as soon as the features are computed.
    """

    run: Run | None = None
    analysis: Analysis | None = None
    is_wanted: bool = False


def find_advice(dataset: Dataset, encoder: EncoderSpec, spec: AnalysisSpec, root: Path) -> Advising:
    """Return what is computed for a race.

    Args:
        dataset: The data set.
        encoder: The encoder of the frozen features.
        spec: The request.
        root: The folder of runs.
    """
    run = find_features(dataset, encoder, root)
    if run is None:
        return Advising()
    analysis = analysis_at(run, spec)
    return Advising(run, analysis if analysis.has_spec() else None, wanted_advice(run) == spec)


def race_for(dataset: Dataset, encoder: EncoderSpec, serves: Serves, root: Path) -> AnalysisSpec | None:
    """Return the request of the race that answers for an aim: one that runs or waits, else the newest finished one.

    A race that served the aim comes before one that served the other, which measured it as well. A race that was
    stopped answers only if no race has finished.

    Args:
        dataset: The data set.
        encoder: The encoder of the frozen features.
        serves: The aim.
        root: The folder of runs.

    Returns:
        The request; None without a race.
    """
    run = find_features(dataset, encoder, root)
    if run is None:
        return None
    races = list_analyses(run, Advice)
    live = [analysis.spec() for analysis in races if analysis.status().state in LIVE_STATES]
    finished = [analysis for analysis in races if analysis.is_done() or analysis.has_earlier()]
    ended = [analysis.spec() for analysis in (*own_first(finished, serves), *own_first(races, serves))]
    return wanted_advice(run) or next(iter((*live, *ended)), None)


def newest_aim(dataset: Dataset, encoder: EncoderSpec, root: Path) -> Serves | None:
    """Return what the newest race of a data set serves, wanted or started; None without one."""
    run = find_features(dataset, encoder, root)
    wanted = None if run is None else wanted_advice(run) or next(
        (analysis.spec() for analysis in list_analyses(run, Advice)), None)
    return None if wanted is None else kind_of(wanted).serves


def start_advice(dataset: Dataset, encoder: EncoderSpec, spec: AnalysisSpec, root: Path) -> Advising:
    """Start a race, or continue it if it was stopped; without features a run computes them first.

    Raises:
        UserError: The data set is too small, or the request does not fit it.
    """
    check_count(len(dataset) - len(excluded_names(dataset)))
    run = find_features(dataset, encoder, root)
    if run is not None and run.status().can_search:
        keep_aim(run, kind_of(spec).serves)
        return Advising(run, analyse(run, spec, root=root))
    kind_of(spec).check_encoders(encoder.reads_images)
    if run is None:
        run = submit(planned_features(dataset, encoder), root)
    keep_aim(run, kind_of(spec).serves)
    replace_text(marker_of(run, "advice"), spec.stored())
    start_wanted(root)  # all images may have been embedded just before it was noted
    return find_advice(dataset, encoder, spec, root)


def planned_features(dataset: Dataset, encoder: EncoderSpec) -> Spec:
    """Return the plan of a run of an encoder's frozen features of all images.

    Raises:
        UserError: The backbone does not fit the data set.
    """
    return plan(RunRequest(dataset=dataset.name, method=FROZEN, backbone=encoder.backbone, split="all"), dataset)


def restart_advice(dataset: Dataset, encoder: EncoderSpec, spec: AnalysisSpec, root: Path) -> Advising:
    """Run a race once more; a finished race with the same choices stays until the new race has finished.

    Raises:
        UserError: The data set is too small, or the request does not fit it.
    """
    state = find_advice(dataset, encoder, spec, root)
    if state.analysis is None or not state.analysis.is_done():
        return start_advice(dataset, encoder, spec, root)
    state.analysis.set_result_aside()
    launch.start_again(state.analysis)
    return state


def is_trial(run: Run) -> bool:
    """Return whether a race started a run, so that no page shows it before the runs that a user started."""
    return not {TRIAL, FORMER_TRIAL}.isdisjoint(run.notes().tags)


def wanted_advice(run: Run) -> AnalysisSpec | None:
    """Return the request of the race that follows a run; None if none is noted."""
    try:
        return AnalysisSpec.model_validate_json(read_regular(marker_of(run, "advice"), MOST_BYTES))
    except (OSError, ValueError):
        return None


def wake(root: Path) -> None:
    """Resume the queues, the wanted maps and the wanted races, as after a restart of the computer."""
    launch.wake(root)
    start_wanted(root)


def start_wanted(root: Path) -> None:
    """Start the races whose run has embedded all images; a run that failed or was stopped gets none.

    The evaluation and the map of the run go on meanwhile.
    """
    for run in list_runs(root):
        spec = None if run.is_example else wanted_advice(run)
        if spec is None:
            continue
        status = run.status()
        if status.state in LIVE_STATES and not status.can_search:
            continue
        withdraw(run, "advice")
        if status.state in (*LIVE_STATES, "done"):
            with suppress(UserError):  # the images are gone, or a judge was removed since
                analyse(run, spec, root=root)


def find_features(dataset: Dataset, encoder: EncoderSpec, root: Path) -> Run | None:
    """Return the run of an encoder's frozen features of all images, a finished one if there is one.

    It leaves out the images that are excluded now, as every search that a race tries must.
    """
    live, listed = None, ExclusionList.of(excluded_names(dataset))
    for run in frozen_runs(root, dataset.fingerprint):
        spec = run.spec()
        if (spec.excluded.digest, spec.encoder.unfitted) != (listed.digest, encoder) or run.is_example:
            continue
        state = run.status().state
        if state == "done":
            return run
        live = run if live is None and state in LIVE_STATES else live
    return live


def other_finished_races(dataset: Dataset, encoder: EncoderSpec, spec: AnalysisSpec, root: Path) -> list[AnalysisSpec]:
    """List the finished races of the same images and with the same judges under other choices, the newest first."""
    run, asked = find_features(dataset, encoder, root), kind_of(spec)
    kinds = [] if run is None else [(analysis.spec(), kind_of(analysis.spec()))
                                    for analysis in list_analyses(run, Advice)
                                    if analysis.is_done() or analysis.has_earlier()]
    return [own for own, kind in kinds
            if own != spec and (kind.judges, kind.encoders) == (asked.judges, asked.encoders)]


def use_outcome(outcome: Outcome, root: Path) -> tuple[Run, Analysis | None]:
    """Make the search of a candidate usable: start the refinement of its run, unless it has no recipe.

    Args:
        outcome: A judged candidate.
        root: The folder of runs.

    Returns:
        The run, and its refinement in any state; None if the run itself is searched.

    Raises:
        UserError: The run was removed.
    """
    run = find_run(outcome.run, root)
    return run, analyse(run, refinement_of(outcome), root=root) if outcome.setup.recipe else None


def refinement_of(outcome: Outcome) -> AnalysisSpec:
    """Return the request of a candidate's refinement: of all images, as the judges saw it."""
    return plan_analysis(Refinement, recipe=outcome.setup.recipe)
