"""What the race for the best search said of the recipe in view: its verdict stands in place of a live estimate."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from udml_core.exploration.race import Outcome, Race
from udml_core.exploration.race_figures import SAID
from udml_core.exploration.race_words import race_judges_words
from udml_core.numerics.second_opinion import IMAGES
from udml_core.runs import Run
from udml_core.runs.opinions import QUESTION_WORDS
from udml_core.work.jobs.advising import judged_in_race

from ..shell.run_hash import RUN_HASH
from ..shell.run_status import escaped

HELP = ("Is the first result of a query right more often than with the frozen features? Encoders that took no part "
        "in this search judged it in the race.",
        "Does the whole group of a query come first more often than with the frozen features? Encoders that took no "
        "part in this search judged it in the race.")


@dataclass(frozen=True)
class Raced:
    """A race that judged a recipe.

    Attributes:
        race: The race.
        outcome: What it said of the recipe, in comparison with the frozen features.
    """

    race: Race
    outcome: Outcome

    @property
    def verdicts(self) -> tuple[str, str]:
        """What it said of first results and of whole groups, certain among all its candidates."""
        return self.race.verdicts(self.outcome)


@st.cache_data(ttl="10s", max_entries=64, show_spinner=False, hash_funcs=RUN_HASH)
def raced_recipe(run: Run, recipe: str) -> Raced | None:
    """Return the newest race that judged exactly a recipe of a run; None for no recipe, or if none did."""
    judged = judged_in_race(run, recipe) if recipe else None
    return None if judged is None else Raced(*judged)


def show_raced_metrics(raced: Raced) -> None:
    """Show the verdicts of a race as figures beside the measures."""
    for question, verdict, text in zip(QUESTION_WORDS, raced.verdicts, HELP, strict=True):
        st.metric(question, SAID[verdict], help=text, width="content")


def raced_words(raced: Raced, total: int) -> str:
    """Return who judged a recipe in a race, and on how many images; the differences stand above.

    Args:
        raced: The race that judged it.
        total: Number of images that are searched.
    """
    images = f"all {total:,} images" if total <= IMAGES else f"{IMAGES:,} evenly spaced of {total:,} images"
    at_once = f" for all {raced.race.count} candidates at once" if raced.race.count > 1 else ""
    return (f"Judged on {images} in the race for the best search, without labels, by "
            f"{escaped(race_judges_words(raced.race))}. Its intervals hold 95 %{at_once}.")
