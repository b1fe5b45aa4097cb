"""A record's table as text, and how it was measured."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from udml_core.exploration.paper_tables import Cell, PaperTable
from udml_core.numerics.measures import measure_of
from udml_core.results.records import Spread, Table

WHOLE_NUMBERS = ("epoch", "size", "events", "tried", "held", "broken", "mended", "sessions", "steps", "browsers")
"""Counts that only records have."""


def table_frame(table: Table) -> pd.DataFrame:
    """Return all values as text.

    Untrained rows come first; below each row are the values that its paper reports.
    """
    measures = table.measures()
    measured = {**table.references, **table.rows}
    rows: dict[str, list[str]] = {}
    for name in {**measured, **table.printed}:
        if name in measured:
            rows[name] = [spread_text(measured[name].get(measure), measure) for measure in measures]
        if name in table.printed:
            values = [table.printed[name].get(measure) for measure in measures]
            title = f"{name}, reported" if table.comparable else f"{name}, reported*"
            rows[title] = ["" if value is None else f"{value:g}" for value in values]
    return pd.DataFrame.from_dict(rows, orient="index", columns=[measure_of(measure).title for measure in measures])


def paper_table(table: Table) -> PaperTable:
    """Return a record's table for a paper, untrained rows first."""
    return PaperTable(table.title, {
        name: {measure: Cell(*value, table.by_seed.get(name, {}).get(measure, {})) for measure, value in row.items()}
        for name, row in {**table.references, **table.rows}.items()})


def number_frame(table: Table) -> pd.DataFrame:
    """Return all values as numbers: a column of means and a column of deviations for each measure."""
    reported = {f"{name}, reported": {measure: (value, None) for measure, value in row.items()}
                for name, row in table.printed.items()}
    rows = {name: [number for measure in table.measures() for number in row.get(measure, (None, None))]
            for name, row in {**table.references, **table.rows, **reported}.items()}
    titles = [measure_of(measure).title for measure in table.measures()]
    return pd.DataFrame.from_dict(rows, orient="index", columns=[
        column for title in titles for column in (title, f"{title}, deviation")])


def spread_text(value: Spread | None, measure: str) -> str:
    """Return a mean, with its standard deviation if the seeds differ."""
    if value is None:
        return ""
    mean, deviation = value
    if measure in WHOLE_NUMBERS or measure_of(measure).digits == 0 or abs(mean) >= 1000:
        return f"{mean:,.0f}"
    return f"{mean:.1f} ± {deviation:.1f}" if deviation >= 0.05 else f"{mean:.1f}"


def show_provenance(provenance: Mapping[str, str]) -> None:
    """Show the command, protocol, device and versions of a measurement."""
    with st.expander("How was it measured?", icon=":material/terminal:"):
        for name, value in provenance.items():
            if name == "command":
                st.code(value, language="bash", wrap_lines=True)
            else:
                st.markdown(f"**{name.capitalize()}**: {value}")
