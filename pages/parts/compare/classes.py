"""MAP@R of every class in all compared runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.numerics.measures import measure_of
from udml_core.runs import Run

from ..draw.figures import GRAY, draw, line_style
from ..draw.tables import table_behind
from ..shell.cached import load_retrieval, progress_bar
from .seed_means import MOST_RANKED

MOST_CLASSES = 16
"""Classes in the chart."""
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star")
"""Marks of the runs, because color alone says too little."""


def show_classes(runs: Sequence[Run], names: Sequence[str]) -> None:
    """Show MAP@R of the classes on which the runs differ most, a mark for each run."""
    opened = [load_retrieval(run) for run in runs]
    dataset, test = opened[0].dataset, opened[0].split.test
    if len(test) > MOST_RANKED:
        st.info(f"This part ranks all test images for each of them, at most {MOST_RANKED:,}; these runs have "
                f"{len(test):,}.", icon=":material/lightbulb:")
        return
    with progress_bar() as report:
        scores = [retrieval.precisions(report) for retrieval in opened]
    assert dataset.labels is not None, "the part is offered with labels only"
    classes, values = class_means([dataset.labels[retrieval.split.test] for retrieval in opened], scores)
    titles = [dataset.class_names[label] for label in classes]
    order = np.argsort(np.min(values, axis=0) - np.max(values, axis=0), kind="stable")
    _draw([titles[row] for row in order[:MOST_CLASSES]], values[:, order[:MOST_CLASSES]], names)
    left = f" {MOST_CLASSES} of {len(classes)} classes are shown." if len(classes) > MOST_CLASSES else ""
    st.caption(f"Mean over the queries of each class; the classes on which the runs differ most come first.{left}")
    table_behind("Whole group found, of every class, %", pd.DataFrame({"Class": titles} | {
        name: row.round(1) for name, row in zip(names, values, strict=True)}))


def class_means(labels: Sequence[Array], scores: Sequence[Array]) -> tuple[Array, Array]:
    """Return the mean average precision of each class in percent.

    Args:
        labels: Classes of the queries of each run, (t,).
        scores: Average precision of the queries of each run, (t,); NaN for a query that is alone in its class.

    Returns:
        The classes (c,) of which every run has a value, ascending, and the means (runs, c).
    """
    means = [pd.Series(100 * of_run).groupby(np.asarray(of_class)).mean().dropna()
             for of_class, of_run in zip(labels, scores, strict=True)]
    table = pd.concat(means, axis=1, join="inner").sort_index()
    return table.index.to_numpy(), table.to_numpy().T


def _draw(titles: Sequence[str], values: Array, names: Sequence[str]) -> None:
    """Draw a row for each class, the first at the top, with a mark for each run."""
    figure = go.Figure()
    for number, (title, of_class) in enumerate(zip(titles, values.T, strict=True)):
        figure.add_scatter(x=[of_class.min(), of_class.max()], y=[title, title], mode="lines", showlegend=False,
                           hoverinfo="skip", line={"color": GRAY, "width": 2}, name=f"range {number}")
    for number, (name, of_run) in enumerate(zip(names, values, strict=True)):
        figure.add_scatter(x=of_run, y=list(titles), name=name, mode="markers", hovertemplate="%{y}: %{x:.1f} %",
                           marker={"color": line_style(number)["color"], "size": 12,
                                   "symbol": SYMBOLS[number % len(SYMBOLS)]})
    figure.update_layout(title={"text": "Whole group found, by class", "font": {"size": 14}},
                         height=130 + 24 * len(titles), margin={"l": 8, "r": 8, "t": 66, "b": 8},
                         legend={"orientation": "h", "y": 1.0, "x": 0, "yanchor": "bottom"})
    figure.update_xaxes(title=measure_of("map@r").plain_axis)
    figure.update_yaxes(title="class", type="category", autorange="reversed", automargin=True)
    said = [f"{title}: " + ", ".join(f"{name} {value:.1f} %" for name, value in zip(names, of_class, strict=True))
            for title, of_class in zip(titles, values.T, strict=True)]
    draw(figure, "compare-classes", f"Whole group found, by class. {'; '.join(said)}.")
