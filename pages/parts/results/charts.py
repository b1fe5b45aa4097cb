"""Charts of a record's table: a measure by row, and by width."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import plotly.graph_objects as go
import streamlit as st

from udml_core.methods import METHODS
from udml_core.numerics.measures import LOWER, NEITHER, Measure, measure_of
from udml_core.results.axis import outer_fence, place_beyond
from udml_core.results.records import Spread, Table

from ..draw.figures import BREAK, COLORS, GRAY, draw, line_style, small, width_axis
from ..shell.method_lines import line_of

ROW_OF_WIDTH = re.compile(r"(.+) d=(\d+)")
"""The name of a method's row at one width of the embedding."""
MARGIN = {"l": 8, "r": 8, "t": 8, "b": 8}
LONGEST_LINE = 40
"""Characters in a line of a row's name beside the chart; a longer line would leave the points no room."""
ROW, LINE, GAP, HEAD = 30, 16, 11, 90
"""Pixels of a row at least, of a line of its label, between two labels, and of the legend with the axis."""
MOST_ROWS, TOP = 12, 8
"""Rows of a chart that shows all of them, and rows that a longer one shows first."""
WIDE_SPAN = 10.0
"""Points from which on an axis needs no words on where it begins."""
Kind = TypeVar("Kind")
OTHER_ROWS = {"Frozen features": "The backbone alone, nothing trained",
              "Whitening": "Counts all directions equally",
              "NPSoftmax": "Each image is a class of its own",
              "Distilled refinement": "Trains on a search refined by slow steps"}
"""Plain words for rows that no method's title names."""
LEGEND = {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0}


def has_widths(table: Table) -> bool:
    """Return whether a table has rows of several widths."""
    return any(ROW_OF_WIDTH.fullmatch(name) for name in table.rows)


def top_rows(table: Table, measure: str) -> Table:
    """Return the best rows of a table in its order, with the best row that is not trained.

    A table of few rows, or of a series of values, is returned whole.

    Args:
        table: The table.
        measure: Key of the measure that decides.
    """
    names = table.ranked(measure, measure_of(measure).better == LOWER)
    if len(names) <= MOST_ROWS or table.is_series:
        return table
    kept = set(names[:TOP]) | set([name for name in names if name in table.references][:1])
    return replace(table, rows=_only(kept, table.rows), references=_only(kept, table.references),
                   printed=_only(kept, table.printed))


def _only(kept: Collection[str], rows: Mapping[str, Kind]) -> dict[str, Kind]:
    return {name: row for name, row in rows.items() if name in kept}


def chart_by_row(table: Table, measure: str, key: str) -> None:
    """Show each row's mean and standard deviation beside the reported values.

    Hollow diamonds mark the values that papers report. An outlier is drawn at the end of the axis, with its value.
    """
    shown = measure_of(measure)
    names = table.ranked(measure, shown.better == LOWER)
    figure = go.Figure()
    known = [row[measure][0] for row in (*table.references.values(), *table.rows.values()) if measure in row]
    fence = None if shown.better == NEITHER else outer_fence(known, shown.better == LOWER)
    place = 0.0 if fence is None else place_beyond(known, fence, shown.better == LOWER)
    several = len({plain_words(name) for name in table.rows}) > 1  # else the words tell no rows apart
    labels = {name: label_of(name, several) for name in names}
    places, length = row_places(labels)
    for title, rows, color in (("not trained", table.references, GRAY), ("trained", table.rows, COLORS[0])):
        values = {name: row[measure] for name, row in rows.items() if measure in row}
        add_marks(figure, values, title, {"color": color, "size": 10}, fence, place, shown, places=places)
    reported = {name: row[measure] for name, row in table.printed.items() if measure in row}
    if reported:
        figure.add_scatter(x=list(reported.values()), y=[places[name] for name in reported], mode="markers",
                           customdata=list(reported), hovertemplate="%{customdata}: %{x:.4g}",
                           name="reported in the paper" + ("" if table.comparable else ", not comparable"),
                           marker={"color": COLORS[1], "size": 11, "symbol": "diamond-open", "line": {"width": 2}})
    figure.update_layout(height=HEAD + length, margin=MARGIN | {"t": HEAD - 10}, showlegend=True,
                         # from the left edge: on a phone both entries fit, beside the button of the chart
                         legend=LEGEND | {"yref": "container", "yanchor": "top", "xref": "container"})
    figure.update_yaxes(automargin=True, tickvals=list(places.values()), ticktext=list(labels.values()),
                        tickfont={"size": 13}, range=[length, 0], zeroline=False)
    figure.update_xaxes(title={"text": shown.plain_axis.replace(" · ", BREAK), "standoff": 12}, side="top")
    best = max(((row[measure][0], name) for name, row in table.rows.items() if measure in row), default=(0.0, "none"))
    draw(figure, key, f"{shown.name} of {len(names)} rows, mean and standard deviation. The highest "
         f"trained row is {best[1]} with {best[0]:.4g}. The table below lists all values.")
    if words := span_words(known, fence, shown):
        st.caption(words)


def row_places(labels: Mapping[str, str]) -> tuple[dict[str, float], float]:
    """Return the middle of each row in pixels from the top, and the height of all rows, which fit their labels.

    Args:
        labels: Label of each row as HTML, in order.
    """
    places, top = {}, 0.0
    for name, label in labels.items():
        height = max(ROW, LINE * (1 + label.count(BREAK)) + GAP)
        places[name] = top + height / 2
        top += height
    return places, top


def span_words(known: Sequence[float], fence: float | None, measure: Measure) -> str:
    """Return how little an axis shows that does not begin at 0; nothing for wide axes and other measures.

    Args:
        known: The values.
        fence: The value beyond which rows stand at the end of the axis; see `outer_fence`.
        measure: The measure.
    """
    lower = measure.better == LOWER
    inside = [value for value in known if fence is None or (value <= fence if lower else value >= fence)]
    if not measure.is_percent or not inside or (span := max(inside) - min(inside)) > WIDE_SPAN:
        return ""
    return f"The axis does not begin at 0: the rows on it differ by {span:.1f} points at most."


def label_of(name: str, is_plain: bool = True) -> str:
    """Return a row's name in lines, with what its method does in plain words below it.

    Args:
        name: The name.
        is_plain: Whether to add the plain words.
    """
    plain = plain_words(name) if is_plain else ""
    return BREAK.join([wrapped(name), *map(small, textwrap.wrap(plain, LONGEST_LINE + 6))])


def plain_words(name: str) -> str:
    """Return what the method of a row does, in a few words; empty for a row of another kind."""
    title = re.split(r",| d=|\(", name)[0].strip()
    if name.startswith("Start"):
        return ""
    method = next((method for method in METHODS if method.card.title.lower() == title.lower()), None)
    return OTHER_ROWS.get(title, "") if method is None else line_of(method)


def add_marks(figure: go.Figure, values: Mapping[str, Spread], title: str, marker: Mapping[str, Any],
              fence: float | None, place: float, measure: Measure, is_named: bool = True,
              places: Mapping[str, float] | None = None) -> None:
    """Add a mark for each row, with its standard deviation; for an outlier a triangle and the value.

    Args:
        figure: The chart.
        values: Mean and standard deviation of each row.
        title: Name in the legend.
        marker: Color, size and symbol.
        fence: The value beyond which rows are outliers; see `outer_fence`.
        place: Where the outliers' marks stand; see `place_beyond`.
        measure: The measure.
        is_named: Whether the legend names the rows.
        places: Vertical place of each row; its name if None.
    """
    at: Mapping[str, float | str] = places or {name: name for name in values}
    lower = measure.better == LOWER
    beyond = {name: mean for name, (mean, _) in values.items()
              if fence is not None and (mean > fence if lower else mean < fence)}
    inside = {name: spread for name, spread in values.items() if name not in beyond}
    if not values:
        return
    hover = {"customdata": list(inside), "hovertemplate": "%{customdata}: %{x:.4g}"} if places else {}
    figure.add_scatter(x=[mean for mean, _ in inside.values()], y=[at[name] for name in inside], name=title,
                       mode="markers", **hover, legendgroup=title, marker=dict(marker),
                       showlegend=is_named and bool(inside),
                       error_x={"array": [deviation for _, deviation in inside.values()], "color": marker["color"]})
    if beyond:
        figure.add_scatter(x=[place] * len(beyond), y=[at[name] for name in beyond], name=title,
                           mode="markers+text", legendgroup=title, showlegend=is_named and not inside,
                           text=[measure.text(value) for value in beyond.values()],
                           customdata=list(beyond.values()), hovertemplate="%{customdata:.4g}", textfont={"size": 11},
                           textposition="middle left" if lower else "middle right",
                           marker=dict(marker) | {"symbol": "triangle-right" if lower else "triangle-left"})


def wrapped(name: str) -> str:
    """Return a row's name in lines of a label; the whole name, however long."""
    return BREAK.join(textwrap.wrap(name, LONGEST_LINE)) or name


def chart_by_width(table: Table, measure: str, key: str) -> None:
    """Show a line for each method over the width of its embedding.

    Rows of a single width are dotted lines.
    """
    figure = go.Figure()
    lines: dict[str, list[tuple[int, Spread]]] = {}
    for name, row in table.rows.items():
        match = ROW_OF_WIDTH.fullmatch(name)
        if match and measure in row:
            lines.setdefault(match[1], []).append((int(match[2]), row[measure]))
        elif measure in row:
            figure.add_hline(row[measure][0], line={"dash": "dot", "color": GRAY}, annotation_text=name)
    for number, (name, points) in enumerate(lines.items()):
        style = line_style(number)
        figure.add_scatter(x=[width for width, _ in points], y=[mean for _, (mean, _) in points], name=name,
                           mode="lines+markers", line=style,
                           error_y={"array": [deviation for _, (_, deviation) in points], "color": style["color"]})
    figure.update_layout(height=420, margin=MARGIN, showlegend=True, hovermode="x unified", legend=LEGEND)
    width_axis(figure, (width for points in lines.values() for width, _ in points))
    figure.update_xaxes(title="Dimension d")
    figure.update_yaxes(title=measure_of(measure).title)
    draw(figure, key, f"{measure_of(measure).name} by dimension: " + "; ".join(
        f"{name} {points[0][1][0]:.1f} at {points[0][0]} to {points[-1][1][0]:.1f} at {points[-1][0]}"
        for name, points in lines.items()))
