"""A sweep as a whole: progress with time left, and the buttons that stop, resume or forget it."""

from __future__ import annotations

import html

import streamlit as st

from udml_core.base.errors import duration
from udml_core.work import sweeps
from udml_core.work.sweeps import GroupProgress, GroupState, Sweep

from ..shell.run_status import UNSEEN
from ..shell.user_errors import show_user_errors
from ..shell.views import view_link

# A long sweep is read less often, because each reading looks at every run.
LEAST_SECONDS, RUNS_A_SECOND = 2.0, 100
STATE_WORDS: dict[GroupState, str] = {
    "done": "finished", "running": "running", "waiting": "waiting", "failed": "failed", "stopped": "stopped",
    "interrupted": "interrupted", "missing": "not created"}


def progress_line(progress: GroupProgress) -> str:
    """Return a sweep's progress in a line: the runs by state, and the time left."""
    counts = ", ".join(f"{progress.counts[state]} {words}" for state, words in STATE_WORDS.items()
                       if progress.counts.get(state))
    total = sum(progress.counts.values())
    left = progress.seconds_left
    return f"{total} runs: {counts}" + (f". About {duration(left)} left" if left is not None else "")


def show_progress(sweep: Sweep, progress: GroupProgress) -> None:
    """Show the progress; while runs wait or run, it is read again, and the page follows when a run ends."""
    if not progress.live:
        st.markdown(f"**{progress_line(progress)}.**")
        return
    seconds = max(LEAST_SECONDS, sum(progress.counts.values()) / RUNS_A_SECOND)
    st.fragment(_live_bar, run_every=seconds)(sweep, progress.live)


def _live_bar(sweep: Sweep, live_before: int) -> None:
    progress = sweeps.progress_of(sweep.members())
    line = progress_line(progress)
    st.progress(min(1.0, progress.share), line)
    st.html(f'<div role="status" aria-live="polite" style="{UNSEEN}">{html.escape(line)}</div>')
    if progress.live != live_before:
        st.rerun(scope="app")


def show_actions(sweep: Sweep, progress: GroupProgress) -> None:
    """Show what can be done with the group."""
    ended = progress.counts.keys() & {"stopped", "interrupted", "missing", "failed"}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if progress.live and st.button("Stop all", icon=":material/stop:", key="sweep-stop", help=(
                "Stops all waiting and running runs. Finished epochs are kept, and the sweep can be resumed.")):
            with show_user_errors(), st.spinner("Stopping …"):
                sweeps.stop_sweep(sweep)
                st.rerun()
        if ended and st.button("Resume all", icon=":material/play_arrow:", key="sweep-resume", type="primary", help=(
                "Resumes stopped and interrupted runs, tries failed runs again, and creates missing runs that fit into "
                "the budget.")):
            with show_user_errors(), st.spinner("Queueing …"):
                sweeps.resume_sweep(sweep, failed=True)
                st.rerun()
        view_link("runs", label="Runs", icon=":material/monitoring:")
        if st.button("Forget the group", icon=":material/delete:", key="sweep-forget", type="tertiary",
                     help="Removes the group from this list. Its runs stay on the page Runs."):
            sweeps.forget_sweep(sweep)
            st.query_params.pop("sweep", None)
            st.rerun()
    st.caption(_described(sweep))


def _described(sweep: Sweep) -> str:
    """Return the plan of a sweep in a sentence."""
    spec = sweep.spec
    search = "All combinations" if spec.search == "grid" else f"{spec.draws} drawn combinations for each method"
    budget = f" Runs are created while they fit into {spec.budget:g} minutes." if spec.budget is not None else ""
    seeds = len(spec.seeds)
    return f"{search}, {'one seed' if seeds == 1 else f'{seeds} seeds'} each. Runs that exist are not repeated.{budget}"
