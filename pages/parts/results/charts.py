"""Charts of a record's table: a measure by row, and by width."""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go

from udml_core.numerics.measures import LOWER, NEITHER, Measure, measure_of
from udml_core.results.axis import outer_fence, place_beyond
from udml_core.results.records import Spread, Table

from ..draw.figures import COLORS, GRAY, draw, line_style, width_axis

ROW_OF_WIDTH = re.compile(r"(.+) d=(\d+)")
"""The name of a method's row at one width of the embedding."""
MARGIN = {"l": 8, "r": 8, "t": 8, "b": 8}
LONGEST_LINE = 40
"""Characters in a line of a row's name beside the chart; a longer line would leave the points no room."""
ROW, HEAD = 28, 74
"""Pixels of a row, in which a name of three lines fits beside short ones, and of the legend with the axis."""
LEGEND = {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0}


def has_widths(table: Table) -> bool:
    """Return whether a table has rows of several widths."""
    return any(ROW_OF_WIDTH.fullmatch(name) for name in table.rows)


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
    for title, rows, color in (("not trained", table.references, GRAY), ("trained", table.rows, COLORS[0])):
        values = {name: row[measure] for name, row in rows.items() if measure in row}
        add_marks(figure, values, title, {"color": color, "size": 10}, fence, place, shown)
    reported = {name: row[measure] for name, row in table.printed.items() if measure in row}
    if reported:
        figure.add_scatter(x=list(reported.values()), y=list(reported), mode="markers",
                           name="reported in the paper" + ("" if table.comparable else ", not comparable"),
                           marker={"color": COLORS[1], "size": 11, "symbol": "diamond-open", "line": {"width": 2}})
    figure.update_layout(height=HEAD + ROW * len(names), margin=MARGIN | {"t": HEAD - 10}, showlegend=True,
                         legend=LEGEND | {"yref": "container", "yanchor": "top"})
    figure.update_yaxes(categoryorder="array", categoryarray=names[::-1], automargin=True, type="category",
                        tickvals=names, ticktext=[wrapped(name) for name in names], tickfont={"size": 11},
                        range=[-0.6, len(names) - 0.4])
    figure.update_xaxes(title={"text": shown.title, "standoff": 4}, side="top")
    best = max(((row[measure][0], name) for name, row in table.rows.items() if measure in row), default=(0.0, "none"))
    draw(figure, key, f"{shown.name} of {len(names)} rows, mean and standard deviation. The highest "
         f"trained row is {best[1]} with {best[0]:.4g}. The table below lists all values.")


def add_marks(figure: go.Figure, values: Mapping[str, Spread], title: str, marker: Mapping[str, Any],
              fence: float | None, place: float, measure: Measure, is_named: bool = True) -> None:
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
    """
    lower = measure.better == LOWER
    beyond = {name: mean for name, (mean, _) in values.items()
              if fence is not None and (mean > fence if lower else mean < fence)}
    inside = {name: spread for name, spread in values.items() if name not in beyond}
    if not values:
        return
    figure.add_scatter(x=[mean for mean, _ in inside.values()], y=list(inside), name=title, mode="markers",
                       legendgroup=title, marker=dict(marker), showlegend=is_named and bool(inside),
                       error_x={"array": [deviation for _, deviation in inside.values()], "color": marker["color"]})
    if beyond:
        figure.add_scatter(x=[place] * len(beyond), y=list(beyond), name=title, mode="markers+text", legendgroup=title,
                           showlegend=is_named and not inside, text=[measure.text(value) for value in beyond.values()],
                           customdata=list(beyond.values()), hovertemplate="%{customdata:.4g}", textfont={"size": 11},
                           textposition="middle left" if lower else "middle right",
                           marker=dict(marker) | {"symbol": "triangle-right" if lower else "triangle-left"})


def wrapped(name: str) -> str:
    """Return a row's name in lines of a label, as HTML; the whole name, however long."""
    return "<br>".join(html.escape(line) for line in textwrap.wrap(name, LONGEST_LINE)) or name


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
