"""The verdict without labels, read once: its marks in tables, and its sentence."""

from __future__ import annotations

import streamlit as st

from udml_core.base.errors import UserError
from udml_core.runs import Run
from udml_core.runs.analyses import AnalysisSpec, analysis_at
from udml_core.runs.analyses.kinds.opinion import Opinions, Verdicts
from udml_core.runs.opinions import OF_RUN, agreement, opinion_of

from .run_hash import RUN_HASH

SIGNS = {"better": "▲", "worse": "▼", "cannot tell": "?"}
"""The sign of each verdict, so that none relies on color."""
AGREES, DIFFERS = "✓", "≠"
"""Whether measures from labels agree with a verdict."""


def stored_opinion(run: Run, request: AnalysisSpec = OF_RUN) -> Opinions | None:
    """Return a finished second opinion of a run, read once; None if there is none or its file is damaged."""
    analysis = analysis_at(run, request)
    return _read(run, analysis.id, analysis.stored_status().ticket, request) if analysis.is_done() else None


# The ticket changes when the second opinion is computed again.
@st.cache_resource(max_entries=512, show_spinner=False, hash_funcs=RUN_HASH)
def _read(run: Run, name: str, ticket: float, _request: AnalysisSpec) -> Opinions | None:  # noqa: ARG001
    try:
        return opinion_of(run, _request)
    except UserError:
        return None


def verdict_marks(run: Run, verdicts: Verdicts) -> str:
    """Return the verdicts on first result and whole group in short words, and whether labels agree.

    Returns:
        Such as "▲ better · ▼ worse ≠", where the labels disagree with a verdict.
    """
    compared = set(agreement(verdicts, run.evaluation()).values())
    sign = f" {DIFFERS}" if "disagree" in compared else f" {AGREES}" if "agree" in compared else ""
    return marks(verdicts) + sign


def marks(verdicts: Verdicts) -> str:
    """Return two verdicts with their signs, such as ▲ better · ? cannot tell."""
    return " · ".join(f"{SIGNS[verdict]} {verdict}" for verdict in verdicts)
