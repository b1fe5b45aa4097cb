"""The verdict without labels, read once, and its words in tables."""

from __future__ import annotations

import streamlit as st

from udml_core.exploration.race_figures import SAID
from udml_core.runs import Run
from udml_core.runs.analyses import AnalysisSpec, analysis_at
from udml_core.runs.analyses.kinds.opinion import Opinions, Verdicts
from udml_core.runs.opinions import OF_RUN, opinion_at, opinion_of

from .run_hash import RUN_HASH


def stored_opinion(run: Run, request: AnalysisSpec = OF_RUN) -> Opinions | None:
    """Return a finished second opinion of a run, read once; None if there is none or its file is damaged.

    Against the frozen features, the newest one counts, by any judges.
    """
    analysis = opinion_at(run) if request == OF_RUN else analysis_at(run, request)
    return _read(run, analysis.id, analysis.stored_status().ticket, analysis.spec()) if analysis.is_done() else None


# The ticket changes when the second opinion is computed again.
@st.cache_resource(max_entries=512, show_spinner=False, hash_funcs=RUN_HASH)
def _read(run: Run, name: str, ticket: float, _request: AnalysisSpec) -> Opinions | None:  # noqa: ARG001
    return opinion_of(run, _request)


def verdict_cells(verdicts: Verdicts) -> tuple[str, str]:
    """Return the words of a table for the verdicts on first result and whole group."""
    first, groups = (SAID[verdict] for verdict in verdicts)
    return first, groups
