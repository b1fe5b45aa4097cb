"""Charts with a text alternative."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from udml_core.exploration.race_measured import ERRORS
from udml_core.numerics.measures import CURVES, curve_of
from udml_core.runs.selection import ERROR

from .palette import AFTER, BEFORE, CLASS_COLORS, HIT, MISS, REFINED, percent

DASHES = ("solid", "dash", "dot", "dashdot")
GRAY = BEFORE
COLORS = (HIT, MISS, AFTER, REFINED)
CURSOR = {"width": 2, "dash": "dot", "color": GRAY}
"""The line that marks the value of a slider or a bound."""
BEATEN = (("dot", "····"), ("dash", "– –"))
"""The lines of values to beat, and the signs beside their names."""
LINE_COLORS = tuple(CLASS_COLORS["light"][number] for number in (1, 6, 5, 7, 2, 3))
"""Colors of runs, which both themes show well and which mark neither a hit nor a miss."""
LEAST_SPAN = 6.0
"""Least width in points of an axis of shares."""
OPINIONS = ("second opinion", "second opinion first result")
LEAST_GAIN = 0.06
"""Curves of mean cosines, and the least width of their axis."""
HIDDEN = ("epoch", "seconds")
BREAK = "\ue000"
"""The end of a line in a text of a chart."""
TAGS = str.maketrans({BREAK: "<br>", "\ue001": "<i>", "\ue002": "</i>", "\ue003": '<span style="font-size:12px">',
                      "\ue004": "</span>"})
"""The tags of the charts' own texts, by the signs that stand for them until a chart is drawn: no name has them."""


def curve_names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of the curves in rows of metrics, listed curves first."""
    present = list(dict.fromkeys(name for row in rows for name in row
                                 if name not in HIDDEN and not name.endswith(ERROR)))
    return sorted(present, key=lambda name: list(CURVES).index(name) if name in CURVES else len(CURVES))


def draw(figure: go.Figure, key: str, alt: str, on_click: Callable[[], None] | None = None) -> None:
    """Show a chart that can be saved as an SVG or PNG file.

    Args:
        figure: The chart. Plotly reads its texts as HTML, so that what is HTML in names is escaped; templates of what
            a pointer shows stay as they are, and take names from other fields.
        key: The widget's key and the name of the saved file.
        alt: The text alternative: what the chart shows.
        on_click: Called when a point is clicked; points cannot be clicked if None.
    """
    kind = st.session_state.get("chart-format", "svg")
    st.plotly_chart(_without_html(figure), key=key, width="stretch", alt=alt, on_select=on_click or "ignore",
                    selection_mode="points", config={"displaylogo": False, "modeBarButtons": [["toImage"]],
                            "toImageButtonOptions": {"format": kind, "filename": key}})


def _without_html(figure: go.Figure) -> go.Figure:
    """Return a chart that shows its texts, such as names of classes, as they are."""
    fields = figure.to_plotly_json()
    plain = _plain(fields)
    return figure if plain is fields else go.Figure(plain)


def _plain(value: Any) -> Any:
    """Return a field of a chart with its texts as HTML that shows them; the same object if that changes nothing."""
    if isinstance(value, str):
        if value.isascii() and "<" not in value and "&" not in value:
            return value
        plain = html.escape(value, quote=False).translate(TAGS)
        return value if plain == value else plain
    if isinstance(value, dict):
        changed = {key: of_key if key == "hovertemplate" else _plain(of_key) for key, of_key in value.items()}
        return changed if any(changed[key] is not value[key] for key in value) else value
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.dtype.kind in "OU"):
        parts = [_plain(part) for part in value]
        return parts if any(part is not before for part, before in zip(parts, value, strict=True)) else value
    return value


def italic(text: str) -> str:
    """Return a text of a chart in italics."""
    return f"\ue001{text}\ue002"


def small(text: str) -> str:
    """Return a text of a chart in small letters."""
    return f"\ue003{text}\ue004"


def titled(figure: go.Figure, title: str, height: int, **layout: Any) -> None:
    """Give a chart a title, a height in pixels, narrow margins and any further layout."""
    figure.update_layout(title={"text": title, "font": {"size": 14}}, height=height,
                         margin={"l": 8, "r": 8, "t": 36, "b": 8}, **layout)


def interval_band(figure: go.Figure, rows: Sequence[Mapping[str, Any]], name: str, color: str) -> bool:
    """Shade the 95 % interval of a curve whose rows have its standard error.

    Args:
        figure: The chart.
        rows: Rows of metrics of one run.
        name: The curve's name in the rows.
        color: The curve's color, such as #0072b2.

    Returns:
        Whether any epoch has an interval.
    """
    known = [(row["epoch"], row[name], ERRORS * row[f"{name}{ERROR}"]) for row in rows
             if row.get(name) is not None and row.get(f"{name}{ERROR}") is not None]
    if known:
        shade_between(figure, [epoch for epoch, _, _ in known], [value - half for _, value, half in known],
                      [value + half for _, value, half in known], clear(color))
    return bool(known)


def shade_between(figure: go.Figure, x: Iterable[float], low: Iterable[float], high: Iterable[float], color: str,
                  name: str = "") -> None:
    """Shade the area between two curves; a name puts it into the legend."""
    edge = {"x": x, "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
    figure.add_scatter(y=low, showlegend=False, **edge)
    figure.add_scatter(y=high, showlegend=bool(name), name=name or None, fill="tonexty", fillcolor=color, **edge)


def clear(color: str) -> str:
    """Return a color such as #0072b2 with little opacity, for a band behind a line."""
    red, green, blue = (int(color[start:start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.18)"


def line_style(number: int) -> dict[str, str]:
    """Return the color and dash of a numbered line; 24 lines differ, and the first six in color."""
    colors = len(LINE_COLORS)
    return {"color": LINE_COLORS[number % colors], "dash": DASHES[(number + number // colors) % 4]}


def width_axis(figure: go.Figure, widths: Iterable[int]) -> None:
    """Give a chart a logarithmic axis with ticks at the widths of the embeddings."""
    marks = sorted(set(widths))
    figure.update_xaxes(type="log", tickvals=marks, ticktext=list(map(str, marks)))


def curve(name: str, runs: Mapping[str, Sequence[Mapping[str, Any]]], key: str, cursor: float | None = None,
          height: int = 230, title: str = "", beaten: Mapping[str, float] | None = None, narrow: bool = False
          ) -> None:
    """Show one curve over the epochs, with a line for each run with two or more values.

    A single value is no curve: a sentence states it.

    Args:
        name: The curve's name in the rows.
        runs: Rows of metrics by run.
        key: The chart's key.
        cursor: Epoch that a vertical line marks.
        height: Height in pixels.
        title: The title; the name in words if empty.
        beaten: Values to beat, by name, which horizontal lines mark and a line below the title names.
        narrow: Whether the page names the curve above the chart, which then has no titles of its own.
    """
    measure = curve_of(name)
    title, share = title or measure.name, measure.is_percent
    points = {run: [(row["epoch"], 100 * row[name] if share else row[name]) for row in rows
                    if row.get(name) is not None] for run, rows in runs.items()}
    _single_values(title, points, share)
    figure = go.Figure()
    last = []
    for position, (run, values) in enumerate(points.items()):
        if len(values) > 1:
            interval_band(figure, runs[run], name, line_style(position)["color"])
            figure.add_scatter(x=[x for x, _ in values], y=[y for _, y in values], name=run, mode="lines+markers",
                               line=line_style(position))
            last.append(f"{run} {values[0][1]:.3g} to {values[-1][1]:.3g}")
    if not last:
        return
    titled(figure, "" if narrow else title, height, showlegend=len(runs) > 1, legend={"orientation": "h", "y": -0.45},
           hovermode="x unified")
    figure.update_yaxes(title="" if narrow else measure.axis_title, tickformat=".4~g", nticks=5)
    known = {words: 100 * value if share else value for words, value in (beaten or {}).items()}
    for (words, value), (dash, _) in zip(known.items(), BEATEN, strict=False):
        figure.add_hline(value, line={"color": GRAY, "dash": dash})
        last.append(f"{words} {value:.3g}")
    if narrow:
        figure.update_layout(margin_t=8)
    if known:
        _name_beaten(figure, known, " %" if share else "", narrow)
    shown = [*known.values(), *(y for of_run in points.values() for _, y in of_run)]
    if share:
        figure.update_yaxes(ticksuffix=" %", range=share_range(shown))
    elif name in OPINIONS:
        figure.update_yaxes(range=steady_range(shown, LEAST_GAIN), tickformat=".2~f")
    figure.update_xaxes(title="epoch", title_standoff=4,
                        dtick=1 if max(map(len, runs.values()), default=0) <= 12 else None)
    if cursor is not None:
        figure.add_vline(x=cursor, line=CURSOR)
    draw(figure, key, f"{title} over the epochs: {'; '.join(last)}.")


def _name_beaten(figure: go.Figure, known: Mapping[str, float], unit: str, narrow: bool) -> None:
    """Name the values to beat above the curve; words at their lines would cover it, and each other."""
    named = "   ".join(f"{sign} {words} {value:.3g}{unit}"
                       for (words, value), (_, sign) in zip(known.items(), BEATEN, strict=False))
    small = {"text": named, "font": {"size": 12, "color": GRAY}}
    figure.update_layout(**{"title": small, "margin_t": 28} if narrow else {"title_subtitle": small, "margin_t": 54})


def _single_values(title: str, points: Mapping[str, Sequence[tuple[float, float]]], share: bool) -> None:
    """State the values of runs that have only one."""
    for run, values in points.items():
        if len(values) == 1:
            epoch, value = values[0]
            shown = percent(value) if share else f"{value:.4g}"
            st.caption(f"**{title}**{f', {run}' if len(points) > 1 else ''}: {shown} (epoch {epoch:g}, the only value)")


def share_range(values: Sequence[float]) -> tuple[float, float]:
    """Return the range of an axis of shares in percent: around the values, within 0 and 100.

    It holds several points, so that a change of a few tenths looks as small as it is.
    """
    low, high = steady_range(values, LEAST_SPAN)
    return max(0.0, low), min(100.0, high)


def steady_range(values: Sequence[float], least: float) -> tuple[float, float]:
    """Return the range of an axis around the values; it spans `least` or more, so that small changes look small."""
    low, high = min(values), max(values)
    room = max((high - low) / 10, (least - high + low) / 2)
    return low - room, high + room


def lines(x: Sequence[float], y: Sequence[float], title: str, x_title: str, key: str, cursor: float | None = None,
          logarithmic: bool = False) -> None:
    """Show a small line chart; a dotted line marks the cursor, a slider's value.

    Values whose title ends in % keep to an axis within 0 and 100; one value is stated instead of drawn.
    """
    if len(y) < 2:
        for at, value in zip(x, y, strict=True):
            st.caption(f"**{title.capitalize()}**: {value:.4g} at {x_title} {at:g}, the only value.")
        return
    figure = go.Figure(go.Scatter(x=list(x), y=list(y), mode="lines+markers", line={"color": COLORS[0]}))
    titled(figure, title.capitalize(), 220, xaxis_title=x_title)
    figure.update_yaxes(title="share, %" if title.endswith("%") else f"{title}, log scale" if logarithmic else title,
                        **({"type": "log", "dtick": 1} if logarithmic else {"type": "linear"}))
    if title.endswith("%"):
        figure.update_yaxes(range=share_range(y))
    if cursor is not None:
        figure.add_vline(x=cursor, line=CURSOR)
    draw(figure, key, f"{title} over {x_title}: {y[0]:.4g} at {x[0]:g}, {y[-1]:.4g} at {x[-1]:g}.")


def histogram(edges: Sequence[float], counts: Sequence[int], title: str, key: str, cursor: float,
              x_title: str = "half angle at the negative, °", y_title: str = "triplets") -> None:
    """Show the counts between consecutive edges, by default of the angles of triplets.

    A dotted line marks the cursor, such as a slider's value.
    """
    middles = [(low + high) / 2 for low, high in pairwise(edges)]
    figure = go.Figure(go.Bar(x=middles, y=list(counts), marker={"color": COLORS[0]}))
    titled(figure, title, 200, bargap=0.05)
    figure.update_xaxes(title=x_title, range=[edges[0], edges[-1]])
    figure.update_yaxes(title=y_title)
    figure.add_vline(x=cursor, line=CURSOR)
    most = max(range(len(counts)), key=counts.__getitem__)
    draw(figure, key, f"{title}: the highest count, {counts[most]}, is between {edges[most]:g} and "
         f"{edges[most + 1]:g}; the slider is at {cursor:g}.")


def ranked(values: Sequence[float], title: str, x_title: str, key: str, y_title: str = "images") -> None:
    """Show values by rank on a logarithmic scale, by default numbers of images."""
    figure = go.Figure(go.Bar(x=list(range(1, len(values) + 1)), y=list(values), marker={"color": COLORS[0]}))
    titled(figure, title, 200, xaxis_title=x_title, bargap=0.2)
    figure.update_yaxes(title=f"{y_title}, log scale", type="log", dtick=1, range=[-0.2, math.log10(max(values)) + 0.1])
    draw(figure, key, f"{title}: from {values[0]:g} at rank 1 to {values[-1]:g} at rank {len(values)}.")


def bars(names: Sequence[str], values: Sequence[float], title: str, key: str, x_title: str = "images",
         y_title: str = "class") -> None:
    """Show a horizontal bar chart, by default of the images of classes."""
    figure = go.Figure(go.Bar(x=list(values), y=list(names), orientation="h", marker={"color": COLORS[0]}))
    titled(figure, title, max(160, 24 * len(names) + 70))
    figure.update_xaxes(title=x_title)
    figure.update_yaxes(title=y_title, autorange="reversed", type="category")  # classes can be numbers
    draw(figure, key, f"{title}: from {min(values)} to {max(values)}.")
