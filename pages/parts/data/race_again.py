"""What runs a race that ended once more, and what leads to the race for the other aim."""

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
from udml_core.work.jobs.advising import find_advice, finished_race, other_finished_races, restart_advice, start_advice

from ..shell.user_errors import show_user_errors
from .using import BUDGETS

ALL_TRIED = "Every candidate was tried: more time tries nothing new. Run it again when encoders or images have changed."
KEPT = "Computed features and trained heads are used again, so more candidates fit into the same time."


def show_again(dataset: Dataset, encoder: EncoderSpec, race: Race, for_other_aim: Race | None) -> None:
    """Show what runs the race once more, and where candidates are better for the other aim, what leads to it."""
    if race.best is None and race.better_otherwise:
        _show_other_aim(dataset, encoder, race, for_other_aim)
    enough = find_gaps(race).minutes
    with st.popover("Run it again", icon=":material/replay:", key="advice-again"):
        st.caption(KEPT if any(outcome.state in LATE for outcome in race.outcomes) else ALL_TRIED)
        for minutes in BUDGETS:
            fits = ", in which what was left out fits" if int(minutes) == enough else ""
            if st.button(f"{minutes_words(int(minutes))}{fits}", icon=":material/replay:",
                         key=f"advice-again-{minutes}", width="stretch"):
                _start_again(dataset, encoder, race, minutes)


def race_for_other_aim(dataset: Dataset, encoder: EncoderSpec, race: Race, analysis: Analysis) -> Race | None:
    """Return the finished race that serves what a race does not serve; None without one."""
    for spec in other_finished_races(dataset, encoder, analysis.spec(), runs_folder()):
        if isinstance(kind := spec.build_kind(), Advice) and kind.serves == OTHER[race.serves]:
            found = find_advice(dataset, encoder, spec, runs_folder()).analysis
            return None if found is None else finished_race(found)
    return None


def _show_other_aim(dataset: Dataset, encoder: EncoderSpec, race: Race, for_other_aim: Race | None) -> None:
    """Show the button that leads to the finished race for the other aim, or starts it."""
    aim = OTHER[race.serves]
    found = None if for_other_aim is None else for_other_aim.budget
    label = f"See {MEASURES[aim]}" if found else f"Find the best search for {MEASURES[aim]}"
    if st.button(label, icon=":material/swap_horiz:", key="advice-other-aim",
                 help=None if found else f"A race of {minutes_words(race.budget)}, which keeps this one."):
        with show_user_errors():
            if found is None:
                start_advice(dataset, encoder, plan_analysis(Advice, budget=race.budget, serves=aim), runs_folder())
            st.query_params.update(budget=f"{found or race.budget:g}", serves=aim)
            st.rerun()


def _start_again(dataset: Dataset, encoder: EncoderSpec, race: Race, minutes: str) -> None:
    """Run a race once more in a time; a finished race of the same time stays until the new race has finished."""
    with show_user_errors():
        spec = plan_analysis(Advice, budget=float(minutes), serves=race.serves)
        restart_advice(dataset, encoder, spec, runs_folder())
        st.query_params["budget"] = minutes
        st.rerun()
