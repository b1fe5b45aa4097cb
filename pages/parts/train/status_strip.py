"""The line above Lab's map: what the map shows, and while a run trains its epoch, score, time left and Stop."""

from __future__ import annotations

import html
import time
from collections.abc import Sequence
from contextlib import suppress

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from udml_core.base.errors import UserError, duration
from udml_core.base.steady import SteadyTime
from udml_core.data.dataset import step_name
from udml_core.exploration.race_figures import SAID
from udml_core.exploration.race_measured import ERRORS, WIDER, Verdict
from udml_core.numerics.measures import curve_of
from udml_core.runs import Run
from udml_core.runs.baselines import read_baselines
from udml_core.runs.selection import ERROR
from udml_core.runs.tasks import LIVE_STATES, Status
from udml_core.work import jobs

from ..shell.cached import dataset_at_hand
from ..shell.run_status import UNSEEN, progress_of, state_line, stop_button
from ..shell.times import time_words
from .served_curves import GAIN, titles_of, value_words
from .start_steps import STEPS, at_step, is_starting
from .watched import rows_of_moments

FEATURES = "features"
"""How the steps of a start begin that may take minutes: the features of the images, or of several views of each."""
STEADY = "lab-time-left"
"""Session key, with a run's id, of the time left that is shown."""
Cell = tuple[str, str, str]
"""A small heading, a value in large type, and a note behind it."""


def strip_place() -> DeltaGenerator:
    """Return the place above the map; it is as high before, during and after a training, so that the map rests."""
    return st.container(key="lab-status", horizontal=True, vertical_alignment="center", gap="small")


def show_status(place: DeltaGenerator, run: Run, status: Status, epoch: float | None, newest: float | None = None,
                is_moving: bool = True) -> None:
    """Show how far a run that trains has come, its score at the shown epoch, and the button that cancels.

    Args:
        place: The place above the map.
        run: The run.
        status: Its status.
        epoch: The epoch that the map shows; None before the first.
        newest: The newest stored epoch, which the map may not have reached yet; None before the first.
        is_moving: Whether the map goes on by itself.
    """
    is_live = status.state in LIVE_STATES
    line = progress_line(run, status)
    heard = f'<div role="status" aria-live="polite" style="{UNSEEN}">{html.escape(line)}</div>' if is_live else ""
    with place:
        with st.container(key="lab-watch" if is_live else "lab-ended"):
            st.html(strip_of(cells_of(run, status, epoch, newest, is_moving), share_of(status)) + heard)
        if is_live:
            with st.container(width="content"):
                stop_button(run, "lab", "Stop",
                            "Ends the training. Finished epochs are kept, and Resume goes on after the last of them; "
                            "Pause below the map ends nothing.")


def cells_of(run: Run, status: Status, epoch: float | None, newest: float | None = None, is_moving: bool = True
             ) -> list[Cell]:
    """Return what the line says of a run after an epoch: the epoch of the map, and in words how far the training is.

    Args:
        run: The run.
        status: Its status.
        epoch: The epoch that the map shows; None before the first.
        newest: The newest stored epoch, which the map may not have reached yet; None before the first.
        is_moving: Whether the map goes on by itself.
    """
    score = score_of(run, epoch)
    if status.state not in LIVE_STATES:
        is_played = status.state == "done" and is_moving and epoch is not None
        return [_after_training(status, epoch), *score] if is_played and epoch is not None else score
    if epoch is None and is_starting(run, status):
        at = at_step(run, status)
        left, waited = _start_left(run, status), duration(max(0.0, time.time() - status.ticket))
        own = "" if left is not None else waited  # else it stands beside the time that is left
        what = f"Compute {step_name(status.phase)}" if status.phase.startswith(FEATURES) else STEPS[at]
        step_left = time_words(status) if left is None else ""
        return [(f"Starting, step {at + 1} of {len(STEPS)}", what, own),
                *([("This step", step_left, "")] if step_left else []),
                *([] if left is None else [("Results in", _steady_words(run, left), f"{waited} so far")])]
    if status.state != "running" or status.phase != "training":
        if epoch is None or status.state != "running":
            return [("Now", state_line(run, status).rstrip("."), ""), *score]
        left = jobs.training_left(run.spec(), status)
        follows = ("Results follow after", status.phase, "") if left is None else (
            "Results in", _steady_words(run, left), _then_words(run))
        return [_after_training(status, epoch), *score, follows]
    shown = min(status.epoch + 1, status.epochs) if epoch is None else epoch
    lags = epoch is not None and newest is not None and newest > epoch
    return [("Epoch shown" if lags else "Epoch", f"{round(shown, 1):g} of {status.epochs}",
             f"training is at {round(newest or 0, 1):g}" if lags else ""), *score, _time_left(run, status)]


def _time_left(run: Run, status: Status) -> Cell:
    """Return how long a run that trains takes until its results, or that it rests."""
    if run.pause_requested():
        return "Training", "paused" if status.is_paused else "pausing …", ""
    left = jobs.training_left(run.spec(), status)
    if left is None:
        return "Results in", "not known yet", "the first training here measures it"
    passed = time.time() - (status.started or time.time())
    return "Results in", _steady_words(run, left), ", ".join(filter(None, (
        f"{duration(max(0.0, passed))} so far", _then_words(run))))


def _then_words(run: Run) -> str:
    """Return how long judges take after the results, where no labels judge them; empty until it was measured here."""
    with suppress(UserError):
        if seconds := jobs.judging_seconds(run.spec(), dataset_at_hand(run.spec().dataset)):
            return f"then {duration(seconds)} for the judges"
    return ""


def _steady_words(run: Run, left: float) -> str:
    """Return the time left of a run in words, which holds while estimates jump on a busy machine.

    While an estimate is longer, the words say so.
    """
    steady: SteadyTime = st.session_state.setdefault(f"{STEADY}-{run.id}", SteadyTime())
    words = duration(steady(time.time(), left))
    return f"{'more than' if steady.is_late else 'about'} {words}"


def _start_left(run: Run, status: Status) -> float | None:
    """Return the seconds until a run that does not train yet has its results; None if unknown."""
    with suppress(UserError):
        return jobs.start_left(run.spec(), dataset_at_hand(run.spec().dataset), status)
    return None


def _after_training(status: Status, epoch: float) -> Cell:
    """Return what the line says of an epoch that the map shows when the training is done."""
    total = f" of {status.epochs}" if status.epochs else ""
    return "Trained, showing", f"epoch {round(epoch, 1):g}{total}", ""


def score_of(run: Run, epoch: float | None) -> list[Cell]:
    """Return the score at an epoch beside PCA's; nothing if the epoch has none.

    Without labels, it is what a judge says until then, as a gain without a unit says nothing; once the run has ended,
    the verdict of all judges beside the map says more.

    Args:
        run: The run.
        epoch: The epoch; None before the first.
    """
    rows, titles = rows_of_moments(run), titles_of(run)
    known = [] if epoch is None else [row for row in rows if row["epoch"] <= epoch]
    for name in titles:
        judged = [row for row in known if f"{name}{ERROR}" in row]
        if judged and curve_of(name).axis == GAIN:
            if run.stored_status().state not in LIVE_STATES:
                return []
            at, served = judged[-1], titles[name].partition(",")[0]
            when = " so far" if at["epoch"] else " before training"
            return [(served, f"{_judged_words(at[name], at[f'{name}{ERROR}'])}{when}", "")]
    row = next((row for row in known if row["epoch"] == epoch), {})
    measured = next((name for name in titles if row.get(name) is not None), "")
    if not measured or curve_of(measured).axis == GAIN:
        return []
    beaten = ((read_baselines(run) or {}).get("centered pca") or {}).get(measured)
    note = "" if beaten is None else f"PCA {value_words(measured, beaten)}"
    return [(titles[measured].partition(", which")[0], value_words(measured, row[measured]), note)]


def _judged_words(gain: float, error: float) -> str:
    """Return what judges say of a gain with its standard error; the interval is as wide as in a race."""
    is_sure = abs(gain) > ERRORS * WIDER * error
    said: Verdict = "cannot tell" if not is_sure else "better" if gain > 0 else "worse"
    return str(SAID[said])


def share_of(status: Status) -> float | None:
    """Return the finished share of a run that trains; None for a run that has ended."""
    if status.state not in LIVE_STATES:
        return None
    return progress_of(status) if status.state == "running" else 0.0


def strip_of(cells: Sequence[Cell], share: float | None) -> str:
    """Return the line as HTML.

    Args:
        cells: Its parts.
        share: The finished share, drawn as a bar below them; None without a bar.
    """
    parts = "".join(f"<div><small>{html.escape(name)}</small><b>{html.escape(value)}</b>"
                    f"{f'<i>{html.escape(note)}</i>' if note else ''}</div>" for name, value, note in cells)
    bar = "" if share is None else (f'<div class="bar" role="progressbar" aria-label="Finished" aria-valuemin="0" '
                                    f'aria-valuemax="100" aria-valuenow="{100 * share:.0f}">'
                                    f'<i style="width: {100 * share:.1f}%"></i></div>')
    return f'<div class="lab-strip"><div class="cells">{parts}</div>{bar}</div>'


def progress_line(run: Run, status: Status) -> str:
    """Describe the state in a line, with the time until the results if all of it was measured on this machine."""
    if status.phase != "training" or status.state != "running":
        left = _start_left(run, status)
        return state_line(run, status) if left is None else (
            f"{status.phase.capitalize()}, results in {_steady_words(run, left)}")
    line = f"Training epoch {min(status.epoch + 1, status.epochs)} of {status.epochs}"
    if status.is_paused:
        return f"{line}, paused"
    left = jobs.training_left(run.spec(), status)
    return line if left is None else f"{line}, results in {_steady_words(run, left)}"
