"""The color and line style of each compared run, the same in the table, the headings and the curves."""

from __future__ import annotations

import html
from collections.abc import Sequence

import streamlit as st

from udml_core.runs import Run
from udml_core.runs.search import FROZEN

from ..draw.figures import line_style
from ..draw.palette import BEFORE

BORDERS = {"solid": "solid", "dash": "dashed", "dot": "dotted", "dashdot": "double"}
"""Borders in place of the dashes of a chart's lines."""


def swatch(number: int, is_frozen: bool = False) -> str:
    """Return the line of a run as HTML.

    Args:
        number: The run's position among the compared runs.
        is_frozen: Whether the run has the frozen features, which have one color on every page.
    """
    line = {"color": BEFORE, "dash": "solid"} if is_frozen else line_style(number)
    return (f'<span aria-hidden="true" style="display:inline-block;width:1.6em;margin-right:0.4em;'
            f'vertical-align:0.25em;border-top:4px {BORDERS[line["dash"]]} {line["color"]}"></span>')


def swatch_of(runs: Sequence[Run], number: int) -> str:
    """Return the line of one of the compared runs as HTML."""
    return swatch(number, runs[number].spec().method == FROZEN)


def run_heading(runs: Sequence[Run], number: int, name: str, more: str = "") -> None:
    """Show a run's name in bold behind its line.

    Args:
        runs: The compared runs.
        number: The run's position among them.
        name: Its name.
        more: Text behind the name.
    """
    st.html(f"<div>{swatch_of(runs, number)}<b>{html.escape(name)}</b>{html.escape(more)}</div>")
