"""What is computed about a run in the background: asked for, followed, cancelled, opened."""

from __future__ import annotations

import html
from typing import Literal

import numpy as np
import streamlit as st

from pages.parts.base.run_status import UNSEEN, duration
from pages.parts.base.user_errors import show_user_errors
from udml_core import jobs
from udml_core.analyses import Analysis, AnalysisSpec, Projection, Result, find_analysis, list_analyses
from udml_core.runs import Run, find_run, runs_folder
from udml_core.tasks import ADVICE, LIVE_STATES

KIND_WORDS = {"pca": "PCA", "tsne": "t-SNE", "umap": "UMAP", "graph": "Neighbor graph", "grid": "Image grid",
              "placed": "New images"}
SCOPE_WORDS = {"all": "all images", "test": "test half", "train": "training half", "sample": "fixed sample"}


def frame_words(frame: str) -> str:
    """An embedding in words."""
    names = {"initial": "before training", "0": "before training", "final": "after training",
             "frozen": "frozen features"}
    return names.get(frame, f"epoch {frame}")


def title_of_analysis(spec: AnalysisSpec) -> str:
    """An analysis in words: kind, images, embeddings, what was set."""
    frames = "every epoch" if len(spec.frames) > 2 else " and ".join(frame_words(frame) for frame in spec.frames)
    if spec.kind in ("grid", "placed"):
        return f"{KIND_WORDS[spec.kind]} of {spec.source}, {frame_words(spec.frame)}"
    settings = {"tsne": f"perplexity {spec.perplexity:g}", "umap": f"{spec.n_neighbors} neighbors, least distance "
                f"{spec.min_dist:g}", "graph": f"{spec.n_neighbors} neighbors"}.get(spec.kind, "")
    return " · ".join(part for part in (KIND_WORDS[spec.kind], SCOPE_WORDS[spec.scope], frames, settings) if part)


def load_result(run: Run, analysis_id: str) -> Result:
    """A finished analysis's arrays, read once.

    Raises:
        UserError: it is not done, or not there.
    """
    analysis = find_analysis(run, analysis_id)
    changed = analysis.stored_status().ticket
    return _result(str(run.folder), analysis.id, changed)


def load_projection(run: Run, analysis_id: str) -> Projection:
    """The same for a map."""
    result = load_result(run, analysis_id)
    return result if isinstance(result, Projection) else find_analysis(run, analysis_id).projection()


def load_indices(run: Run, analysis_id: str) -> np.ndarray:
    """The data set positions that a finished analysis is about, read once."""
    return _indices(str(run.folder), analysis_id, find_analysis(run, analysis_id).stored_status().ticket)


@st.cache_resource(max_entries=12, show_spinner=False)
def _indices(folder: str, analysis_id: str, changed: float) -> np.ndarray:  # noqa: ARG001
    return find_analysis(find_run(folder, runs_folder()), analysis_id).indices()


@st.cache_resource(max_entries=12, show_spinner=False)
def _result(folder: str, analysis_id: str, changed: float) -> Result:  # noqa: ARG001 (computed again, read again)
    return find_analysis(find_run(folder, runs_folder()), analysis_id).result()


def request_analysis(run: Run, spec: AnalysisSpec, label: str, key: str, help_text: str = "", primary: bool = False) -> None:
    """A button that has an analysis computed in the background; nothing is computed unasked."""
    kind: Literal["primary", "secondary"] = "primary" if primary else "secondary"
    if st.button(label, icon=":material/play_arrow:", key=key, help=help_text, type=kind):
        with show_user_errors():
            jobs.analyse(run, spec)
            st.rerun()


def show_analysis_progress(run: Run) -> None:
    """The analyses that are under way, with progress and cancel, and those that ended badly."""
    pending = [one for one in list_analyses(run) if one.stored_status().state != "done"]
    if any(one.status().state in LIVE_STATES for one in pending):
        _watched(run.id)
    else:
        for analysis in pending:
            _ended(analysis)


@st.fragment(run_every="1s")
@show_user_errors()
def _watched(run_id: str) -> None:
    run = find_run(run_id, runs_folder())
    live = [one for one in list_analyses(run) if one.status().state in LIVE_STATES]
    if not live:
        st.rerun(scope="app")
    for analysis in live:
        _progress(analysis)


def _progress(analysis: Analysis) -> None:
    status = analysis.status()
    left = status.seconds_left
    line = f"{title_of_analysis(analysis.spec())}: {status.phase or 'starting'}"
    line += f", about {duration(left)} left" if left else ""
    with st.container(border=True, key=f"progress-{analysis.id}"):
        bar, button = st.columns([5, 1], vertical_alignment="center")
        with bar:
            st.progress(min(1.0, status.share), line)
            st.html(f'<div role="status" aria-live="polite" style="{UNSEEN}">{html.escape(line)}</div>')
        if button.button("Cancel", icon=":material/stop:", key=f"cancel-{analysis.id}", width="stretch"):
            with st.spinner("Stopping …"):
                jobs.stop(analysis)
            st.rerun(scope="app")


def _ended(analysis: Analysis) -> None:
    """A stopped, failed or interrupted analysis: why, and another try."""
    status = analysis.status()
    words = " ".join(part for part in (status.message, ADVICE[status.state]) if part)
    message = f"{title_of_analysis(analysis.spec())} is {status.state}. {words}"
    left, middle, right = st.columns([6, 1, 1], vertical_alignment="center")
    (left.error if status.state == "failed" else left.warning)(message)
    if middle.button("Again", icon=":material/replay:", key=f"again-{analysis.id}", width="stretch"):
        with show_user_errors():
            jobs.resume(analysis)
            st.rerun()
    if right.button("Forget", icon=":material/delete:", key=f"forget-{analysis.id}", width="stretch"):
        analysis.remove()
        st.rerun()


def rows_of(indices: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where wanted data set positions stand among ascending indices; −1 for those that are not there."""
    at = np.searchsorted(indices, wanted).clip(max=max(0, len(indices) - 1))
    return np.where(indices[at] == wanted, at, -1) if len(indices) else np.full(len(wanted), -1)
