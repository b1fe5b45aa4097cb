"""Audit a data set in the background: its features, then the comparison of all images."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import DEFAULT_BACKBONE, EncoderSpec
from udml_core.exploration.audit import Audit
from udml_core.runs import Run
from udml_core.runs.analyses import analysis_at, create_analysis
from udml_core.runs.tasks import LIVE_STATES
from udml_core.work.jobs.analysis_request import analyse
from udml_core.work.jobs.browse import DataAnalysis, feature_runs, find_browsing, submit_features
from udml_core.work.jobs.follow_ups import AUDIT, MOST_MAPPED, are_maps_on, want, wants
from udml_core.work.jobs.launch import start_maps
from udml_core.work.jobs.planning import encoder_of


def find_auditing(dataset: Dataset, encoder: EncoderSpec, root: Path) -> DataAnalysis:
    """Return what is computed for the audit of a data set with an encoder.

    Args:
        dataset: The data set.
        encoder: The frozen encoder.
        root: The folder of runs.
    """
    runs = list(feature_runs(dataset, encoder, root))
    finished = next((run for run in runs if analysis_at(run, AUDIT).is_done()), None)
    if finished is not None:  # it compared all images, so it stays valid whatever is excluded since
        return DataAnalysis(finished, analysis_at(finished, AUDIT))
    ended = [run for run in runs if run.status().state == "done"]
    done = next((run for run in ended if analysis_at(run, AUDIT).has_spec() or wants(run, "audit")),
                next(iter(ended), None))  # an audit that was asked for goes on, whatever was prepared since
    if done is None:
        live = (run for run in runs if wants(run, "audit") and run.status().state in LIVE_STATES)
        return DataAnalysis(None, None, next(live, None))
    audit = analysis_at(done, AUDIT)
    if audit.has_spec():
        return DataAnalysis(done, None, audit if audit.status().state in LIVE_STATES else None)
    return DataAnalysis(done, None, done if wants(done, "audit") else None)


def start_auditing(dataset: Dataset, encoder: EncoderSpec, root: Path) -> DataAnalysis:
    """Start the audit of a data set unless it is finished or in progress.

    Without features a run computes them first; its worker then starts the comparison.

    Raises:
        UserError: The data set is too small for a run, or the backbone does not fit it.
    """
    state = find_auditing(dataset, encoder, root)
    if state.task is not None or state.finished is not None:
        return state
    if state.run is not None:
        return DataAnalysis(state.run, None, analyse(state.run, AUDIT, root=root))
    task = find_browsing(dataset, encoder, root).task
    run = task if isinstance(task, Run) else submit_features(dataset, encoder, root)
    want(run, "audit")
    start_maps(root)  # the run may have ended just before it was noted
    return find_auditing(dataset, encoder, root)


def keep_audit(dataset: Dataset, encoder: EncoderSpec, compared: Audit, root: Path) -> None:
    """Store a finished comparison beside the run of its features, where the page Data finds it.

    Nothing is stored without such a run, beside an audit that is stored or in progress, or where nothing can be
    written.

    Args:
        dataset: The data set.
        encoder: The frozen encoder of the features that were compared.
        compared: The comparison of all images.
        root: The folder of runs.
    """
    state = find_auditing(dataset, encoder, root)
    if state.run is not None and state.task is None and not analysis_at(state.run, AUDIT).has_spec():
        with suppress(UserError):  # the report itself needs no storage
            create_analysis(state.run, AUDIT, state="done", result=vars(compared))


def audit_import(dataset: Dataset, root: Path) -> None:
    """Start the audit of an imported data set with the default backbone.

    Nothing is started for more images than maps are computed for, if work without a request is switched off, or if the
    data set is too small for a run.
    """
    if are_maps_on() and len(dataset) <= MOST_MAPPED:
        with suppress(UserError):  # the page Data offers the audit, which then says what is missing
            start_auditing(dataset, encoder_of(dataset, DEFAULT_BACKBONE), root)
