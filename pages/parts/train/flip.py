"""The flip between raw features, start and result on Lab's map, after a run has ended."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from udml_core.base.errors import capitalized
from udml_core.runs import Run
from udml_core.runs.tasks import Status

from .start_map import raw_words
from .watched import Watched, first_frame, untrained

RAW, START, RESULT = "raw", "start", "result"


def flip(strip: DeltaGenerator, watched: Watched, epochs: Sequence[float], status: Status) -> str:
    """Show the control that flips the map between raw features, start and result.

    Args:
        strip: The place above the map.
        watched: The images.
        epochs: The stored epochs.
        status: The status of the run.

    Returns:
        The name of the raw features if the map shows them; empty if it shows the chosen epoch.
    """
    run = watched.run
    titles = {RESULT: "After training" if status.state == "done" else f"After epoch {epochs[-1]:g}"}
    if len(epochs) > 1:
        titles = {START: "Start"} | titles
    if first_frame(watched) is not None and untrained(watched) is not None:
        titles = {RAW: capitalized(raw_words(run.spec()).removeprefix("the "))} | titles
    if len(titles) < 2:
        return ""
    ends = {START: epochs[0], RESULT: last_epoch(run, epochs, status)}
    st.session_state.setdefault(flip_key(run), RESULT)
    with strip:
        st.segmented_control("Map", list(titles), key=flip_key(run), label_visibility="collapsed", width="content",
                             format_func=titles.__getitem__)
    if (chosen := st.session_state[flip_key(run)]) in ends:
        st.session_state[epoch_key(run)] = ends[chosen]  # the slider below the map follows
    return raw_words(run.spec()) if st.session_state[flip_key(run)] == RAW else ""


def flip_key(run: Run) -> str:
    """Return the key of the control."""
    return f"lab-flip-{run.id}"


def epoch_key(run: Run) -> str:
    """Return the key of the slider of the epochs below the map."""
    return f"lab-epoch-{run.id}"


def last_epoch(run: Run, epochs: Sequence[float], status: Status) -> float:
    """Return the epoch that a run keeps; the last stored epoch of a run that has no result."""
    return float(run.kept_epoch()) if status.state == "done" else epochs[-1]


def leave_flip(run: Run) -> None:
    """Show the epoch that the slider chose."""
    st.session_state[flip_key(run)] = None
