"""Find the best search of a data set: the choices, the live race, and what to do with its winner."""

from __future__ import annotations

import html
import time
from collections.abc import Callable
from functools import partial

import streamlit as st

from udml_core.base.errors import UserError, counted, duration
from udml_core.data.dataset import WAITING, Dataset
from udml_core.data.encoders import EncoderSpec
from udml_core.exploration.race import TIMES, Outcome, Race, Serves
from udml_core.exploration.race_clock import ALMOST
from udml_core.exploration.race_elsewhere import Elsewhere
from udml_core.exploration.race_figures import MEASURES, chain_words, interval_words, setup_words
from udml_core.exploration.race_gaps import find_gaps, minutes_words
from udml_core.exploration.race_words import advice_sentences, advice_words, caution_words, is_small
from udml_core.runs import Run, find_run, runs_folder
from udml_core.runs.analyses import Analysis, AnalysisSpec, find_analysis, plan_analysis
from udml_core.runs.analyses.kinds.advice import Advice
from udml_core.runs.tasks import ADVICE, LIVE_STATES
from udml_core.work import jobs
from udml_core.work.jobs.advising import (
    elsewhere_of,
    find_advice,
    newest_advice,
    other_live_races,
    race_of,
    refinement_of,
    start_advice,
    use_outcome,
    withdraw_advice,
)

from ..shell.address import choose_segment
from ..shell.empty_state import show_empty
from ..shell.race_judgments import race_judgments
from ..shell.run_status import ICONS, UNSEEN, escaped
from ..shell.user_errors import keep_user_errors, show_user_errors
from ..shell.views import open_view, view_link
from .computed import choose_backbone, chosen_encoder
from .race import explained, show_race

ACTION, ICON = "Find the best search", ":material/trophy:"
BUDGETS = {str(minutes): f"{minutes} min" for minutes in TIMES}
WORDS: dict[Serves, str] = {"first": "The first result", "groups": "The whole group"}
MEANINGS: dict[Serves, str] = {
    "first": "The nearest image should show the same kind of thing.",
    "groups": "All images of the same kind should come before all others."}
KEPT = "Computed features and trained heads are used again, so more candidates fit into the same time."
USED = "advice-used"
"""Session key of a search that is made usable: runs of start and search, refinement, and the page that opens it."""
USE = "Search with it. A refinement of all images is computed first, in seconds."
JUDGING = ("You see a query and where the two searches differ, without their names: the first result, or the first ten "
           "results if the race served whole groups.")


def show_advice(dataset: Dataset) -> None:
    """Show the choices of a race, and the race with these choices if there is one."""
    if dataset.is_table:
        st.info("Judges read images, and this data set is a table of vectors. A second table of vectors of the same "
                "images can judge: `udml advise TABLE --judges other.parquet`.", icon=":material/info:")
        return
    encoder = chosen_encoder(dataset)
    spec = _choose(dataset, encoder)
    state = find_advice(dataset, encoder, spec, runs_folder())
    key = f"{spec.id}-{dataset.fingerprint[:12]}-{encoder.key}"
    if _open_used():
        return
    if other_live_races(dataset, encoder, spec, runs_folder()):
        _show_other_live(dataset, encoder, spec)
    if state.analysis is None and state.is_wanted and state.run is not None:
        _await_features(dataset, encoder, spec, state.run)
    elif state.analysis is None:
        _offer(dataset, encoder, spec, key)
    elif state.analysis.status().state in LIVE_STATES:
        _show_live(state.analysis, key)
    else:
        _show_ended(state.analysis, key, partial(_run_again, dataset, encoder))


def _choose(dataset: Dataset, encoder: EncoderSpec) -> AnalysisSpec:
    """Choose the time and what the search serves; a link without them shows the newest race of these images."""
    if not {"budget", "serves"} & set(st.query_params):
        newest = newest_advice(dataset, encoder, runs_folder())
        kind = None if newest is None else newest.build_kind()
        if isinstance(kind, Advice):
            st.query_params.update(budget=f"{kind.budget:g}", serves=kind.serves)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        budget = choose_segment(
            "Time", "budget", BUDGETS, "5", key="advice-budget", keeps_default=True,
            help="For the judges and all candidates. What does not fit is listed as not tried.")
        served = choose_segment("What must be right?", "serves", WORDS, "first", key="advice-serves",
                                keeps_default=True)
        choose_backbone(encoder)
    st.caption(MEANINGS[served])
    return plan_analysis(Advice, budget=float(budget), serves=served)


def _offer(dataset: Dataset, encoder: EncoderSpec, spec: AnalysisSpec, key: str) -> None:
    """Show what a race does, and the button that starts it."""
    show_empty("Tries views, whitening, averages of neighbors, re-ranking and short training without labels, one after "
               "the other. **An encoder that took no part** says which of them finds better images than the features "
               "of the backbone; the raw pixels count a little beside it. No label is read.", "trophy")
    with st.container(horizontal_alignment="center"):
        clicked = st.button(ACTION, type="primary", icon=ICON, key="advice-start",
                            help="Runs in the background: you can leave the page or close the browser.")
    with keep_user_errors(key, dataset.fingerprint, clicked):
        if clicked:
            start_advice(dataset, encoder, spec, runs_folder())
            st.rerun()


@st.fragment(run_every="2s")
@show_user_errors()
def _show_other_live(dataset: Dataset, encoder: EncoderSpec, spec: AnalysisSpec) -> None:
    """Say that a race of the same images runs under other choices, with a button that shows it."""
    live = other_live_races(dataset, encoder, spec, runs_folder())
    if not live:
        st.rerun(scope="app")
    for race in live:
        state = "waits" if race.started is None else f"is running ({duration(time.time() - race.started)} so far)"
        what = f"{MEASURES[race.kind.serves]}, in {race.kind.budget:g} minutes,"
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f":material/hourglass_top: A race for {what} {state}.")
            _show_button("Show it", race.spec, f"advice-live-{race.spec.id}")


def _show_button(label: str, spec: AnalysisSpec, key: str) -> None:
    """Show a button that shows another race, if the choices of this page lead to it."""
    kind = spec.build_kind()
    assert isinstance(kind, Advice), "only races are shown here"
    budget = f"{kind.budget:g}"
    if budget in BUDGETS and spec == plan_analysis(Advice, budget=kind.budget, serves=kind.serves) and st.button(
            label, icon=":material/visibility:", key=key):
        st.query_params.update(budget=budget, serves=kind.serves)
        st.rerun(scope="app")


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
            st.error(f"The features are {status.state}. {status.message}", icon=":material/error:")
        return
    left = f", about {duration(status.seconds_left)} left" if status.seconds_left else ""
    line = f"First the features: {status.phase or WAITING}{left}"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(min(ALMOST, status.share), escaped(f"{line}. The race follows, even if you leave the page."))
        if st.button("Cancel", icon=":material/stop:", key="advice-cancel-features", type="tertiary"):
            withdraw_advice(run)
            jobs.stop(run)
            st.rerun(scope="app")
    _say(line)


@st.fragment(run_every="1s")
@show_user_errors()
def _show_live(analysis: Analysis, key: str) -> None:
    """Show the race while it runs; run the page again when it ends."""
    status = analysis.status()
    if status.state not in LIVE_STATES:
        st.rerun(scope="app")
    race = race_of(analysis)
    line = status.phase or "starting"
    with st.container(horizontal=True, vertical_alignment="center"):
        words = f"{line[0].upper()}{line[1:]}. {advice_words(race, is_done=False)}"
        st.progress(min(1.0, status.share), escaped(words))
        if st.button("Cancel", icon=":material/stop:", key="advice-cancel", type="tertiary",
                     help="Finished candidates stay, and the race can be continued."):
            with st.spinner("Stopping …"):
                jobs.stop(analysis)
            st.rerun(scope="app")
    _say(f"{counted(len(race.judged), 'candidate')} judged. {advice_words(race, is_done=False)}")
    show_race(race, f"race-{key}", is_done=False)


def _show_ended(analysis: Analysis, key: str, again: Callable[[Race, Analysis], None]) -> None:
    """Show a race that ended, and what to do with its winner.

    Args:
        analysis: The race.
        key: Key of its chart.
        again: Shows how to run the race once more.
    """
    status, race = analysis.status(), race_of(analysis)
    is_done = status.state == "done"
    if not is_done:
        with st.container(horizontal=True, vertical_alignment="center"):
            reason = " ".join(filter(None, (status.message, ADVICE[status.state])))
            st.warning(f"{ICONS[status.state]} The race is {status.state}. {escaped(reason)}")
            if st.button("Continue", icon=":material/replay:", key="advice-continue"):
                with show_user_errors():
                    jobs.resume(analysis)
                    st.rerun()
    other = elsewhere_of(analysis)
    elsewhere = None if other is None else other[0]
    _show_words(race, is_done, elsewhere)
    _show_judgments(race)
    if other is not None:
        _show_elsewhere(race, *other)
    _show_actions(race, is_done, partial(again, race, analysis))
    show_race(race, f"race-{key}", is_done)


def _show_judgments(race: Race) -> None:
    """Say what blind judgments say of the advised search, or of the largest gain, if there are any."""
    outcome = race.best or next(iter(race.judged), None)
    if outcome is None:
        return
    try:
        runs = [find_run(name, runs_folder()) for name in (race.run, outcome.run)]
    except UserError:  # a run was removed, which the buttons say
        return
    frame = refinement_of(outcome).id if outcome.setup.recipe else "final"
    said = race_judgments(runs, frame, ("the frozen features", setup_words(race, outcome.setup)),
                          "ten" if race.serves == "groups" else "first", race.verdict(outcome))
    if said:
        st.markdown(f":material/thumbs_up_down: {said}")


def _show_elsewhere(race: Race, elsewhere: Elsewhere, analysis: Analysis) -> None:
    """Show the buttons that use the best search of another race, and show that race."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        _use_button(f"Use {escaped(elsewhere.search)}", ":material/image_search:", elsewhere.race, elsewhere.best,
                    "retrieval", USE, is_primary=elsewhere.wins(race))
        when = "later" if elsewhere.is_later else "earlier"
        _show_button(f"Show the {when} race", analysis.spec(), "advice-other-race")


def _show_words(race: Race, is_done: bool, elsewhere: Elsewhere | None) -> None:
    """Show the advice: green with a trophy only if a candidate surely wins and changes enough."""
    first, *rest = (escaped(sentence) for sentence in advice_sentences(race, is_done, elsewhere))
    words = " ".join((f"**{first}**", *rest))
    if (race.best is not None and not is_small(race)) or (elsewhere is not None and elsewhere.wins(race)):
        st.success(words, icon=ICON)
    elif race.is_judged or not is_done:
        with st.container(border=True, key="advice-unclear"):
            st.markdown(f":material/balance: {words}")
    else:
        st.warning(words, icon=":material/help:")
    if (named := race.best or next(iter(race.judged), None)) is not None:
        st.caption(explained(race, named.setup))
    if caution := caution_words(race):
        st.caption(f":material/warning: {escaped(caution)}")


def _run_again(dataset: Dataset, encoder: EncoderSpec, race: Race, analysis: Analysis) -> None:
    """Show the time that tries what was not tried, or all times in which the race can be run once more."""
    enough = str(find_gaps(race).minutes)
    if enough in BUDGETS and st.button(f"Run again with {minutes_words(int(enough))}", icon=":material/replay:",
                                       key="advice-enough", help=KEPT):
        _start_again(dataset, encoder, race, analysis, enough)
    with st.popover("Run it again", icon=":material/replay:", key="advice-again"):
        st.caption(KEPT)
        for minutes in BUDGETS:
            if st.button(minutes_words(int(minutes)), icon=":material/replay:", key=f"advice-again-{minutes}",
                         width="stretch"):
                _start_again(dataset, encoder, race, analysis, minutes)


def _start_again(dataset: Dataset, encoder: EncoderSpec, race: Race, analysis: Analysis, minutes: str) -> None:
    """Run a race once more in a time; of the same time, the earlier race is removed."""
    with show_user_errors():
        if float(minutes) == race.budget:
            analysis.remove()
        start_advice(dataset, encoder, plan_analysis(Advice, budget=float(minutes), serves=race.serves), runs_folder())
        st.query_params["budget"] = minutes
        st.rerun()


def _show_actions(race: Race, is_done: bool, again: Callable[[], None]) -> None:
    """Show the buttons that use the winner, confirm it by judgments, use another candidate, or run the race again."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if race.best is not None:
            _use_button("Use this", ":material/image_search:", race, race.best, "retrieval",
                        USE, is_primary=True)
            _use_button("Confirm by judgments", ":material/thumbs_up_down:", race, race.best, "compare", JUDGING)
        elif is_done and race.is_judged:
            view_link("retrieval", label="Search with the frozen features", icon=":material/image_search:",
                      query_params={"run": race.run})
            words = escaped(setup_words(race, race.judged[0].setup))
            _use_button(f"Judge {words} yourself", ":material/thumbs_up_down:", race, race.judged[0], "compare",
                        JUDGING)
        others = {chain_words(race, outcome.setup): outcome for outcome in race.judged if outcome != race.best}
        if others:
            with st.popover("Use another candidate", icon=":material/list:"):
                name = st.selectbox("Candidate", list(others), key="advice-other", format_func=lambda name: (
                    f"{name} ({interval_words(race.gain(others[name]))})"))
                st.caption(f"The largest gain first, in {MEASURES[race.serves]}.")
                _use_button("Use it", ":material/image_search:", race, others[name], "retrieval", "Search with it.")
        if is_done:
            again()


def _use_button(label: str, icon: str, race: Race, outcome: Outcome, page: str, help_text: str,
                is_primary: bool = False) -> None:
    """Show a button that makes a candidate's search usable, and then opens a page with it."""
    if st.button(label, icon=icon, key=f"advice-{page}-{label[:6]}", help=help_text,
                 type="primary" if is_primary else "secondary"):
        with show_user_errors():
            run, refinement = use_outcome(outcome, runs_folder())
            st.session_state[USED] = race.run, run.id, refinement and refinement.id, page, race.serves
            st.rerun()


def _open_used() -> bool:
    """Open the page of a search that was chosen, as soon as its refinement is there; return whether one is awaited."""
    if USED not in st.session_state:
        return False
    start, run_id, refinement_id, page, serves = st.session_state[USED]
    with show_user_errors():
        run = find_run(run_id, runs_folder())
        refinement = None if refinement_id is None else find_analysis(run, refinement_id)
        if refinement is not None and refinement.status().state in LIVE_STATES:
            _await_refinement(refinement)
            return True
        del st.session_state[USED]
        if refinement is not None and not refinement.is_done():
            st.error(f"The refinement is {refinement.status().state}. {refinement.status().message}",
                     icon=":material/error:")
            return False
        open_view(page, query_params=judge_link(start, run_id, refinement_id, serves) if page == "compare"
                       else search_link(run_id, refinement_id))
    st.session_state.pop(USED, None)  # the run was removed
    return False


@st.fragment(run_every="0.5s")
@show_user_errors()
def _await_refinement(refinement: Analysis) -> None:
    """Show the progress of a refinement; run the page again when it ends."""
    status = refinement.status()
    if status.state not in LIVE_STATES:
        st.rerun(scope="app")
    st.progress(min(1.0, status.share), f"Refining all images: {status.phase or 'starting'}. The search opens then.")


def search_link(run_id: str, refinement_id: str | None) -> dict[str, str]:
    """Return the address parameters of the page Search for a search."""
    return {"run": run_id} | ({"refined": refinement_id} if refinement_id else {})


def judge_link(start: str, run_id: str, refinement_id: str | None, serves: Serves = "first") -> dict[str, str]:
    """Return the address parameters of the part Judge of the view Compare: frozen features against a search.

    Args:
        start: Id of the run of the frozen features.
        run_id: Id of the run of the search.
        refinement_id: Id of its refinement; None for the run's own embedding.
        serves: What the search serves, which is judged: first results, or the first ten for whole groups.
    """
    return {"part": "Judge", "runs": ".".join(dict.fromkeys((start, run_id))), "a": f"{start}:frozen",
            "b": f"{run_id}:{refinement_id or 'final'}"} | ({"results": "ten"} if serves == "groups" else {})


def _say(line: str) -> None:
    """Tell screen readers what has changed."""
    st.html(f'<div role="status" aria-live="polite" style="{UNSEEN}">{html.escape(line)}</div>')
