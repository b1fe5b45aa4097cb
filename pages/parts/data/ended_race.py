"""A race that ended: its advice, what to do with its winner, and how to run it again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import EncoderSpec
from udml_core.exploration.race import Race
from udml_core.exploration.race_elsewhere import Elsewhere
from udml_core.exploration.race_figures import MEASURES, chain_words, interval_words, setup_words
from udml_core.exploration.race_gaps import find_gaps, minutes_words
from udml_core.exploration.race_words import advice_sentences, caution_words, is_small
from udml_core.runs import find_run, runs_folder
from udml_core.runs.analyses import Analysis, plan_analysis
from udml_core.runs.analyses.kinds.advice import Advice
from udml_core.runs.tasks import ADVICE
from udml_core.work import jobs
from udml_core.work.jobs.advising import elsewhere_of, race_of, refinement_of, start_advice

from ..shell.race_judgments import race_judgments
from ..shell.run_status import ICONS, escaped
from ..shell.user_errors import show_user_errors
from ..shell.views import view_link
from .race import explained, show_race
from .using import BUDGETS, show_race_button, use_button

ICON = ":material/trophy:"
KEPT = "Computed features and trained heads are used again, so more candidates fit into the same time."
USE = "Search with it. A refinement of all images is computed first, in seconds."
JUDGING = ("You see a query and where the two searches differ, without their names: the first result, or the first ten "
           "results if the race served whole groups.")


def show_ended(analysis: Analysis, key: str, dataset: Dataset, encoder: EncoderSpec) -> None:
    """Show a race that ended, and what to do with its winner.

    Args:
        analysis: The race.
        key: Key of its chart.
        dataset: The data set.
        encoder: The encoder of the frozen features.
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
    _show_actions(race, is_done, partial(_run_again, dataset, encoder, race, analysis))
    show_race(race, f"race-{key}", is_done)


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
        use_button(f"Use {escaped(elsewhere.search)}", ":material/image_search:", elsewhere.race, elsewhere.best,
                    "retrieval", USE, is_primary=elsewhere.wins(race))
        when = "later" if elsewhere.is_later else "earlier"
        show_race_button(f"Show the {when} race", analysis.spec(), "advice-other-race")


def _show_actions(race: Race, is_done: bool, again: Callable[[], None]) -> None:
    """Show the buttons that use the winner, confirm it by judgments, use another candidate, or run the race again."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if race.best is not None:
            use_button("Use this", ":material/image_search:", race, race.best, "retrieval",
                        USE, is_primary=True)
            use_button("Confirm by judgments", ":material/thumbs_up_down:", race, race.best, "compare", JUDGING)
        elif is_done and race.is_judged:
            view_link("retrieval", label="Search with the frozen features", icon=":material/image_search:",
                      query_params={"run": race.run})
            words = escaped(setup_words(race, race.judged[0].setup))
            use_button(f"Judge {words} yourself", ":material/thumbs_up_down:", race, race.judged[0], "compare",
                        JUDGING)
        others = {chain_words(race, outcome.setup): outcome for outcome in race.judged if outcome != race.best}
        if others:
            with st.popover("Use another candidate", icon=":material/list:"):
                name = st.selectbox("Candidate", list(others), key="advice-other", format_func=lambda name: (
                    f"{name} ({interval_words(race.gain(others[name]).among(race.count))})"))
                st.caption(f"The largest gain first, in {MEASURES[race.serves]}.")
                use_button("Use it", ":material/image_search:", race, others[name], "retrieval", "Search with it.")
        if is_done:
            again()


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
