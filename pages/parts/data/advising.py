"""Find the best search of a data set: the choices, and the live race."""

from __future__ import annotations

import html
import math
import time
from contextlib import suppress

import streamlit as st

from udml_core.base.errors import UserError, counted, duration, listed
from udml_core.base.ticking import ALMOST
from udml_core.data.dataset import Dataset, step_name
from udml_core.data.encoders import EncoderSpec
from udml_core.data.judge_names import WEAK
from udml_core.data.judging import encoder_title
from udml_core.exploration.jury import independent
from udml_core.exploration.race_advice import advice_words
from udml_core.exploration.race_clock import MET, UNKNOWN, Countdown, clock_words
from udml_core.exploration.race_figures import MEASURES
from udml_core.exploration.race_gaps import minutes_words
from udml_core.exploration.race_measured import Serves
from udml_core.runs import Run, runs_folder
from udml_core.runs.analyses import Analysis, AnalysisSpec, list_analyses, plan_analysis
from udml_core.runs.analyses.kinds.advice import Advice
from udml_core.runs.analyses.kinds.opinion import JUDGES
from udml_core.runs.tasks import LIVE_STATES, Status
from udml_core.work import jobs
from udml_core.work.jobs.advising import (
    Advising,
    find_advice,
    find_features,
    planned_features,
    race_for,
    start_advice,
)
from udml_core.work.jobs.concluding import conclusion_of, suggested_by_race
from udml_core.work.jobs.live_races import other_live_races
from udml_core.work.jobs.raced import kind_of, race_of
from udml_core.work.jobs.stages import COARSE

from ..shell.address import choose_segment, keep_clicks, number_from_address, write_address
from ..shell.empty_state import show_empty
from ..shell.race_line import end_of
from ..shell.run_status import UNSEEN, escaped, escaped_message
from ..shell.user_errors import keep_user_errors, show_user_errors
from .answer import own_line
from .computed import choose_backbone, chosen_encoder
from .copies import offer_deciding, offer_excluding, show_audit_first
from .ended_race import ICON, show_ended
from .looking_for import choose_aim
from .race import show_race
from .using import ACTION, BUDGETS, FOLLOW, awaited_search, chosen_search, show_awaited, show_race_button

LATE = 10.0
"""Seconds from which a preparation is late that still takes twice the time that was said."""
SILENT = 5.0
"""Seconds without a report of the race after which the page says how long ago the last was."""
OF_TRAINING = ("", "training", "embedding", "loading the network")
"""Steps whose names say nothing to a user who trains nothing."""
BEHIND = "other work ends first"
"""What a preparation waits for."""
LONGEST = 1440.0
"""The longest time of a race in minutes."""
WHAT = ("Tries many ways to search, from seconds of arithmetic to short trainings, and keeps what finds better images "
        "than the plain search. Networks that took no part judge it. No label is read.")
"""What a race does."""


def judges_line(backbone: str) -> str:
    """Return who judges, in Markdown.

    Args:
        backbone: The backbone of the frozen features, which judges nothing.
    """
    judges = independent(JUDGES, {backbone})
    named = listed(["the raw pixels" if name in WEAK else escaped(encoder_title(name)) for name in judges])
    return f"The judges: {named}." if judges else "No judge is left that took no part."


def whole_time_words(dataset: Dataset, encoder: EncoderSpec, minutes: float) -> str:
    """Return how long a race takes with what comes before it, in a sentence; empty if nothing does, or if unknown."""
    run = find_features(dataset, encoder, runs_folder())
    if run is not None and run.status().can_search:
        return ""
    with suppress(UserError):  # such as too few images, which the button says
        expected = jobs.estimate(planned_features(dataset, encoder) if run is None else run.spec(), dataset)
        if expected.measured:
            before = COARSE * math.ceil(expected.seconds_until_search / COARSE)
            whole = duration(60 * minutes + before)
            return f"In all about {whole}: the images are prepared first, in about {duration(before)}."
    return ""


def action_of(dataset: Dataset) -> str:
    """Return what the button to the best search says: find it, follow the race that runs, or see what a race found."""
    if other_live_races(dataset, chosen_encoder(dataset), None, runs_folder()):
        return FOLLOW
    return "See the best search that was found" if has_race(dataset) else ACTION


def has_race(dataset: Dataset) -> bool:
    """Return whether a race for the best search of the images has finished."""
    return suggested_by_race(dataset, runs_folder()) is not None


def show_advice(dataset: Dataset) -> None:
    """Show what the user looks for, and the race that answers for it, or the choices of a first race."""
    if dataset.is_table:
        st.info("Judges read images, and this data set is a table of vectors. A second table of vectors of the same "
                "images can judge: `udml advise TABLE --judges other.parquet`.", icon=":material/info:")
        return
    with st.container(key="advice"):  # on a phone, the verdict of an ended race stands above the choices
        _show_race_of(dataset, chosen_encoder(dataset), awaited_search())


def _show_race_of(dataset: Dataset, encoder: EncoderSpec, awaited: Analysis | None) -> None:
    """Show the choices and the race; `awaited` is the refinement of a search that was chosen, while it is computed."""
    aim = choose_aim(dataset, encoder)
    spec = _race_in_view(dataset, encoder, aim)
    state = Advising() if spec is None else find_advice(dataset, encoder, spec, runs_folder())
    is_ended = state.analysis is not None and state.analysis.status().state not in LIVE_STATES
    if awaited is not None and not is_ended:
        show_awaited(awaited)
    if other_live_races(dataset, encoder, spec, runs_folder()):
        _show_other_live(dataset, encoder, spec)
    if spec is None or (state.analysis is None and not state.is_wanted):
        _show_taking_part(dataset)
        _offer(dataset, encoder, aim)
        return
    key = f"{spec.id}-{dataset.fingerprint[:12]}-{encoder.key}"
    # A race of the other aim that answers for this one has no name in the address: another race may have its time.
    write_address("budget", f"{kind_of(spec).budget:g}" if kind_of(spec).serves == aim else "")
    if state.analysis is None and state.run is not None:
        _await_features(dataset, encoder, spec, state.run)
    elif state.analysis is not None and not is_ended:
        _show_live(state.analysis, key, aim)
    elif state.analysis is not None:
        _show_stopped_beside(state.analysis, aim)
        show_ended(state.analysis, key, dataset, encoder, aim, awaited)
        _show_taking_part(dataset)


def _race_in_view(dataset: Dataset, encoder: EncoderSpec, aim: Serves) -> AnalysisSpec | None:
    """Return the request of the race that the address names, else of the one that answers for an aim; None without one.
    """
    budget = number_from_address("budget", 0.0, 0.0, LONGEST)
    if budget:
        named = plan_analysis(Advice, budget=budget, serves=aim)
        state = find_advice(dataset, encoder, named, runs_folder())
        if state.analysis is not None or state.is_wanted:
            return named
    return race_for(dataset, encoder, aim, runs_folder())


def _show_stopped_beside(shown: Analysis, aim: Serves) -> None:
    """Say that a race for an aim was stopped that is newer than the one in view, with a button that shows it."""
    newest = next((race for race in list_analyses(shown.run, Advice) if kind_of(race.spec()).serves == aim), shown)
    if newest.id != shown.id and not newest.is_done():
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="advice-stopped"):
            st.caption(f":material/history: A newer race {end_of(newest.status().state)}.", width="content")
            show_race_button("Show it", newest.spec(), "advice-stopped-show")


def _show_taking_part(dataset: Dataset) -> None:
    """Say which copies and poor images take part, before a race, and below the verdict of one that has ended."""
    offer_deciding(dataset)
    offer_excluding(dataset)


def _offer(dataset: Dataset, encoder: EncoderSpec, aim: Serves) -> None:
    """Show what a race does, its time, and the button that starts it, which is not advised while an audit looks for
    copies.
    """
    waits = show_audit_first(dataset)
    show_empty(WHAT, "trophy")
    with st.container(horizontal=True, horizontal_alignment="center", vertical_alignment="bottom", gap="medium"):
        budget = choose_segment(
            "Time", "budget", BUDGETS, "5", key="advice-budget", keeps_default=True,
            help="For the judges and all candidates; a fifth of it is left for candidates, however long judges take. "
                 "What does not fit is listed as not tried.")
        choose_backbone(encoder)
        clicked = st.button("Begin without waiting" if waits else ACTION, type="tertiary" if waits else "primary",
                            icon=ICON, key="advice-start", on_click=keep_clicks,
                            help="Runs in the background: you can leave the page or close the browser.")
    with st.container(horizontal_alignment="center"):
        st.caption(" ".join(filter(None, [whole_time_words(dataset, encoder, float(budget)),
                                          judges_line(encoder.backbone)])), width="content",
                   help="A judge that knows an image again when it is cropped or mirrored counts more.")
    spec = plan_analysis(Advice, budget=float(budget), serves=aim)
    with keep_user_errors(f"{spec.id}-{dataset.fingerprint[:12]}", dataset.fingerprint, clicked):
        if clicked:
            start_advice(dataset, encoder, spec, runs_folder())
            st.rerun()


@st.fragment(run_every="2s")
@show_user_errors()
def _show_other_live(dataset: Dataset, encoder: EncoderSpec, spec: AnalysisSpec | None) -> None:
    """Say that a race of the same images runs under other choices, with a button that shows it."""
    live = other_live_races(dataset, encoder, spec, runs_folder())
    if not live:
        st.rerun(scope="app")
    for race in live:
        state = "waits" if race.started is None else f"is running ({clock_words(time.time() - race.started)} min)"
        what = f"{MEASURES[race.kind.serves]}, in {race.kind.budget:g} minutes,"
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f":material/hourglass_top: A race for {what} {state}.")
            show_race_button("Show it", race.spec, f"advice-live-{race.spec.id}")


@st.fragment(run_every="1s")
@show_user_errors()
def _await_features(dataset: Dataset, encoder: EncoderSpec, spec: AnalysisSpec, run: Run) -> None:
    """Show the progress of the features, after which the race starts; run the page again then."""
    state, status = find_advice(dataset, encoder, spec, runs_folder()), run.status()
    if state.analysis is not None or not state.is_wanted:
        st.rerun(scope="app")
    if status.state not in LIVE_STATES:
        jobs.start_wanted(runs_folder())
        if status.state != "done":
            st.error(f"The features are {status.state}. {escaped_message(status.message)}", icon=":material/error:")
        return
    left = _preparing_left(run, dataset, status)
    phase = "what the network sees in each image" if step_name(status.phase) in OF_TRAINING else status.phase
    line = f"Preparing the race: {phase if status.state == 'running' else BEHIND}{left}"
    with st.container(horizontal=True, vertical_alignment="center", key="advice-progress"):
        st.progress(min(ALMOST, status.share), escaped(f"{line}. The race follows, even if you leave the page."))
        if st.button("Stop", icon=":material/stop:", key="advice-cancel-features", type="tertiary",
                     help="The race does not begin. What is computed of the images stays for the next time."):
            jobs.withdraw(run, "advice")
            jobs.stop(run)
            st.rerun(scope="app")
    show_empty(WHAT, "trophy")
    _say(line)


def _preparing_left(run: Run, dataset: Dataset, status: Status) -> str:
    """Return the time until a race begins in words, one estimate for all steps, or that it is unknown."""
    key = f"advice-preparing-{run.id}"
    if status.state != "running" or not status.started:
        return f"; {UNKNOWN}"
    if key not in st.session_state:
        whole = jobs.estimate(run.spec(), dataset)
        st.session_state[key] = Countdown(), whole.seconds_until_search if whole.measured else 0.0
    countdown, whole_seconds = st.session_state[key]
    return preparing_words(countdown, whole_seconds, time.time() - status.started, status.seconds_left)


def preparing_words(countdown: Countdown, whole: float, passed: float, step_left: float | None) -> str:
    """Return the time until a preparation ends in words, which never rises from step to step.

    Args:
        countdown: The time that was shown until now.
        whole: Expected seconds of all steps; 0 if they were never measured here.
        passed: Seconds since the first step began.
        step_left: Seconds that this step still takes by its own share; None if unknown.
    """
    left = max(whole - passed, step_left or 0.0)
    if left <= 0 and not whole:
        return f"; {UNKNOWN}"
    shown = countdown(passed, max(left, 0.0))
    if left > max(LATE, 2 * shown):
        return ", longer than expected"
    return ", almost ready" if shown < MET else f", about {duration(shown)} until the race begins"


@st.fragment(run_every="1s")
@show_user_errors()
def _show_live(analysis: Analysis, key: str, aim: Serves) -> None:
    """Show the race while it runs, as it answers for an aim; run the page again when it ends."""
    status = analysis.status()
    if status.state not in LIVE_STATES:
        st.rerun(scope="app")
    race = race_of(analysis).serving(aim)
    silent = time.time() - status.heartbeat
    line = status.phase or f"starting, {minutes_words(race.budget)} in all"
    if status.state == "running" and silent > SILENT:  # a judge reports only when it has finished many images
        line += f", and {duration(silent)} since"
    with st.container(horizontal=True, vertical_alignment="center", key="advice-progress"):
        words = f"{line[0].upper()}{line[1:]}. {advice_words(race, is_done=False)}"
        st.progress(min(1.0, status.share), escaped(words))
        if st.button("Stop and keep what is judged" if race.judged else "Stop", icon=":material/stop:",
                     key="advice-cancel", type="tertiary",
                     help="Judged candidates stay, with what they say so far, and the race can be continued."):
            with st.spinner("Stopping …"):
                jobs.stop(analysis)
            st.query_params.pop("budget", None)  # a finished race is in view then, and the stopped one below it
            st.rerun(scope="app")
    if (own := chosen_search(analysis.run.spec().dataset)) is not None:
        st.caption(f"{own_line(*own)} It stays in use until you choose another.")
    judged = f"{counted(len(race.judged), 'candidate')} judged. " if race.judged else ""
    _say(f"{judged}{advice_words(race, is_done=False)}")
    if race.outcomes:
        show_race(race, f"race-{key}")
    else:
        show_empty(WHAT, "trophy")
    if analysis.has_earlier():
        st.caption(":material/history: The race that finished before stays until this race has finished: "
                   f"{escaped(conclusion_of(analysis).headline)}")


def _say(line: str) -> None:
    """Tell screen readers what has changed."""
    st.html(f'<div role="status" aria-live="polite" style="{UNSEEN}">{html.escape(line)}</div>')
