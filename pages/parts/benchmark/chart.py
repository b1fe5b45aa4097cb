"""The ranked methods as a chart: a point for each method and data set, the best method first."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from udml_core.numerics.measures import measure_of
from udml_core.results.benchmark import Benchmark

from ..draw.figures import draw, line_style
from ..results.charts import LEGEND

ROW, HEAD = 20, 74
"""Heights in pixels of a method, and of the legend with the axis."""


def chart_ranked(benchmark: Benchmark, names: list[str], measure: str) -> None:
    """Show the mean and the standard deviation of each method on each data set, and what the marks mean.

    Args:
        benchmark: The chosen data sets and methods.
        names: The methods in the order of the table.
        measure: The measure.
    """
    shown = measure_of(measure)
    st.caption(f"A mark is a method's {shown.name} on one data set; a line through it spans one standard deviation "
               f"over the seeds to each side. The best {mean_words(benchmark)} is first.")
    draw(ranked_figure(benchmark, names, measure), "benchmark-chart", f"{shown.name} of {len(names)} methods on "
         f"{len(benchmark.datasets)} data sets. The first is {names[0]}. The table below lists all values.")


def mean_words(benchmark: Benchmark) -> str:
    """Return by what the methods are ordered: the average rank on several data sets."""
    return "average rank" if len(benchmark.datasets) > 1 else "mean"


def ranked_figure(benchmark: Benchmark, names: list[str], measure: str) -> go.Figure:
    """Return the chart: a row for each method with its name, the first at the top, and a mark for each data set."""
    figure = go.Figure()
    for number, dataset in enumerate(benchmark.datasets.values()):
        values = {name: dataset.entries[name].summary[measure] for name in names
                  if name in dataset.entries and measure in dataset.entries[name].summary}
        color = line_style(number)["color"]
        figure.add_scatter(x=[mean for mean, _ in values.values()], y=list(values), name=dataset.title, mode="markers",
                           marker={"color": color, "size": 8, "symbol": number},
                           error_x={"array": [deviation for _, deviation in values.values()], "color": color})
    figure.update_layout(height=HEAD + ROW * len(names), showlegend=True, hovermode="y unified",
                         legend=LEGEND | {"y": 1, "yref": "container", "yanchor": "top"},
                         margin={"l": 0, "r": 10, "t": HEAD - 10, "b": 10})
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=names, tickvals=names,
                        range=[len(names) - 0.5, -0.5], tickfont={"size": 12}, title="", automargin=True)
    figure.update_xaxes(title={"text": measure_of(measure).title, "standoff": 4}, side="top")
    return figure
