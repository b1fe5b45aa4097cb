"""The queue: the running run first, waiting runs as lines that can be moved."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.parts.base.run_status import ICONS, escaped, live_panel, run_title, stop_button
from pages.parts.base.user_errors import show_user_errors
from udml_core import jobs
from udml_core.runs import Run, runs_folder
from udml_core.tasks import LIVE_STATES

MOST_LINES = 20


def live_runs(runs: Sequence[Run]) -> list[Run]:
    """Return the waiting and running runs."""
    return [run for run in runs if run.status().state in LIVE_STATES]


def show_queue(live: Sequence[Run]) -> None:
    """Show the running runs, then the waiting ones in the order in which they start."""
    waiting = [run for run in jobs.waiting_runs(runs_folder()) if run in live]
    for run in live:
        if run not in waiting:
            live_panel(run, "runs")
    if not waiting:
        return
    if len(waiting) == len(live) == 1:
        live_panel(waiting[0], "runs")
        return
    with st.container(border=True, gap="small"):
        st.caption(f"{len(waiting)} waiting, next first" if len(waiting) > 1 else "1 waiting")
        for place, run in enumerate(waiting[:MOST_LINES]):
            _waiting_line(run, place, len(waiting))
        if len(waiting) > MOST_LINES:
            st.caption(f"and {len(waiting) - MOST_LINES} more")


def _waiting_line(run: Run, place: int, count: int) -> None:
    """Show a waiting run as one line with buttons that move or cancel it."""
    title = run_title(run)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"{ICONS['waiting']} {place + 1}. {escaped(title)}", width="stretch")
        for icon, to, name, off in ((":material/arrow_upward:", place - 1, "Start earlier", place == 0),
                                    (":material/arrow_downward:", place + 1, "Start later", place == count - 1)):
            if st.button("", icon=icon, key=f"queue-{name}-{run.id}", disabled=off, help=f"{name}: {title}"):
                with show_user_errors():
                    jobs.move(run, to)
                    st.rerun(scope="app")
        with st.container(width=110):
            stop_button(run, "queue", "Cancel", "The run does not start. It stays in the list and can be resumed.")
