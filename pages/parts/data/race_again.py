"""What runs a race that ended once more, also for what the user looks for now."""

from __future__ import annotations

import streamlit as st

from udml_core.data.dataset import Dataset
from udml_core.data.encoders import EncoderSpec
from udml_core.exploration.race import Race
from udml_core.exploration.race_figures import MEASURES, OTHER
from udml_core.exploration.race_gaps import LATE, find_gaps, minutes_words
from udml_core.runs import runs_folder
from udml_core.runs.analyses import Analysis, plan_analysis
from udml_core.runs.analyses.kinds.advice import Advice
from udml_core.work.jobs.advising import find_advice, other_finished_races, restart_advice
from udml_core.work.jobs.raced import finished_race

from ..shell.user_errors import show_user_errors
from .using import BUDGETS

ALL_TRIED = "Every candidate was tried: more time tries nothing new. Run it again when encoders or images have changed."
KEPT = "Computed features and trained heads are used again, so more candidates fit into the same time."


def show_again(dataset: Dataset, encoder: EncoderSpec, race: Race) -> None:
    """Show what runs the race once more."""
    with st.popover("Run it again", icon=":material/replay:", key="advice-again"):
        st.caption(KEPT if any(outcome.state in LATE for outcome in race.outcomes) else ALL_TRIED)
        _offer_times(dataset, encoder, race, "advice-again", ":material/replay:", find_gaps(race).minutes)


def show_chosen_for(dataset: Dataset, encoder: EncoderSpec, race: Race) -> None:
    """Say that a race chose what to try by the other measure, with the times in which one of its own can run.

    Nothing is shown of a race that served what the user looks for.
    """
    if race.chosen_for is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="advice-other-aim"):
        st.caption(f":material/info: This race chose what to try by {MEASURES[race.chosen_for]}, and measured "
                   f"{MEASURES[race.serves]} as well.", width="content")
        with st.popover(f"Try more for {MEASURES[race.serves]}", icon=":material/trophy:", type="tertiary",
                        key="advice-other"):
            st.caption("A race of its own, which keeps this one.")
            _offer_times(dataset, encoder, race, "advice-more", ":material/play_arrow:")


def race_for_other_aim(dataset: Dataset, encoder: EncoderSpec, race: Race, analysis: Analysis) -> Race | None:
    """Return the finished race that serves what a race does not serve; None without one."""
    for spec in other_finished_races(dataset, encoder, analysis.spec(), runs_folder()):
        if isinstance(kind := spec.build_kind(), Advice) and kind.serves == OTHER[race.serves]:
            found = find_advice(dataset, encoder, spec, runs_folder()).analysis
            return None if found is None else finished_race(found)
    return None


def _offer_times(dataset: Dataset, encoder: EncoderSpec, race: Race, key: str, icon: str, enough: int = 0) -> None:
    """Show a button for each time in which a race for what one serves can run.

    Args:
        dataset: The data set.
        encoder: The encoder of the frozen features.
        race: The race.
        key: Prefix of the keys.
        icon: The icon of the buttons.
        enough: Minutes in which what was left out fits; 0 for none.
    """
    for minutes in BUDGETS:
        fits = ", in which what was left out fits" if int(minutes) == enough else ""
        if st.button(f"{minutes_words(int(minutes))}{fits}", icon=icon, key=f"{key}-{minutes}", width="stretch"):
            _start(dataset, encoder, race, minutes)


def _start(dataset: Dataset, encoder: EncoderSpec, race: Race, minutes: str) -> None:
    """Run a race in a time; a finished race of the same time stays until the new race has finished."""
    with show_user_errors():
        spec = plan_analysis(Advice, budget=float(minutes), serves=race.serves)
        restart_advice(dataset, encoder, spec, runs_folder())
        st.query_params["budget"] = minutes
        st.rerun()
