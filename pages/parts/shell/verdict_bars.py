"""For how many of 100 searches judges see better and worse results, as two bars: first results and whole groups."""

from __future__ import annotations

import html
from collections.abc import Sequence

import streamlit as st

from udml_core.exploration.race import Outcome, Race
from udml_core.exploration.race_certainty import close_words
from udml_core.exploration.race_figures import (
    BY_CLASSES,
    COUNTED,
    HEADINGS,
    MEASURES,
    NO_VERDICT,
    OTHER,
    SAID,
    balance_words,
    by_class_note,
    group_size_words,
    said_word,
    shares,
)
from udml_core.exploration.race_measured import Measured, Serves
from udml_core.results.embedding_words import words_of

from .run_status import escaped

SAME: dict[Serves, str] = {"first": "the same", "groups": "nearly the same"}
KINDS = ("better", "same", "worse")
WHY_NONE = "no verdict: these steps compare your images with each other, and judges underrate what that finds"
"""What stands in place of a verdict and its counts where judges are known to err."""


def show_verdict_bars(race: Race, outcome: Outcome) -> bool:
    """Show both counts of a candidate against the plain search, the served measure first; return whether it can.

    Args:
        race: The race.
        outcome: The candidate.
    """
    of, serves = outcome.against_start, race.serves
    if of is None or shares(of.served(serves)) is None:
        return False
    close = close_words(race, outcome)
    served = (serves, of.served(serves), close and f"slightly better{close}")
    return show_bars([served, (OTHER[serves], of.other(serves), "")], words_of("plain").title, race.group)


def bars_of(verdicts: Sequence[str], measured: Sequence[Measured]) -> list[tuple[Serves, Measured, str]]:
    """Return what `show_bars` shows of both verdicts; it names one that differs from what judges measured."""
    return [(serves, of, "" if verdict == of.said else SAID[verdict])
            for serves, verdict, of in zip(MEASURES, verdicts, measured, strict=True)]


def show_bars(measures: Sequence[tuple[Serves, Measured, str]], other: str, group: int = 0) -> bool:
    """Show counts of a search against another one as bars; return whether any is known.

    Args:
        measures: Measures, what judges measured, and what stands in place of the verdict and its hedge; empty for none.
        other: The name of the other search.
        group: Number of results that judges look at in a whole group; 0 if it is not known.
    """
    rows, plain = [row for of in measures if (row := _row(*of))], words_of("plain")
    against = plain.sentence if other == plain.title else escaped(other)
    if not rows:
        return False
    st.html(f'<div class="verdict-bars">{"".join(rows)}</div>')
    groups = next((by_class_note(measured) for measure, measured, _ in measures if measure == "groups"), "")
    st.caption(f"Of 100 searches, compared with {against}. Judges see looks{groups and f': {groups}'}.",
               help="\n\n".join([*COUNTED.values(), *filter(None, [group_size_words(group)]), BY_CLASSES,
                                  *[NO_VERDICT] * any(measured.is_undervalued for _, measured, _ in measures)]))
    return True


def _row(measure: Serves, measured: Measured, verdict: str) -> str:
    """Return a bar with its name and its verdict; empty if nothing was counted; see `show_bars`."""
    counted = shares(measured)
    if counted is None:
        return ""
    words = ["better", SAME[measure], "worse"]
    said = ", ".join(f"{number} {word}" for number, word in zip(counted, words, strict=True))
    parts = "".join(
        f'<span class="{kind}" style="flex-grow:{number}" title="{number} {word}"><b>{number}</b> <i>{word}</i></span>'
        for number, word, kind in zip(counted, words, KINDS, strict=True) if number)
    if measured.is_undervalued:  # counts that are no verdict would be read as one
        return f'<div><div class="verdict-name"><b>{HEADINGS[measure]}</b> {WHY_NONE}</div></div>'
    verdict = verdict or f"{said_word(measured)}{balance_words(measured)}"
    return (f'<div><div class="verdict-name"><b>{HEADINGS[measure]}</b> {html.escape(verdict)}</div>'
            f'<div class="verdict-bar" role="img" aria-label="{HEADINGS[measure]}, of 100 searches: {said}">{parts}'
            "</div></div>")
