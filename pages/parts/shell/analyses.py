"""Analyses of a run: start, progress, cancel, retry, and their cached results."""

from __future__ import annotations

import html
from typing import Literal

import numpy as np
import streamlit as st

from udml_core.base.errors import listed
from udml_core.runs import Run
from udml_core.runs.analyses import (
    Analysis,
    AnalysisSpec,
    OnMap,
    Projection,
    find_analysis,
    list_analyses,
    plan_analysis,
)
from udml_core.runs.analyses.kinds.advice import Advice
from udml_core.runs.search import SCOPE_WORDS, TRAINED, frame_words
from udml_core.runs.tasks import ADVICE, LIVE_STATES
from udml_core.work import jobs

from .run_hash import RUN_HASH
from .run_status import escaped_message
from .times import time_words
from .user_errors import show_user_errors


def title_of_analysis(spec: AnalysisSpec) -> str:
    """Return an analysis's title: kind, images, embeddings and settings."""
    kind = spec.build_kind()
    if isinstance(kind, OnMap):
        return f"{kind.title} of {kind.source}, {frame_words(kind.frame)}"
    parts = kind.title, SCOPE_WORDS[spec.scope], frames_words(spec.frames), kind.setting_words
    return " · ".join(part for part in parts if part)


def short_title(spec: AnalysisSpec) -> str:
    """Return an analysis's title without what is the default, such as `UMAP` or `t-SNE · test half`."""
    kind = spec.build_kind()
    if isinstance(kind, OnMap):
        return f"{kind.title}, {frame_words(kind.frame)}"
    default = plan_analysis(spec.declared)
    parts = [kind.title, SCOPE_WORDS[spec.scope] if spec.scope != default.scope else "",
             frames_words(spec.frames) if spec.frames != default.frames else "", *kind.difference_words]
    return " · ".join(part for part in parts if part)


def frames_words(frames: tuple[str, ...]) -> str:
    """Return the names of an analysis's embeddings in words, such as `before and after training`."""
    if frames == TRAINED:
        return "before and after training"
    return "every epoch" if len(frames) > 2 else " and ".join(map(frame_words, frames))


def load_result(run: Run, analysis_id: str) -> object:
    """Return the arrays of a finished analysis, read once.

    Raises:
        UserError: The analysis is not finished or does not exist.
    """
    return _result(run, analysis_id, find_analysis(run, analysis_id).stored_status().ticket)


def load_projection(run: Run, analysis_id: str) -> Projection:
    """Return the projection of a finished analysis, read once.

    Raises:
        UserError: The analysis is not finished or does not exist.
    """
    result = load_result(run, analysis_id)
    return result if isinstance(result, Projection) else find_analysis(run, analysis_id).projection()


def load_indices(run: Run, analysis_id: str) -> np.ndarray:
    """Return the indices of the images that a finished analysis covers, read once."""
    return _indices(run, analysis_id, find_analysis(run, analysis_id).stored_status().ticket)


# The ticket changes when an analysis is computed again, so that its files are read again.


@st.cache_resource(max_entries=12, show_spinner=False, hash_funcs=RUN_HASH)
def _indices(run: Run, analysis_id: str, ticket: float) -> np.ndarray:  # noqa: ARG001
    return find_analysis(run, analysis_id).indices()


@st.cache_resource(max_entries=12, show_spinner=False, hash_funcs=RUN_HASH)
def _result(run: Run, analysis_id: str, ticket: float) -> object:  # noqa: ARG001
    return find_analysis(run, analysis_id).result()


def request_analysis(run: Run, spec: AnalysisSpec, label: str, key: str, help_text: str = "",
                     primary: bool = False) -> None:
    """Show a button that starts an analysis in the background."""
    kind: Literal["primary", "secondary"] = "primary" if primary else "secondary"
    if st.button(label, icon=":material/play_arrow:", key=key, help=help_text, type=kind):
        with show_user_errors():
            jobs.analyse(run, spec)
            st.rerun()


def show_analysis_progress(run: Run, in_corner: bool = True) -> None:
    """Show the running analyses with their progress in one line each, or why others ended.

    Progress lies over the page's corner, where app.css keeps it, so that it moves nothing; its container is always
    there, because a further element would draw what follows again. The page runs again as soon as an analysis is done.

    Args:
        run: The run.
        in_corner: Whether progress lies over the corner; otherwise it stands here, in the place of what is computed.
    """
    corner = st.container(key=f"analysis-{'corner' if in_corner else 'place'}-{run.id}", gap="xsmall")
    done, unfinished = _divide(run)
    coming = jobs.are_maps_coming(run)
    if coming or any(analysis.status().state in LIVE_STATES for analysis in unfinished):
        with corner:
            _show_live(run, done, in_corner)
        return
    for analysis in unfinished:
        if not isinstance(analysis.spec().build_kind(), Advice):  # a race has its place on Data
            _show_ended(analysis)
    if jobs.wants(run, "maps"):
        _offer_wanted_maps(run)


def _divide(run: Run) -> tuple[frozenset[str], list[Analysis]]:
    """Return the ids of the finished analyses, and the other analyses."""
    analyses = list_analyses(run)
    unfinished = [analysis for analysis in analyses if analysis.stored_status().state != "done"]
    return frozenset(analysis.id for analysis in analyses if analysis not in unfinished), unfinished


@st.fragment(run_every="1s")
@show_user_errors()
def _show_live(run: Run, done: frozenset[str], in_corner: bool) -> None:
    now_done, unfinished = _divide(run)
    live = [analysis for analysis in unfinished if analysis.status().state in LIVE_STATES]
    if now_done != done or not (live or jobs.are_maps_coming(run)):
        st.rerun(scope="app")
    for analysis in live:
        # Nothing lies over a page that its user has not asked for; the sidebar follows races.
        if not (isinstance(analysis.spec().build_kind(), Advice) or (in_corner and jobs.follows(run, analysis))):
            _show_progress(analysis)
    if not (live or in_corner):
        st.caption("Maps and judgments without labels follow in the background, unless another run trains.")


def _offer_wanted_maps(run: Run) -> None:
    """Resume the maps that are wanted but not computed, once; offer them again if they do not begin.

    They are interrupted, for example, when the machine is switched off.
    """
    key = f"maps-resumed-{run.id}"
    if not st.session_state.get(key):
        st.session_state[key] = True
        jobs.start_maps(run.folder.parent)
    with st.container(horizontal=True, vertical_alignment="center"):
        left = listed([short_title(spec) for spec in jobs.left_to_compute(run)])
        _await_maps(run, left)
        if st.button("Start them again", icon=":material/replay:", key=f"maps-{run.id}", type="tertiary"):
            jobs.start_maps(run.folder.parent)
            st.rerun()
        st.button("Not now", key=f"no-maps-{run.id}", type="tertiary", on_click=jobs.withdraw, args=(run, "maps"))


@st.fragment(run_every="2s")
@show_user_errors()
def _await_maps(run: Run, left: str) -> None:
    """Name the maps that wait for their start; the page runs again when it comes."""
    if jobs.are_maps_coming(run) or not jobs.wants(run, "maps"):
        st.rerun(scope="app")
    st.caption(f"Queued: {left or 'nothing more'}.", width="content")


def _show_progress(analysis: Analysis) -> None:
    status = analysis.status()
    line = f"{short_title(analysis.spec())}: {status.phase or 'starting'} {100 * min(1.0, status.share):.0f} %"
    line += f", {words}" if (words := time_words(status)) else ""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"progress-{analysis.id}"):
        st.html(f'<div style="display:flex;align-items:center;gap:0.7rem;font-size:0.85rem">'
                f'<span role="status" aria-live="polite">{html.escape(line)}</span>'
                f'<progress aria-hidden="true" style="flex:1;max-width:14rem" value="{status.share:.3f}"></progress>'
                "</div>", width="stretch")
        if st.button("Stop", icon=":material/stop:", key=f"cancel-{analysis.id}", type="tertiary",
                     help="Ends it without a result; it can be tried again here."):
            with st.spinner("Stopping …"):
                jobs.stop(analysis)
            st.rerun(scope="app")


def _show_ended(analysis: Analysis) -> None:
    """Show why an analysis did not finish, with buttons to retry or remove it."""
    status = analysis.status()
    said = "" if status.message.rstrip(".").lower() == status.state else status.message
    reason = " ".join(part for part in (said, ADVICE[status.state]) if part)
    message = f"{title_of_analysis(analysis.spec())} is {status.state}. {reason}"
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        (st.error if status.state == "failed" else st.warning)(escaped_message(message), width="stretch")
        if st.button("Retry", icon=":material/replay:", key=f"again-{analysis.id}"):
            with show_user_errors():
                jobs.resume(analysis)
                st.rerun()
        if st.button("Remove", icon=":material/delete:", key=f"forget-{analysis.id}"):
            analysis.remove()
            st.rerun()
