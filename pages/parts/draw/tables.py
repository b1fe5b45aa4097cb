"""Tables: the numbers of a chart, and evaluations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from udml_core.base.spreadsheets import inert
from udml_core.numerics.measures import MEASURES
from udml_core.results.embedding_words import words_of

EVALUATION_ROWS = ("recall@1", "recall@2", "recall@4", "recall@8", "recall@10", "recall@100", "recall@1000",
                   "gallery recall@1", "gallery recall@10", "gallery recall@20", "gallery recall@50", "mprec@10",
                   "map@r", "knn@200", "linear probe", "nmi", "f", "purity", "trustworthiness", "continuity",
                   "effective rank", "neighbors kept from frozen", "dimension", "images", "queries", "recall@1 margin",
                   "map@r margin")

RELATIVE, REFERENCE = ("trustworthiness", "continuity"), "reference"
"""Measures that compare an embedding with the frozen features, and what stands in the column of these."""


def table_behind(label: str, frame: pd.DataFrame) -> None:
    """Show the numbers of a chart in a closed expander."""
    with st.expander(label, icon=":material/table:"):
        plain_table(frame)


def data_table(table: Any, **options: Any) -> Any:
    """Show a table as `st.dataframe` does; a spreadsheet computes no text of the file that its menu downloads.

    Args:
        table: The table, or one that is styled and whose cells are inert already.
        options: What `st.dataframe` takes.
    """
    return st.dataframe(inert_table(table) if isinstance(table, pd.DataFrame) else table, **options)


def inert_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table of which a spreadsheet computes no text; it looks the same."""
    table = frame.copy(deep=False)
    for position in range(frame.shape[1]):
        column = frame.iloc[:, position]
        if pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column):
            table.isetitem(position, column.map(inert).array)
    table = table.rename(columns=inert)
    return table if frame.index.dtype.kind in "iuf" else table.rename(index=inert)


def plain_table(frame: pd.DataFrame) -> None:
    """Show a table without its index, with the number formats of the texts."""
    data_table(frame, hide_index=True, width="stretch", column_config={
        name: st.column_config.NumberColumn(format=number) for name, number in number_formats(frame).items()})


def wrapped_table(frame: pd.DataFrame, key: str = "") -> None:
    """Show a table of words whose cells wrap, so that no name is cut; rows are named by the index.

    Args:
        frame: The table, whose words are read as Markdown.
        key: The widget's key; by default the name of the index.
    """
    with st.container(key=f"wrapped-{key or frame.index.name}".lower()):
        st.table(frame)


def number_formats(frame: pd.DataFrame) -> dict[str, str]:
    """Return the formats of a table's columns: percentages with one decimal, counts with separators of thousands."""
    formats = {}
    for name, column in frame.items():
        if pd.api.types.is_integer_dtype(column):
            formats[str(name)] = "localized"
        elif pd.api.types.is_float_dtype(column) and str(name).endswith("%"):
            formats[str(name)] = "%.1f"
    return formats


def evaluation_table(evaluations: Mapping[str, Mapping[str, Mapping[str, float | None]]],
                     titles: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Build the table of evaluations.

    Measures that compare an embedding with the frozen features say of these that they are the reference.

    Args:
        evaluations: Measures by run and by embedding: initial, frozen, centered pca, final and, for PSLR, latent.
        titles: Titles of embeddings in place of the usual ones.

    Returns:
        A row for each measure and a column for each embedding of each run, as text.
    """
    columns: dict[str, Mapping[str, float | None]] = {}
    references: set[str] = set()
    for run, evaluation in evaluations.items():
        for embedding, measures in evaluation.items():
            title = (titles or {}).get(embedding) or words_of(embedding).title
            heading = title if len(evaluations) == 1 else f"{run}: {title}"
            columns[heading] = measures
            if embedding == "frozen":
                references.add(heading)
    present = [name for name in EVALUATION_ROWS
               if any(measures.get(name) is not None for measures in columns.values())]
    words = pd.Index([MEASURES[name].name for name in present], name="Measure")
    return pd.DataFrame({title: [REFERENCE if title in references and name in RELATIVE and name in measures else
                                 MEASURES[name].text(measures.get(name)) for name in present]
                         for title, measures in columns.items()}, index=words)
