"""Grids of a run's maps; a grid that is chosen computes itself."""

from __future__ import annotations

import streamlit as st

from udml_core.runs import Run
from udml_core.runs.analyses import (
    AnalysisSpec,
    ImageGrid,
    analysis_at,
    finished_analyses,
    list_analyses,
    plan_analysis,
)
from udml_core.runs.analyses.kinds.grid import Grid
from udml_core.runs.tasks import LIVE_STATES
from udml_core.work import jobs

from ..shell.analyses import load_result, request_analysis

STARTED = "grids-started"
"""Key of the session: the grids that it started, so that a grid that was cancelled or removed does not come back."""


def grid_of(run: Run, source: str, frame: str) -> ImageGrid | None:
    """Return the grid of a map's embedding; None if it is not computed."""
    spec = _spec(source, frame)
    if not analysis_at(run, spec).is_done():
        return None
    grid = load_result(run, spec.id)
    assert isinstance(grid, ImageGrid)
    return grid


def compute_grid(run: Run, source: str, frame: str) -> None:
    """Start the grid of a map's embedding unless it was started before; one grid of a run is computed at a time.

    An example is copied to the user's runs first, so the page runs again to show the copy.
    """
    spec = _spec(source, frame)
    started: set[tuple[str, str]] = st.session_state.setdefault(STARTED, set())
    if (run.id, spec.id) in started or analysis_at(run, spec).folder.exists() or is_computing(run):
        return
    started.add((run.id, spec.id))
    jobs.analyse(run, spec)
    st.rerun(scope="app")


def offer_grid(run: Run, source: str, frame: str) -> None:
    """Show the button that computes a grid that this session cancelled or removed."""
    if not is_computing(run) and not analysis_at(run, _spec(source, frame)).folder.exists():
        request_analysis(run, _spec(source, frame), "Compute grid", "grid-compute", primary=True)


def is_computing(run: Run) -> bool:
    """Return whether a grid of the run is being computed."""
    done = {analysis.id for analysis in finished_analyses(run, Grid)}
    return any(analysis.spec().kind == Grid.name and analysis.status().state in LIVE_STATES
               for analysis in list_analyses(run) if analysis.id not in done)


def _spec(source: str, frame: str) -> AnalysisSpec:
    return plan_analysis(Grid, source=source, frame=frame)
