"""The steps of a start, with a mark at the step that the run is at."""

from __future__ import annotations

import html

import streamlit as st

from udml_core.runs import Run, runs_folder
from udml_core.runs.tasks import LIVE_STATES, Status
from udml_core.work import jobs

KEPT_READY = 20.0
"""Seconds between two notes of an open page that a worker shall wait."""
STEPS = ("Start the process", "Load the libraries", "Load the images and features", "Measure the start",
         "Train the first epoch")
QUEUED, LIBRARIES, IMAGES, MEASURING, TRAINING = range(len(STEPS))


@st.fragment(run_every=KEPT_READY)
def keep_worker_ready() -> None:
    """Keep a worker with loaded libraries while the page is open, so that a training begins at the click."""
    jobs.keep_ready(runs_folder())


def is_starting(run: Run, status: Status) -> bool:
    """Return whether a run on this machine is on its way to the end of its first epoch, with no run ahead of it."""
    if status.state not in LIVE_STATES or status.epoch or jobs.engine_of(run) != "local":
        return False
    return status.state == "running" or not jobs.queue_position(run, run.root)


def step_of(status: Status, is_process: bool, is_measured: bool) -> int:
    """Return the position of the current step in `STEPS`.

    Args:
        status: The status of a run that starts.
        is_process: Whether its process was started.
        is_measured: Whether the embedding before training is stored.
    """
    if status.phase == "training":
        return TRAINING if is_measured else MEASURING
    if status.state == "running":
        return IMAGES
    return LIBRARIES if is_process else QUEUED


def at_step(run: Run, status: Status) -> int:
    """Return the position of the current step of a run that starts; see `is_starting`."""
    return step_of(status, (run.folder / "log.txt").exists(), bool(run.epoch_numbers()))


def show_steps(run: Run, status: Status) -> None:
    """Show the steps of a start; see `is_starting`."""
    st.html(steps_of(at_step(run, status)))


def show_steps_ahead() -> None:
    """Lay out the steps before the start, unseen: the browser shows them at the click, before Python answers."""
    st.html(steps_of(QUEUED, " ahead"))


def steps_of(at: int, kind: str = "") -> str:
    """Return the list of the steps as HTML.

    Args:
        at: Position of the current step.
        kind: Further classes of the list, after a space.
    """
    states = ["done"] * at + ["now"] + ["later"] * (len(STEPS) - at - 1)
    rows = "".join(f'<li class="{state}"{" aria-current=step" if state == "now" else ""}>{html.escape(words)}</li>'
                   for state, words in zip(states, STEPS, strict=True))
    return f'<ol class="lab-steps{kind}" aria-label="Steps of the start">{rows}</ol>'
