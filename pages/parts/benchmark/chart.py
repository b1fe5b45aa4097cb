"""The ranked methods as a chart: a point for each method and data set, the best method first."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from udml_core.numerics.measures import LOWER, NEITHER, Measure, measure_of
from udml_core.results.axis import outer_fence, place_beyond
from udml_core.results.benchmark import Benchmark

from ..draw.figures import BREAK, GRAY, draw, line_style
from ..results.charts import HEAD, LEGEND, add_marks

ROW = 20
"""Pixels of a method."""
LAST = 2000
"""Place in the legend behind the data sets."""


def chart_ranked(benchmark: Benchmark, names: list[str], measure: str) -> None:
    """Show what stands on top, the mean and the standard deviation of each method, and what the marks mean.

    Args:
        benchmark: The chosen data sets and methods.
        names: The methods in the order of the table.
        measure: The measure.
    """
    shown = measure_of(measure)
    st.markdown(f"##### {headline(benchmark, names, measure)}")
    st.caption(f"A mark is a method's {shown.sentence} on one data set, gray without training; a line through it "
               f"spans one standard deviation over the seeds to each side. A triangle at the end of the axis is a "
               f"value beyond it. The best {mean_words(benchmark)} is first.")
    draw(ranked_figure(benchmark, names, measure), "benchmark-chart", f"{shown.name} of {len(names)} methods on "
         f"{len(benchmark.datasets)} data sets. The first is {names[0]}. The table below lists all values.")


def mean_words(benchmark: Benchmark) -> str:
    """Return by what the methods are ordered: the average rank on several data sets."""
    return "average rank" if len(benchmark.datasets) > 1 else "mean"


def headline(benchmark: Benchmark, names: list[str], measure: str) -> str:
    """Name the first method of the chart, and the first trained method where the first is not trained."""
    shown, trained = measure_of(measure), trained_names(benchmark)
    leads = f"{'has the best average rank' if len(benchmark.datasets) > 1 else 'is first'} by {shown.sentence}"
    learned = next((position for position, name in enumerate(names) if name in trained), None)
    if learned == 0:
        return f"{names[0]} {leads}"
    after = "" if learned is None else f"; the best trained method, {names[learned]}, is at place {learned + 1}"
    return f"{names[0]}, without training, {leads}{after}"


def trained_names(benchmark: Benchmark) -> set[str]:
    """Return the titles of the methods that learn something."""
    return {name for dataset in benchmark.datasets.values() for name, entry in dataset.entries.items()
            if entry.is_trained}


def shared_fence(benchmark: Benchmark, measure: Measure) -> float | None:
    """Return the value beyond which marks are outliers on their own data set and on all others; None for none."""
    if measure.better == NEITHER:
        return None
    lower, edges, fences = measure.better == LOWER, [], []
    for dataset in benchmark.datasets.values():
        values = [entry.summary[measure.key][0] for entry in dataset.entries.values() if measure.key in entry.summary]
        if values:
            fence = outer_fence(values, lower)
            fences.append(fence)
            edges.append((max(values) if lower else min(values)) if fence is None else fence)
    if all(fence is None for fence in fences):
        return None
    edge = max(edges) if lower else min(edges)
    return edge if edge in fences else None


def ranked_figure(benchmark: Benchmark, names: list[str], measure: str) -> go.Figure:
    """Return the chart: a row for each method with its name, the first at the top, and a mark for each data set."""
    figure = go.Figure()
    shown, trained = measure_of(measure), trained_names(benchmark)
    fence = shared_fence(benchmark, shown)
    known = [entry.summary[measure][0] for dataset in benchmark.datasets.values() for entry in dataset.entries.values()
             if measure in entry.summary]
    place = 0.0 if fence is None else place_beyond(known, fence, shown.better == LOWER)
    for number, dataset in enumerate(benchmark.datasets.values()):
        values = {name: dataset.entries[name].summary[measure] for name in names
                  if name in dataset.entries and measure in dataset.entries[name].summary}
        for is_trained, color in ((True, line_style(number)["color"]), (False, GRAY)):
            add_marks(figure, {name: spread for name, spread in values.items() if (name in trained) == is_trained},
                      dataset.title if is_trained else "not trained", {"color": color, "size": 8, "symbol": number},
                      fence, place, shown, is_trained or not number)
    figure.update_traces(legendrank=LAST, selector={"name": "not trained"})
    figure.update_layout(height=HEAD + ROW * len(names), showlegend=True, hovermode="y unified",
                         legend=LEGEND | {"y": 1, "yref": "container", "yanchor": "top"},
                         margin={"l": 0, "r": 10, "t": HEAD - 10, "b": 10})
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=names, tickvals=names,
                        range=[len(names) - 0.5, -0.5], tickfont={"size": 13}, title="", automargin=True)
    figure.update_xaxes(title={"text": shown.plain_axis.replace(" · ", BREAK), "standoff": 12}, side="top")
    return figure
