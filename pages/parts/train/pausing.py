"""The button below Lab's map that pauses a training, or its picture alone when the training is done."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import streamlit as st

from udml_core.base.errors import UserError
from udml_core.runs import Run
from udml_core.runs.tasks import LIVE_STATES, TRAINING, Status
from udml_core.work import jobs

KEY = "lab-pause"
"""Key of the button in both of its states, so that the keyboard's focus stays on it."""


def can_pause(run: Run, status: Status) -> bool:
    """Return whether a training can rest: several processes would wait for each other, and a cluster for nothing."""
    return (status.state == "running" and status.phase == TRAINING and run.spec().processes == 1
            and jobs.engine_of(run) == "local")


def rests(run: Run, status: Status) -> bool:
    """Return whether the user has paused a run that trains; its worker rests after its current step."""
    return status.state in LIVE_STATES and run.pause_requested()


def rest(run: Run) -> None:
    """Pause a run while it trains; a training that has just ended does not change."""
    if can_pause(run, run.status()):
        with suppress(UserError, OSError):  # a removed run
            run.request_pause()


def show_pause(run: Run, status: Status, pause: Callable[[], None]) -> None:
    """Show the button that pauses the training, or the picture of a training that is done."""
    if can_pause(run, status):
        st.button("Pause training", icon=":material/pause:", key=KEY, shortcut="P", on_click=pause,
                  help="The training rests after its current step, with nothing lost, and keeps its device.")
    elif status.state == "done":
        st.button("Pause", icon=":material/pause:", key=KEY, shortcut="P", on_click=pause,
                  help="Stops the picture. The training is done already.")


def show_continue(go_on: Callable[[], None]) -> None:
    """Show the button that continues a paused training."""
    st.button("Continue training", icon=":material/play_arrow:", key=KEY, shortcut="P", on_click=go_on,
              help="The next step of the training follows; the map and the curves move again.")
