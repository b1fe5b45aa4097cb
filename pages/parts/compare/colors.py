"""The color and line style of each compared run, the same in the table, the headings and the curves."""

from __future__ import annotations

import html

import streamlit as st

from ..draw.figures import line_style

BORDERS = {"solid": "solid", "dash": "dashed", "dot": "dotted", "dashdot": "double"}
"""Borders in place of the dashes of a chart's lines."""


def swatch(number: int) -> str:
    """Return the line of a run as HTML; `number` is its position among the compared runs."""
    line = line_style(number)
    return (f'<span aria-hidden="true" style="display:inline-block;width:1.6em;margin-right:0.4em;'
            f'vertical-align:0.25em;border-top:4px {BORDERS[line["dash"]]} {line["color"]}"></span>')


def run_heading(number: int, name: str, more: str = "") -> None:
    """Show a run's name in bold behind its line.

    Args:
        number: The run's position among the compared runs.
        name: Its name.
        more: Text behind the name.
    """
    st.html(f"<div>{swatch(number)}<b>{html.escape(name)}</b>{html.escape(more)}</div>")
