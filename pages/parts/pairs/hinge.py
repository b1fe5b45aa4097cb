"""The hinge that pairs are held against: sliders for b and m, and where squared distances lie against b ± m."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from pages.parts.base.address import number_from_address, write_address
from pages.parts.base.cached import load_split
from pages.parts.components.slider import live_slider
from pages.parts.kit.figures import COLORS, GRAY, draw, table_behind
from udml_core.arrays import Array
from udml_core.exploration import pairs as views
from udml_core.runs import Run, find_run, runs_folder


@dataclass(frozen=True)
class Hinge:
    """b and m."""

    bias: float
    margin: float

    @cached_property
    def words(self) -> str:
        return f"b = {self.bias:g} and m = {self.margin:g}"

    def arguments(self, squared: Array, same: Array) -> Array:
        """What pairs lack of their margin; they violate where it is above 0."""
        return views.arguments(squared, same, self.bias, self.margin)


@st.cache_data(max_entries=32, show_spinner=False)
def _usual(folder: str) -> Hinge:
    run = find_run(folder, runs_folder())
    fields = run.spec().build_method().model_dump()
    if "bias" in fields:
        return Hinge(fields["bias"], fields["margin"])
    return Hinge(*views.default_hinge(run.embeddings("final")[load_split(run).train]))


def default_hinge(run: Run) -> Hinge:
    """The run's own b and m; of a run that learnt from no pairs, some that suit its embedding."""
    return _usual(str(run.folder))


def hinge_sliders(run: Run, key: str) -> Hinge:
    """b and m, kept in the address."""
    usual = default_hinge(run)
    step = views.step_of(usual.bias)
    fine = views.step_of(usual.margin) if usual.margin else step / 10
    mark = "this run" if "bias" in run.spec().build_method().model_dump() else "usual"
    values = []
    for column, (name, words, at, low, rise) in zip(st.columns(2), (
            ("bias", "b, the squared distance that divides", usual.bias, step, step),
            ("margin", "m, how far from b to stay", usual.margin, 0.0, fine)), strict=True):
        high = 5 * (at or usual.bias)
        with column:
            value = live_slider(words, low, high, number_from_address(name, at, low, high), rise, f"{key}-{name}",
                                marks={at: mark})
        write_address(name, f"{value:g}", f"{at:g}")
        values.append(value)
    return Hinge(*values)


def spread_pictures(before: Array, after: Array, same: Array, hinge: Hinge, reach: float,
                    marked: tuple[float, float] | None) -> None:
    """Squared distances before and after training against b ± m; those of one pair can be marked."""
    found = views.spread(before, after, same, reach)
    for column, when, counts, at in zip(st.columns(2), ("before", "after"), (found.before, found.after),
                                        marked or (None, None), strict=True):
        with column:
            _spread_picture(found.edges, counts, when, hinge, at)
    st.caption("Upwards: pairs that are the same, which belong left of the grey band. Downwards: different ones, which "
               "belong right of it. The band is b ± m; the last bars hold all that is beyond. ◆ the pair below.")
    table_behind("The distances as a table", pd.DataFrame({
        "From d²": found.edges[:-1], "To d²": found.edges[1:], "Same, before": found.before[0],
        "Different, before": found.before[1], "Same, after": found.after[0], "Different, after": found.after[1]}))


def _spread_picture(edges: Array, counts: Array, when: str, hinge: Hinge, marked: float | None) -> None:
    middles = (edges[:-1] + edges[1:]) / 2
    figure = go.Figure()
    for word, values, color, shape in (("same", counts[0], COLORS[0], ""), ("different", -counts[1], COLORS[1], "/")):
        figure.add_bar(x=middles, y=values, name=word, customdata=np.abs(values), width=edges[1],
                       marker={"color": color, "pattern": {"shape": shape}},
                       hovertemplate=f"%{{customdata}} {word} near d² %{{x:.3g}}<extra></extra>")
    figure.add_vrect(max(0.0, hinge.bias - hinge.margin), hinge.bias + hinge.margin, fillcolor=GRAY, opacity=0.35,
                     line_width=0)
    figure.add_vline(hinge.bias, line={"width": 2, "dash": "dot", "color": GRAY}, annotation_text="b")
    if marked is not None:
        figure.add_scatter(x=[min(marked, edges[-1])], y=[0], mode="markers", showlegend=False, hoverinfo="x",
                           marker={"symbol": "diamond", "size": 13, "color": COLORS[2],
                                   "line": {"width": 2, "color": "white"}})
    most = int(counts.max(initial=1))
    ticks = sorted({0, most // 2, most})
    figure.update_layout(title={"text": f"d² {when} training", "font": {"size": 14}}, height=260, barmode="overlay",
                         margin={"l": 8, "r": 8, "t": 36, "b": 8}, legend={"orientation": "h", "y": -0.18},
                         xaxis={"range": [0, edges[-1]]})
    figure.update_yaxes(tickvals=[*(-one for one in ticks), *ticks], ticktext=[str(one) for one in ticks] * 2,
                        range=[-1.1 * most, 1.1 * most], title="pairs")
    left, right = (int(values[: np.searchsorted(middles, hinge.bias)].sum()) for values in counts)
    draw(figure, f"pairs-spread-{when}", f"Squared distances {when} training: {left} of {counts[0].sum()} pairs that "
         f"are the same lie below b = {hinge.bias:g}, and {right} of {counts[1].sum()} that are different.")
