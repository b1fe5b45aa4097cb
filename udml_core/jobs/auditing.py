"""Audit a data set in the background: its features, then the comparison of all images."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from udml_core.analyses import Analysis, analysis_at, plan_analysis
from udml_core.backbones import EncoderSpec
from udml_core.data.dataset import Dataset
from udml_core.jobs.analysis_request import analyse
from udml_core.jobs.browse import find_browsing, submit_features
from udml_core.runs import Run
from udml_core.tasks import LIVE_STATES


@dataclass(frozen=True)
class Auditing:
    """What is computed for the audit of a data set.

    Attributes:
        run: The run of the frozen features; None if there is none.
        audit: The finished audit; None if there is none.
        task: The run or the audit that is waiting or running; None if nothing is in progress.
    """

    run: Run | None
    audit: Analysis | None = None
    task: Run | Analysis | None = None


def find_auditing(dataset: Dataset, encoder: EncoderSpec, root: Path) -> Auditing:
    """Return what is computed for the audit of a data set with an encoder.

    Args:
        dataset: The data set.
        encoder: The frozen encoder.
        root: The folder of runs.
    """
    browsing = find_browsing(dataset, encoder, root)
    if browsing.run is None:
        return Auditing(None, None, browsing.task)
    audit = analysis_at(browsing.run, plan_analysis(kind="audit"))
    if audit.is_done():
        return Auditing(browsing.run, audit)
    is_live = audit.has_spec() and audit.status().state in LIVE_STATES
    return Auditing(browsing.run, None, audit if is_live else None)


def continue_auditing(dataset: Dataset, encoder: EncoderSpec, root: Path) -> Auditing:
    """Start the next step of the audit unless it is finished or in progress: the features, then the comparison.

    Raises:
        UserError: The step does not fit the data set.
    """
    state = find_auditing(dataset, encoder, root)
    if state.task is not None or state.audit is not None:
        return state
    if state.run is None:
        return Auditing(None, None, submit_features(dataset, encoder, root))
    return Auditing(state.run, None, analyse(state.run, plan_analysis(kind="audit"), root=root))
