"""The queue: the running run first, waiting runs as lines that can be moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from udml_core.runs import Run, list_runs, runs_folder
from udml_core.runs.tasks import LIVE_STATES, State
from udml_core.work import jobs

from ..shell.run_status import ICONS, escaped, live_panel, run_title, run_titles, stop_button
from ..shell.user_errors import show_user_errors

MOST_LINES = 20


def live_states(runs: Sequence[Run]) -> dict[Run, State]:
    """Return the states of the waiting and running runs."""
    states = {run: run.status().state for run in runs}
    return {run: state for run, state in states.items() if state in LIVE_STATES}


def follow_queue(states_before: Mapping[Run, State]) -> None:
    """Show the queue; the page runs again when a run is queued, starts or ends, so that the leaderboard follows."""
    states = live_states(list_runs(runs_folder()))
    show_queue(list(states))
    if states != states_before:
        st.rerun(scope="app")


def show_queue(live: Sequence[Run]) -> None:
    """Show the running runs, then the waiting ones in the order in which they start."""
    waiting = jobs.waiting_runs(runs_folder(), among=live)
    is_waiting = set(waiting)
    for run in live:
        if run not in is_waiting:
            live_panel(run, "runs")
    if not waiting:
        return
    if len(waiting) == len(live) == 1:
        live_panel(waiting[0], "runs")
        return
    with st.container(border=True, gap="small"):
        with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
            st.caption(f"{len(waiting)} waiting, next first" if len(waiting) > 1 else "1 waiting", width="content")
            if len(waiting) > 1:
                _cancel_all(len(waiting))
        first = 0
        if len(waiting) > MOST_LINES:
            pages = -(-len(waiting) // MOST_LINES)
            first = MOST_LINES * (st.number_input(
                f"Page of the queue, 1 to {pages}", 1, pages, key="queue-page", width=200,
                help=f"Each page lists {MOST_LINES} waiting runs in the order in which they start.") - 1)
        titles = run_titles(waiting)
        for place, run in enumerate(waiting[first:first + MOST_LINES], first):
            _waiting_line(run, titles[run.id], place, len(waiting))


def show_waiting_analyses() -> None:
    """Show the analyses that wait for the analyses before them, each with a button that cancels it."""
    waiting = jobs.waiting_analyses(runs_folder())
    if not waiting:
        return
    with st.expander(f"{len(waiting)} waiting analyses" if len(waiting) > 1 else "1 waiting analysis"):
        for place, analysis in enumerate(waiting[:MOST_LINES]):
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                title = f"{analysis.id} of {run_title(analysis.run)}"
                st.markdown(f"{ICONS['waiting']} {place + 1}. {escaped(title)}", width="stretch")
                with st.container(width=110):
                    stop_button(analysis, f"queue-{analysis.run.id}", "Cancel", "The analysis is not computed.")
        if len(waiting) > MOST_LINES:
            st.caption(f"The first {MOST_LINES} of {len(waiting)} are listed; the others follow as these end.")


def _cancel_all(count: int) -> None:
    """Show the button that cancels all waiting runs, behind a second click."""
    with st.popover("Cancel all", icon=":material/stop:", help="Cancel all waiting runs; a running run continues."):
        st.markdown(f"{count} waiting runs do not start. They stay in the list and can be resumed one by one.")
        if st.button(f"Cancel {count} runs", icon=":material/stop:", key="queue-cancel-all", type="primary"):
            with show_user_errors():
                with st.spinner(f"Canceling {count} runs …"):
                    jobs.cancel_waiting(runs_folder())
                st.rerun(scope="app")


def _waiting_line(run: Run, title: str, place: int, count: int) -> None:
    """Show a waiting run as one line with buttons that move or cancel it."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"{ICONS['waiting']} {place + 1}. {escaped(title)}", width="stretch")
        for icon, to, name, off in ((":material/vertical_align_top:", 0, "Start next", place == 0),
                                    (":material/arrow_upward:", place - 1, "Start earlier", place == 0),
                                    (":material/arrow_downward:", place + 1, "Start later", place == count - 1)):
            if st.button("", icon=icon, key=f"queue-{name}-{run.id}", disabled=off, help=f"{name}: {title}"):
                with show_user_errors():
                    jobs.move(run, to)
                    st.rerun(scope="app")
        with st.container(width=110):
            stop_button(run, "queue", "Cancel", "The run does not start. It stays in the list and can be resumed.")
