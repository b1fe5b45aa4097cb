"""The diagram of average ranks and of the critical difference."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from udml_core.numerics.measures import measure_of
from udml_core.results.benchmark import Benchmark, Difference, critical_difference

from ..draw.figures import COLORS, GRAY, draw
from ..results.charts import wrapped

FEW_DATASETS = 5
"""Below this number of data sets the test has little power even for few methods."""


def show_difference(benchmark: Benchmark, measure: str, seeds: int) -> None:
    """Show the average ranks, and lines beside methods that the test cannot separate."""
    if measure == "lines":
        st.caption("Lines of code are the same on all data sets, so there is nothing to test.")
        return
    names, scores = benchmark.scores(measure)
    difference = critical_difference(names, scores, measure_of(measure).better == "lower")
    if difference is None:
        st.info("A critical difference needs three methods that are measured on all chosen data sets. Choose more "
                "kinds of supervision or one data set above.", icon=":material/lightbulb:")
        return
    st.markdown(verdict(difference, seeds, len(benchmark.names()) - len(names)))
    figure = go.Figure()
    ranks = difference.average_ranks
    labels = [wrapped(name) for name in difference.names]
    figure.add_scatter(x=list(ranks), y=list(range(len(ranks))), mode="markers", name="average rank",
                       text=list(difference.names), hovertemplate="%{text}: %{x:.2f}<extra></extra>",
                       marker={"size": 9, "color": COLORS[0]})
    end = max(ranks)
    for number, (first, last) in enumerate(difference.groups()):
        figure.add_scatter(x=[end + 0.8 + 0.6 * number] * 2, y=[first, last], mode="lines", name="not separated",
                           line={"width": 5, "color": GRAY}, hoverinfo="skip", showlegend=number == 0)
    figure.update_layout(height=120 + 22 * len(ranks), margin={"l": 8, "r": 8, "t": 8, "b": 8}, showlegend=True,
                         legend={"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0})
    figure.update_yaxes(tickvals=list(range(len(ranks))), ticktext=labels, autorange="reversed", automargin=True)
    figure.update_xaxes(title="average rank, 1 is best")
    draw(figure, "benchmark-difference", f"Average ranks by {measure_of(measure).name}: {difference.names[0]} has "
         f"{ranks[0]:.1f}, {difference.names[-1]} has {ranks[-1]:.1f}; the critical difference is "
         f"{difference.critical:.1f}.")
    st.caption("A gray line joins methods whose average ranks differ by less than the critical difference. Friedman's "
               "test and Nemenyi's critical difference follow Demšar (JMLR 2006), at 5 %.")


def verdict(difference: Difference, seeds: int, left_out: int) -> str:
    """Say on how many data sets the ranks rest, and whether they can separate any methods."""
    count, methods = difference.datasets, len(difference.names)
    text = (f"{methods} methods on {count} data set{'s' if count > 1 else ''} × {seeds} seeds. Seeds share all "
            "images, so they are averaged and do not count as further data sets. ")
    if left_out:
        text += (f"{left_out} {'method is' if left_out == 1 else 'methods are'} left out, because a data set lacks "
                 f"{'it' if left_out == 1 else 'them'} or the measure. ")
    text += f"The critical difference of the average ranks is **{difference.critical:.1f}**"
    if not difference.can_separate:
        return text + (f", and ranks of {methods} methods differ by {methods - 1} at most: **so few data sets cannot "
                       "separate any two methods.** Read the ranks as a description of these data sets.")
    p = "below 0.001" if difference.p < 0.001 else f"{difference.p:.3f}"
    text += f"; Friedman's test gives p {'' if p[0] == 'b' else '= '}{p}"
    if count < FEW_DATASETS:
        text += ", and with so few data sets only the largest differences can be separated"
    return text + "."
