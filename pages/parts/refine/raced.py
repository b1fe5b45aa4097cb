"""What the race for the best search said of the recipe in view: its verdict stands in place of a live estimate."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from udml_core.exploration.race import Outcome, Race
from udml_core.exploration.race_certainty import certainty_words
from udml_core.exploration.race_figures import MEASURES, NO_VERDICT, SAID, figure_words, said_word, setup_words
from udml_core.exploration.race_measured import Measured, Serves
from udml_core.exploration.race_words import race_judges_words
from udml_core.numerics.second_opinion import IMAGES
from udml_core.runs import Run
from udml_core.runs.opinions import QUESTION_WORDS
from udml_core.work.jobs.raced import judged_in_race

from ..shell.race_verdict import concluded
from ..shell.run_hash import RUN_HASH
from ..shell.run_status import escaped

HELP = ("Is the first result of a query right more often than with the plain search? Encoders that took no part "
        "in this search judged it in the race.",
        "Does the whole group of a query come first more often than with the plain search? Encoders that took no "
        "part in this search judged it in the race.")


CHANCE = ", but the difference may be chance"
"""What two overlapping intervals leave open."""


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
    def is_beside_advice(self) -> bool:
        """Whether the race advises another search."""
        return self.race.best is not None and self.race.best.setup != self.outcome.setup


OF_100 = "of 100 searches: "


@st.cache_data(ttl="10s", max_entries=64, show_spinner=False, hash_funcs=RUN_HASH)
def raced_recipe(run: Run, recipe: str) -> Raced | None:
    """Return the newest race that judged exactly a recipe of a run; None for no recipe, or if none did."""
    judged = judged_in_race(run, recipe) if recipe else None
    return None if judged is None else Raced(*judged)


def show_raced_metrics(raced: Raced) -> None:
    """Show the verdicts of a race and its figures beside the measures; the figure of the advice follows."""
    best = raced.race.best if raced.is_beside_advice else None
    own, judged = concluded(raced.race), raced.outcome.against_start
    assert judged is not None, "the candidate was judged"
    decides = own.verdict if own.candidate == raced.outcome else None
    for serves, question, text in zip(MEASURES, QUESTION_WORDS, HELP, strict=True):
        advised = f" · the advised recipe: {_figure(best, serves).removeprefix(OF_100)}" if best else ""
        of = judged.served(serves)
        figure, value = _figure(raced.outcome, serves), said_word(of)
        doubt = f" {NO_VERDICT}" if of.is_undervalued else ""
        if decides is not None and serves == raced.race.serves:  # what the race says stands small below it
            figure, value = f"by blind judgments · the race: {value}, {figure}", SAID[decides]
        st.metric(question, value, f"{figure}{advised}", delta_color="off", delta_arrow="off", width="content",
                  help=f"{text}{doubt} Below: how many of 100 searches get better and worse results, or, where they "
                       "were not counted, how much more similar a query and its results look to them, from −1 to 1.")


def _figure(outcome: Outcome, serves: Serves) -> str:
    """Return how many of 100 searches get better and worse results, else the gain in similarity."""
    of = outcome.against_start
    assert of is not None, "the candidate was judged"
    count = of.count(serves)
    if count is None or count.better is None or count.worse is None:
        return figure_words(of.served(serves).difference, "+")
    return f"{OF_100}{100 * count.better:.0f} better, {100 * count.worse:.0f} worse"


def less_words(raced: Raced) -> str:
    """Say how much less a recipe gains than the advice of its race; empty for the advice, or without one.

    The intervals of both hold for all candidates. They are clearly different if these do not overlap.
    """
    race, best = raced.race, raced.race.best
    if best is None or not raced.is_beside_advice:
        return ""
    own, advised = (race.gain(outcome).wide for outcome in (raced.outcome, best))
    words = compared_words(own, advised, setup_words(race, best.setup), race.serves)
    return words.replace(CHANCE, _duel_words(raced)) if _duel_words(raced) else words


def _duel_words(raced: Raced) -> str:
    """Return that the race found a recipe clearly worse than its largest gain by a direct comparison; else nothing.

    Data says so of a simpler search that is not advised; a direct comparison tells more than two intervals.
    """
    race = raced.race
    lost = next((duel for duel in race.duels if duel.simpler == raced.outcome.setup and not duel.is_level(race.serves)),
                None)
    return "" if lost is None else (f", and in a direct comparison less than the largest gain of the race "
                                    f"({setup_words(race, lost.largest)})")


def compared_words(own: Measured, advised: Measured, name: str, serves: Serves) -> str:
    """Say how much less a recipe gains than the advised one, in what a race serves; empty if it gains as much."""
    if own.difference >= advised.difference:
        return ""
    figures = (f"in {MEASURES[serves]}, {figure_words(own.difference, '+')} against "
               f"{figure_words(advised.difference, '+')}")
    if own.high < advised.low:
        return f"This recipe gains clearly less than the advised recipe ({name}): {figures}."
    return f"This recipe gains less than the advised recipe ({name}) {figures}{CHANCE}."


def raced_words(raced: Raced, total: int) -> str:
    """Return who judged a recipe in a race, and on how many images; the differences stand above.

    Args:
        raced: The race that judged it.
        total: Number of images that are searched.
    """
    images = f"all {total:,} images" if total <= IMAGES else f"{IMAGES:,} evenly spaced of {total:,} images"
    sure = certainty_words(raced.race, raced.outcome)
    return (f"Judged against the plain search, on {images} in the race for the best search, without labels, by "
            f"{escaped(race_judges_words(raced.race))}. {sure}".rstrip())
