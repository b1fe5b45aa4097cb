"""A sweep as pictures: the measure over each field, and all fields at once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from udml_core.base.declaration import is_number
from udml_core.numerics.measures import Measure
from udml_core.work import sweeps
from udml_core.work.jobs.presets import show
from udml_core.work.sweeps import Combination

from ..draw.figures import COLORS, GRAY, draw, titled
from ..draw.palette import AFTER
from ..shell.run_status import METHOD_TITLES
from ..shell.setting_words import setting_title, short_title
from .words import combination_words, criterion_text

A_ROW = 3
MOST_FIELDS = 9
MOST_TICKS = 12
SPREAD = 0.5
"""Distance over which the points of one value spread; 1 is the distance between two values."""
SCALE = [[0.0, GRAY], [0.5, COLORS[0]], [1.0, COLORS[1]]]
"""Colors of low to high measures, which both themes show."""
NONE = "none"
DECADES = 30.0
"""Ratio of the ends from which an axis of positive values is logarithmic."""


@dataclass(frozen=True)
class Axis:
    """A varied field as an axis.

    Attributes:
        title: Its title.
        short: A short title, such as the paper's symbol.
        values: The value of each combination; None where its method has no such field.
    """

    title: str
    short: str
    values: list[Any]

    @property
    def known(self) -> list[Any]:
        """The distinct values, in order."""
        return sorted({value for value in self.values if value is not None}, key=_order)

    @property
    def texts(self) -> list[str]:
        """The distinct values as text, in order; `NONE` for methods without the field."""
        return [show(value) for value in self.known] + ([NONE] if None in self.values else [])

    @property
    def is_number(self) -> bool:
        """Whether every combination has a number."""
        return all(is_number(value) for value in self.values)

    @property
    def is_logarithmic(self) -> bool:
        """Whether the numbers differ by factors."""
        return self.is_number and min(self.values) > 0 and max(self.values) / min(self.values) >= DECADES

    @property
    def is_listed(self) -> bool:
        """Whether the values are few enough to be drawn at equal distances."""
        return not self.is_number or len(self.texts) <= MOST_TICKS

    @property
    def codes(self) -> list[int]:
        """The position of each combination's value among the distinct values."""
        places = {text: code for code, text in enumerate(self.texts)}
        return [places[NONE if value is None else show(value)] for value in self.values]


def varied_axes(combinations: Sequence[Combination]) -> list[Axis]:
    """Return the axes of fields that vary among combinations, the method first."""
    names_of_methods = [combination.method for combination in combinations]
    axes = [Axis("Method", "Method", [METHOD_TITLES.get(name, name) for name in names_of_methods])]
    names = list(dict.fromkeys(name for combination in combinations for name in combination.values))
    methods = {name: next(combination.method for combination in combinations if name in combination.values)
               for name in names}
    axes += [Axis(setting_title(name, methods[name]), short_title(name, methods[name]),
                  [combination.values.get(name) for combination in combinations]) for name in names]
    return [axis for axis in axes if len(axis.texts) > 1]


def _order(value: Any) -> tuple[bool, float, str]:
    """Return a key that sorts numbers by size before texts."""
    return (not is_number(value), float(value) if is_number(value) else 0.0, str(value))


def side_by_side(codes: Sequence[int]) -> list[float]:
    """Return places around equal codes, so that points of one value do not cover each other."""
    total, seen = Counter(codes), Counter[int]()
    places = []
    for code in codes:
        seen[code] += 1
        places.append(code + SPREAD * (seen[code] / (total[code] + 1) - 0.5))
    return places


def show_multiples(combinations: Sequence[Combination], criterion: Measure) -> None:
    """Show the measure over each varied field, side by side with equal scales."""
    axes = varied_axes(combinations)
    if not axes:
        return
    st.markdown("#### Which field matters?")
    scores = [combination.score for combination in combinations if combination.score]
    ends = [score.mean + sign * (score.deviation or 0.0) for score in scores for sign in (-1, 1)]
    room = max((max(ends) - min(ends)) / 12, 0.3)
    best = next(iter(sweeps.best_combinations(combinations).values()))
    for start in range(0, min(len(axes), MOST_FIELDS), A_ROW):
        for column, axis in zip(st.columns(A_ROW), axes[start:start + A_ROW], strict=False):
            with column:
                _over(axis, combinations, criterion, best, (min(ends) - room, max(ends) + room))
    st.caption(f"{criterion.name}: a point for each combination, bars of one standard deviation over the seeds, a "
               "dash at the mean of each value, a star at the best. If the dashes are level, the field hardly matters "
               "here.")


def _over(axis: Axis, combinations: Sequence[Combination], criterion: Measure, best: Combination,
          limits: tuple[float, float]) -> None:
    """Draw the measure over one field."""
    x = side_by_side(axis.codes) if axis.is_listed else axis.values
    y = [combination.score.mean for combination in combinations if combination.score]
    figure = go.Figure(go.Scatter(
        x=x, y=y, mode="markers", marker={"color": COLORS[0], "size": 6},
        text=list(map(combination_words, combinations)), hovertemplate="%{text}<br>%{y:.1f}<extra></extra>",
        error_y={"array": [(combination.score and combination.score.deviation) or 0.0 for combination in combinations],
                 "thickness": 1, "width": 2}))
    alt = f"{criterion.name} over {axis.title}"
    if axis.is_listed:
        groups = [[value for code, value in zip(axis.codes, y, strict=True) if code == best_position]
                  for best_position in range(len(axis.texts))]
        means = [sum(group) / len(group) for group in groups]
        figure.add_scatter(x=list(range(len(means))), y=means, mode="markers", hoverinfo="skip",
                           marker={"symbol": "line-ew", "size": 34, "line": {"width": 3, "color": COLORS[1]}})
        figure.update_xaxes(tickvals=list(range(len(means))), ticktext=axis.texts, range=[-0.6, len(means) - 0.4])
        alt += "; means: " + ", ".join(f"{text} {mean:.1f}" for text, mean in zip(axis.texts, means, strict=True))
    elif axis.is_logarithmic:
        figure.update_xaxes(type="log")
    best_position = next(position for position, combination in enumerate(combinations) if combination is best)
    figure.add_scatter(x=[x[best_position]], y=[y[best_position]], mode="markers", hoverinfo="skip",
                       marker={"symbol": "star", "size": 14, "color": AFTER})
    titled(figure, axis.title, 230, showlegend=False)
    figure.update_xaxes(title=axis.title)
    figure.update_yaxes(title=criterion.name, range=limits, ticksuffix=" %" if criterion.is_percent else "")
    draw(figure, f"sweep-over-{axis.title}", f"{alt}. The best is {combination_words(best)}.")


def show_parallel(combinations: Sequence[Combination], criterion: Measure) -> None:
    """Show all combinations in parallel coordinates, a line for each."""
    axes = varied_axes(combinations)
    if not axes:
        return
    scores = [combination.score.mean for combination in combinations if combination.score]
    dimensions = [_dimension(axis) for axis in axes]
    dimensions.append({"label": criterion.name, "values": scores, "tickformat": ".1f"})
    figure = go.Figure(go.Parcoords(
        dimensions=dimensions, labelfont={"size": 13}, tickfont={"size": 12},
        line={"color": scores, "colorscale": SCALE, "showscale": False}))
    figure.update_layout(height=340, margin={"l": 60, "r": 70, "t": 50, "b": 20})
    st.markdown("#### Which values go together?")
    best = max(combinations, key=lambda combination: combination.mean_score)
    draw(figure, "sweep-parallel", f"Parallel coordinates of {len(combinations)} combinations: the highest line ends "
         f"at {criterion_text(best, criterion)}, {combination_words(best)}.")
    st.caption("A line for each combination: gray with a low measure, blue in the middle, orange with a high one. Drag "
               "along an axis to keep only the lines through that part; drag an axis to move it.")


def _dimension(axis: Axis) -> dict[str, Any]:
    """Return an axis as Plotly's parallel coordinates take it: numbers, with the values as ticks."""
    if axis.is_listed:
        return {"label": axis.short, "values": axis.codes, "tickvals": list(range(len(axis.texts))),
                "ticktext": axis.texts}
    place = math.log10 if axis.is_logarithmic else float
    ticks = [axis.known[0], axis.known[len(axis.known) // 2], axis.known[-1]]
    return {"label": axis.short, "values": [place(value) for value in axis.values],
            "tickvals": [place(value) for value in ticks], "ticktext": [show(value) for value in ticks]}
