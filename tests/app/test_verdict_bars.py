"""The bars of how many of 100 searches get better and worse."""

from __future__ import annotations

import re

from streamlit.testing.v1 import AppTest

from pages.parts.shell.verdict_bars import WHY_NONE
from udml_core.exploration.race import Outcome, Race, Setup
from udml_core.exploration.race_measured import Comparison, Count, Measured

BETTER = Measured(verdict="better", difference=0.02, low=0.016, high=0.024)
UNCLEAR = Measured(verdict="cannot tell", difference=0.001, low=-0.003, high=0.005)


def bars(serves: str, first: Measured, groups: Measured, whole: Count | None, **counts: float
         ) -> tuple[list[str], list[str]]:
    """Return the verdicts beside the names, and the labels of the bars, as a page shows them."""
    shown = drawn(serves, first, groups, whole, "whiten", **counts)
    return re.findall(r'verdict-name"><b>[^<]*</b> ([^<]*)<', shown), re.findall(r'aria-label="([^"]*)"', shown)


def drawn(serves: str, first: Measured, groups: Measured, whole: Count | None, recipe: str, **counts: float) -> str:
    """Return the bars in HTML."""
    of = Comparison(first=first, groups=groups, judges=("judge",), whole=whole, **counts)
    outcome = Outcome(name="Whitening", setup=Setup(backbone="net", recipe=recipe), kept=True, against_best=of,
                      against_start=of, run="run")
    race = Race(serves=serves, budget=2, start=Setup(backbone="net"), run="run",  # type: ignore[arg-type]
                outcomes=(outcome,))

    def page(race):  # type: ignore[no-untyped-def]  # a script of its own, which knows no names of this file
        import streamlit as st

        from pages.parts.shell.verdict_bars import show_verdict_bars

        st.session_state["drawn"] = show_verdict_bars(race, race.outcomes[0])

    test = AppTest.from_function(page, args=(race,)).run()
    assert not test.exception
    shown = "".join(element.proto.body for element in test.get("html"))
    assert test.session_state["drawn"] == bool(shown) == bool(test.caption)
    return shown


FIRST = {"changed": 0.54, "better": 0.3, "worse": 0.24}
WHOLE = Count(changed=0.99, better=0.73, worse=0.26)


def test_both_measures_are_drawn_the_served_one_first() -> None:
    words, labels = bars("groups", UNCLEAR, BETTER, WHOLE, **FIRST)
    assert labels == ["Whole group, of 100 searches: 73 better, 1 nearly the same, 26 worse",
                      "First result, of 100 searches: 30 better, 46 the same, 24 worse"]
    assert words == ["better", "no clear difference"]
    assert bars("first", UNCLEAR, BETTER, WHOLE, **FIRST) == (words[::-1], labels[::-1])


def test_a_verdict_beside_a_bar_is_hedged_once() -> None:
    close = Measured(verdict="better", difference=0.02, low=0.0085, high=0.0315)
    words, _ = bars("first", close, BETTER, WHOLE, **FIRST)
    assert words == ["slightly better, a close call", "better"]
    words, _ = bars("first", BETTER, BETTER, WHOLE, **FIRST, within=(0.2, 0.4))
    assert words[0] == "no clear difference", "the counts do not show it"


def test_counts_that_are_no_verdict_are_not_drawn_and_the_words_say_why() -> None:
    worse = Measured(verdict="worse", difference=-0.02, low=-0.024, high=-0.016)
    told, untold = (drawn("groups", worse, BETTER, WHOLE, recipe, **FIRST) for recipe in ("whiten", "rerank"))
    assert "<b>First result</b> worse<" in told
    assert f"<b>First result</b> {WHY_NONE}<" in untold
    assert [len(re.findall("aria-label", shown)) for shown in (told, untold)] == [2, 1]


def test_what_was_not_counted_is_not_drawn() -> None:
    assert bars("groups", UNCLEAR, BETTER, None, **FIRST) == ([], [])
    assert len(bars("first", UNCLEAR, BETTER, None, **FIRST)[1]) == 1
    assert bars("first", UNCLEAR, BETTER, WHOLE, changed=0.54) == ([], [])
