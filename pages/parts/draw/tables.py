"""Tables: the numbers of a chart, and evaluations."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from .palette import percent

EVALUATION_ROWS = ("recall@1", "recall@2", "recall@4", "recall@8", "recall@10", "recall@100", "recall@1000",
                   "gallery recall@1", "gallery recall@10", "gallery recall@20", "gallery recall@50", "mprec@10",
                   "map@r", "knn@200", "linear probe", "nmi", "f", "purity", "trustworthiness", "continuity",
                   "effective rank", "neighbors kept from frozen", "dimension", "images")
MEASURE_WORDS = {**{f"recall@{k}": f"R@{k}" for k in (1, 2, 4, 8, 10, 20, 50, 100, 1000)},
                 "mprec@10": "mprec@10", "map@r": "MAP@R", "knn@200": "Weighted kNN, k = 200", "nmi": "NMI",
                 **{f"gallery recall@{k}": f"R@{k}, queries to gallery" for k in (1, 10, 20, 50)},
                 "f": "Pairwise F", "neighbors kept from frozen": "10 nearest neighbors kept from frozen features",
                 "dimension": "Dimension", "width": "Dimension", "images": "Images searched"}
EMBEDDING_WORDS = {"initial": "Before training", "frozen": "Frozen", "centered pca": "PCA (centered)",
                   "pca": "PCA, same dimension", "final": "After training", "latent": "After training, latent z"}
"""Titles of embeddings; versions before 0.3 evaluated "pca", which is not centered."""
NOT_PERCENT = {"effective rank": "{:,.1f}", "dimension": "{:,.0f}", "images": "{:,.0f}"}
"""The formats of measures that are not percentages."""


def measure_text(name: str, value: float | None) -> str:
    """Format a measure: percent with one decimal, or a number; a dash if there is none."""
    if value is None or pd.isna(value):
        return percent(None)
    return NOT_PERCENT[name].format(value) if name in NOT_PERCENT else percent(value)


def table_behind(label: str, frame: pd.DataFrame) -> None:
    """Show the numbers of a chart in a closed expander."""
    with st.expander(label, icon=":material/table:"):
        plain_table(frame)


def plain_table(frame: pd.DataFrame) -> None:
    """Show a table without its index, with the number formats of the texts."""
    st.dataframe(frame, hide_index=True, width="stretch", column_config={
        name: st.column_config.NumberColumn(format=number) for name, number in number_formats(frame).items()})


def number_formats(frame: pd.DataFrame) -> dict[str, str]:
    """Return the formats of a table's columns: percentages with one decimal, counts with separators of thousands."""
    formats = {}
    for name, column in frame.items():
        if pd.api.types.is_integer_dtype(column):
            formats[str(name)] = "localized"
        elif pd.api.types.is_float_dtype(column) and str(name).endswith("%"):
            formats[str(name)] = "%.1f"
    return formats


def evaluation_table(evaluations: Mapping[str, Mapping[str, Mapping[str, float | None]]]) -> pd.DataFrame:
    """Build the table of evaluations.

    Args:
        evaluations: Measures by run and by embedding: initial, frozen, centered pca, final and, for PSLR, latent.

    Returns:
        A row for each measure and a column for each embedding of each run, as text.
    """
    columns = {}
    for run, evaluation in evaluations.items():
        for embedding, measures in evaluation.items():
            title = EMBEDDING_WORDS.get(embedding, embedding.capitalize())
            columns[title if len(evaluations) == 1 else f"{run}: {title}"] = measures
    present = [name for name in EVALUATION_ROWS
               if any(measures.get(name) is not None for measures in columns.values())]
    words = pd.Index([MEASURE_WORDS.get(name, name.capitalize()) for name in present], name="Measure")
    return pd.DataFrame({title: [measure_text(name, measures.get(name)) for name in present]
                         for title, measures in columns.items()}, index=words)
