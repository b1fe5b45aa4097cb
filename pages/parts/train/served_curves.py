"""The curves of a training in the order in which they matter: first the measure that the newest race served."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from udml_core.exploration.race_measured import ERRORS
from udml_core.numerics.measures import curve_of
from udml_core.runs import Run
from udml_core.runs.selection import ERROR, FIRST_OPINION, OPINION
from udml_core.work.jobs.raced import races_of

from ..draw.palette import signed
from ..shell.run_hash import RUN_HASH

FIRST = {"sample recall@1": "First result right", FIRST_OPINION: "First result, judged: above 0, better"}
GROUPS = {"sample map@r": "Whole group found", OPINION: "Whole group, judged: above 0, better"}
OTHERS = {"loss": "Loss, which training aims to lower", "effective rank": "Spread of the images (effective rank)"}
"""Short titles of the curves: of first results, of whole groups, and what is known without a judge."""
GAIN = "cosine gain"
"""The axis of a curve that is a gain in similarity."""


@st.cache_data(ttl="10s", max_entries=64, show_spinner=False, hash_funcs=RUN_HASH)
def titles_of(run: Run) -> dict[str, str]:
    """Return the titles of the curves, the most telling first: of what the newest race served, else of whole groups."""
    newest = next(races_of(run), None)
    return (FIRST | GROUPS if newest is not None and newest.serves == "first" else GROUPS) | OTHERS


def value_words(name: str, value: float) -> str:
    """Return a value of a curve in words."""
    measure = curve_of(name)
    if measure.axis == GAIN:
        return signed(value, 3)
    return f"{100 * value:.1f} %" if measure.is_percent else f"{value:.3g}"


def lost_words(rows: Sequence[Mapping[str, Any]], name: str) -> str:
    """Say that longer training lost some of what an earlier epoch had; empty if the last epoch is the best.

    Args:
        rows: The curves by epoch.
        name: The curve.
    """
    known = [row for row in rows if row.get(name) is not None and not row["epoch"] % 1]
    if len(known) < 2 or name in OTHERS:
        return ""
    best, last, first = max(known, key=lambda row: float(row[name])), known[-1], known[0]
    change = first.get(f"{name}{ERROR}")
    if change is not None and not first["epoch"] and abs(last[name] - first[name]) <= ERRORS * change:
        return (f"Training changed little: the start, before training, and epoch {last['epoch']:g} differ by no more "
                "than chance.")
    words = [value_words(name, row[name]) for row in (best, last)]
    if words[0] == words[1]:
        return ""
    at = f"epoch {best['epoch']:g}" if best["epoch"] else "the start, before training,"
    of_last = f"epoch {last['epoch']:g}"
    error = best.get(f"{name}{ERROR}")
    if error is not None and best[name] - last[name] <= ERRORS * error:
        return f"Longer training changed little: {at} and {of_last} differ by no more than chance."
    if curve_of(name).axis == GAIN:  # a figure without a unit, which no reader can weigh
        return f"Longer training lost some of it: {at} was better than {of_last}."
    return f"Longer training lost some of it: {at} had {words[0]}, {of_last} has {words[1]}."
