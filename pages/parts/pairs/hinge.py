"""The hinge loss of pairs: sliders for b and m, and distances against b ± m."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.base.declaration import describe_field
from udml_core.exploration import pairs as views
from udml_core.methods.nml import NML
from udml_core.runs import Run

from ..draw.figures import CURSOR, GRAY, draw, titled
from ..draw.palette import HIT, MISS, QUERY
from ..draw.slider import field_slider
from ..draw.tables import table_behind
from ..shell.cached import load_split
from ..shell.run_hash import RUN_HASH
from ..shell.run_status import hyperparameters

LOSS = ("Bars above the axis count similar pairs, bars below count dissimilar pairs; the last bars include all larger "
        "distances. The loss of a pair is max(0, m − y(b − d²)), where y is 1 for similar and −1 for dissimilar pairs.")
RANGE = 5
"""Upper end of the sliders as a multiple of the default."""


@dataclass(frozen=True)
class Hinge:
    """The hinge max(0, m − y(b − d²)).

    Attributes:
        bias: b, the squared distance between similar and dissimilar pairs.
        margin: m, the required distance of d² from b.
    """

    bias: float
    margin: float

    @cached_property
    def words(self) -> str:
        """The values of b and m in words."""
        return f"b = {self.bias:g} and m = {self.margin:g}"

    def arguments(self, squared: Array, same: Array) -> Array:
        """Return m − y(b − d²) of pairs, (p,), which is above 0 if the margin is violated."""
        return views.hinge_arguments(squared, same, self.bias, self.margin)


@st.cache_data(max_entries=32, show_spinner=False, hash_funcs=RUN_HASH)
def default_hinge(run: Run) -> Hinge:
    """Return the run's b and m, or values that fit the embedding."""
    fields = hyperparameters(run)
    if "bias" in fields:
        return Hinge(fields["bias"], fields["margin"])
    return Hinge(*views.default_hinge(run.embeddings("final")[load_split(run).train]))


@st.cache_data(max_entries=32, show_spinner=False, hash_funcs=RUN_HASH)
def labeling_hinge(run: Run) -> Hinge:
    """Return the run's b and m, or values at which its embedding is least certain."""
    if "bias" in hyperparameters(run):
        return default_hinge(run)
    return Hinge(*views.labeling_hinge(run.embeddings("final")[load_split(run).train]))


def hinge_sliders(run: Run, key: str, default: Hinge | None = None) -> Hinge:
    """Show sliders for b and m, whose values the address holds.

    Args:
        run: The run.
        key: Prefix of the widgets' keys.
        default: The values without a choice; `default_hinge` if None.
    """
    default = default or default_hinge(run)
    mark = "this run" if "bias" in hyperparameters(run) else "fits the embedding"
    bias, margin = describe_field(NML, "bias"), describe_field(NML, "margin")
    # Squared distances differ by orders of magnitude between embeddings, so range and step follow the default instead
    # of the fields: b above 0, m from 0, both to a multiple of the default in steps of its second digit.
    step = views.slider_step(default.bias)
    fine = views.slider_step(default.margin) if default.margin else step / 10
    bias = replace(bias, shown=replace(bias.shown, low=step, high=RANGE * default.bias, step=step))
    margin = replace(margin, shown=replace(margin.shown, low=0.0, high=RANGE * (default.margin or default.bias),
                                           step=fine))
    left, right = st.columns(2)
    with left:
        b = field_slider(bias, f"{key}-bias", default.bias, "pairs nearer than this count as similar",
                         marks={default.bias: mark})
    with right:
        m = field_slider(margin, f"{key}-margin", default.margin, "how far a pair must lie from b to be clear",
                         marks={default.margin: mark})
    return Hinge(b, m)


def distance_charts(before: Array, after: Array, same: Array, hinge: Hinge, reach: float,
                    marked: tuple[float, float] | None) -> None:
    """Show the squared distances before and after training against b ± m.

    Args:
        before: Squared distances before training, (p,).
        after: Squared distances after training, (p,).
        same: Whether each pair is labeled same, (p,).
        hinge: The values of b and m.
        reach: The smallest upper end of the axis.
        marked: Both squared distances of a pair to mark.
    """
    histograms = views.distance_histograms(before, after, same, reach)
    for column, when, counts, mark in zip(st.columns(2), ("before", "after"), (histograms.before, histograms.after),
                                          marked or (None, None), strict=True):
        with column:
            _distance_chart(histograms.edges, counts, when, hinge, mark)
    st.caption("Similar pairs belong left of the gray band b ± m, dissimilar pairs right of it; ◆ marks the current "
               "pair.", help=LOSS)
    table_behind("Distances as a table", pd.DataFrame({
        "From d²": histograms.edges[:-1], "To d²": histograms.edges[1:], "Similar, before": histograms.before[0],
        "Dissimilar, before": histograms.before[1], "Similar, after": histograms.after[0],
        "Dissimilar, after": histograms.after[1]}))


def _distance_chart(edges: Array, counts: Array, when: str, hinge: Hinge, marked: float | None) -> None:
    middles = (edges[:-1] + edges[1:]) / 2
    figure = go.Figure()
    for word, values, color, shape in (("similar", counts[0], HIT, ""), ("dissimilar", -counts[1], MISS, "/")):
        figure.add_bar(x=middles, y=values, name=word, customdata=np.abs(values), width=edges[1],
                       marker={"color": color, "pattern": {"shape": shape}},
                       hovertemplate=f"%{{customdata}} {word} near d² %{{x:.3g}}<extra></extra>")
    figure.add_vrect(max(0.0, hinge.bias - hinge.margin), hinge.bias + hinge.margin, fillcolor=GRAY, opacity=0.35,
                     line_width=0)
    figure.add_vline(hinge.bias, line=CURSOR, annotation_text="b")
    if marked is not None:
        figure.add_scatter(x=[min(marked, edges[-1])], y=[0], mode="markers", showlegend=False, hoverinfo="x",
                           marker={"symbol": "diamond", "size": 13, "color": QUERY,
                                   "line": {"width": 2, "color": "white"}})
    most = int(counts.max(initial=1))
    ticks = sorted({0, most // 2, most})
    titled(figure, f"Squared distances {when} training", 260, barmode="overlay",
           legend={"orientation": "h", "y": -0.32},
           xaxis={"range": [0, edges[-1]], "title": "squared distance d²"})
    figure.update_yaxes(tickvals=[*(-tick for tick in ticks), *ticks], ticktext=[str(tick) for tick in ticks] * 2,
                        range=[-1.1 * most, 1.1 * most], title="pairs")
    same, different = (int(values[: np.searchsorted(middles, hinge.bias)].sum()) for values in counts)
    draw(figure, f"pairs-spread-{when}", f"Squared distances {when} training: {same} of {counts[0].sum()} similar "
         f"pairs and {different} of {counts[1].sum()} dissimilar pairs lie below b = {hinge.bias:g}.")
