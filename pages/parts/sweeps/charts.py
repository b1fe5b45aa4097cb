"""A sweep as pictures: the measure over each field, and all fields at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from pages.parts.base.setting_words import setting_title
from pages.parts.kit.figures import COLORS, draw
from pages.parts.kit.palette import AFTER
from pages.parts.sweeps.words import METHOD_TITLES, combination_words, criterion_text
from udml_core import sweeps
from udml_core.jobs.presets import show
from udml_core.sweeps import Combination, Criterion

A_ROW = 3
MOST_FIELDS = 9
MOST_TICKS = 12
DECADES = 30.0
"""Ratio of the ends from which an axis of positive values is logarithmic."""


@dataclass(frozen=True)
class Axis:
    """A varied field as an axis.

    Attributes:
        title: Its title.
        values: The value of each combination; None where its method has no such field.
        is_number: Whether all values are numbers.
        is_logarithmic: Whether the axis shows factors.
    """

    title: str
    values: list[Any]
    is_number: bool
    is_logarithmic: bool

    @property
    def texts(self) -> list[str]:
        """The distinct values as text, in order."""
        known = sorted({value for value in self.values if value is not None}, key=_order)
        return [show(value) for value in known] + (["–"] if None in self.values else [])

    def shown(self, value: Any) -> Any:
        """Return a value as a chart takes it: a number, or its text."""
        return value if self.is_number else "–" if value is None else show(value)


def axes_of(found: Sequence[Combination]) -> list[Axis]:
    """Return the axes of fields that vary among combinations, the method first."""
    axes = [_axis("Method", [METHOD_TITLES.get(one.method, one.method) for one in found])]
    names = list(dict.fromkeys(name for one in found for name in one.values))
    methods = {name: next(one.method for one in found if name in one.values) for name in names}
    axes += [_axis(setting_title(name, methods[name]), [one.values.get(name) for one in found]) for name in names]
    return [axis for axis in axes if len(axis.texts) > 1]


def _axis(title: str, values: list[Any]) -> Axis:
    is_number = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    is_logarithmic = is_number and min(values) > 0 and max(values) / min(values) >= DECADES
    return Axis(title, values, is_number, is_logarithmic)


def _order(value: Any) -> tuple[bool, float, str]:
    """Return a key that sorts numbers by size before texts."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return (not is_number, float(value) if is_number else 0.0, str(value))


def show_multiples(found: Sequence[Combination], criterion: Criterion) -> None:
    """Show the measure over each varied field, side by side with equal scales."""
    axes = axes_of(found)
    if not axes:
        return
    st.markdown("#### Which field matters?")
    means = [one.score.mean for one in found if one.score]
    room = max((max(means) - min(means)) / 8, 0.5)
    best = next(iter(sweeps.best_combinations(found).values()))
    for start in range(0, min(len(axes), MOST_FIELDS), A_ROW):
        for column, axis in zip(st.columns(A_ROW), axes[start:start + A_ROW], strict=False):
            with column:
                _over(axis, found, criterion, best, (min(means) - room, max(means) + room))
    st.caption(f"{criterion.title}: a point for each combination, bars of one standard deviation over the seeds, a "
               "line through the means, a star at the best. A flat line means that the field hardly matters here.")


def _over(axis: Axis, found: Sequence[Combination], criterion: Criterion, best: Combination,
          limits: tuple[float, float]) -> None:
    """Draw the measure over one field."""
    x = [axis.shown(value) for value in axis.values]
    y = [one.score.mean for one in found if one.score]
    figure = go.Figure(go.Scatter(
        x=x, y=y, mode="markers", marker={"color": COLORS[0], "size": 7, "opacity": 0.7},
        text=[combination_words(one) for one in found], hovertemplate="%{text}<br>%{y:.1f}<extra></extra>",
        error_y={"array": [(one.score and one.score.deviation) or 0.0 for one in found], "thickness": 1, "width": 3}))
    order = sorted(set(x)) if axis.is_number else axis.texts
    means = [sum(group) / len(group) for group in ([value for at, value in zip(x, y, strict=True) if at == one]
                                                   for one in order)]
    if not axis.is_number or len(order) <= MOST_TICKS:  # a random search meets each value once
        figure.add_scatter(x=order, y=means, mode="lines", line={"color": COLORS[1], "dash": "dash"}, hoverinfo="skip")
    place = next(position for position, one in enumerate(found) if one is best)
    figure.add_scatter(x=[x[place]], y=[y[place]], mode="markers", hoverinfo="skip",
                       marker={"symbol": "star", "size": 14, "color": AFTER})
    figure.update_layout(title={"text": axis.title, "font": {"size": 14}}, height=230, showlegend=False,
                         margin={"l": 8, "r": 8, "t": 36, "b": 8})
    figure.update_yaxes(range=limits, ticksuffix=" %" if criterion.is_percent else "")
    if axis.is_logarithmic:
        figure.update_xaxes(type="log")
    elif not axis.is_number:
        figure.update_xaxes(type="category", categoryorder="array", categoryarray=order)
    if len(order) <= MOST_TICKS:
        figure.update_xaxes(tickvals=order, ticktext=axis.texts)
    highest = order[max(range(len(order)), key=means.__getitem__)]
    draw(figure, f"sweep-over-{axis.title}", f"{criterion.title} over {axis.title}: the highest mean, "
         f"{max(means):.1f}, is at {show(highest)}; the lowest is {min(means):.1f}.")


def show_parallel(found: Sequence[Combination], criterion: Criterion) -> None:
    """Show all combinations in parallel coordinates, a line for each."""
    axes = axes_of(found)
    if not axes:
        return
    scores = [one.score.mean for one in found if one.score]
    dimensions = [_dimension(axis) for axis in axes]
    dimensions.append({"label": criterion.title, "values": scores, "tickformat": ".1f"})
    figure = go.Figure(go.Parcoords(dimensions=dimensions, labelangle=0, line={
        "color": scores, "colorscale": "Cividis", "showscale": False}))
    figure.update_layout(height=340, margin={"l": 60, "r": 60, "t": 50, "b": 20})
    st.markdown("#### Which values go together?")
    best = max(found, key=lambda one: one.score.mean if one.score else -math.inf)
    draw(figure, "sweep-parallel", f"Parallel coordinates of {len(found)} combinations: the highest line ends at "
         f"{criterion_text(best, criterion)}, {combination_words(best)}.")
    st.caption("A line for each combination, brighter with a higher measure. Drag along an axis to keep only the lines "
               "through that part; drag an axis to move it.")


def _dimension(axis: Axis) -> dict[str, Any]:
    """Return an axis as Plotly's parallel coordinates take it: numbers, with the values as ticks."""
    if not axis.is_number:
        codes = [axis.texts.index(axis.shown(value)) for value in axis.values]
        return {"label": axis.title, "values": codes, "tickvals": list(range(len(axis.texts))), "ticktext": axis.texts}
    place = math.log10 if axis.is_logarithmic else float
    known = sorted(set(axis.values))
    ticks = known if len(known) <= MOST_TICKS else [known[0], known[len(known) // 2], known[-1]]
    return {"label": axis.title, "values": [place(value) for value in axis.values],
            "tickvals": [place(value) for value in ticks], "ticktext": [show(value) for value in ticks]}
