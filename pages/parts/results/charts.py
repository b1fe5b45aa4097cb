"""Charts of a record's table: a measure by row, and by width."""

from __future__ import annotations

import re

import plotly.graph_objects as go

from udml_core.numerics.measures import LOWER, measure_of
from udml_core.results.records import Spread, Table

from ..draw.figures import COLORS, GRAY, draw, line_style, width_axis

ROW_OF_WIDTH = re.compile(r"(.+) d=(\d+)")
"""The name of a method's row at one width of the embedding."""
MARGIN = {"l": 8, "r": 8, "t": 8, "b": 8}
LONGEST_LABEL = 40
"""Characters of a row's name beside the chart; a longer one would leave the points no room."""
LEGEND = {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0}


def has_widths(table: Table) -> bool:
    """Return whether a table has rows of several widths."""
    return any(ROW_OF_WIDTH.fullmatch(name) for name in table.rows)


def chart_by_row(table: Table, measure: str, key: str) -> None:
    """Show each row's mean and standard deviation beside the reported values.

    Hollow diamonds mark the values that papers report.
    """
    names = table.ranked(measure, measure_of(measure).better == LOWER)
    figure = go.Figure()
    for title, rows, color in (("untrained", table.references, GRAY), ("trained", table.rows, COLORS[0])):
        values = {name: row[measure] for name, row in rows.items() if measure in row}
        if values:
            figure.add_scatter(x=[mean for mean, _ in values.values()], y=list(values), name=title, mode="markers",
                               marker={"color": color, "size": 10},
                               error_x={"array": [deviation for _, deviation in values.values()], "color": color})
    reported = {name: row[measure] for name, row in table.printed.items() if measure in row}
    if reported:
        figure.add_scatter(x=list(reported.values()), y=list(reported), mode="markers",
                           name="reported in the paper" + ("" if table.comparable else ", not comparable"),
                           marker={"color": COLORS[1], "size": 11, "symbol": "diamond-open", "line": {"width": 2}})
    figure.update_layout(height=100 + 24 * len(names), margin=MARGIN, showlegend=True, legend=LEGEND)
    figure.update_yaxes(categoryorder="array", categoryarray=names[::-1], automargin=True, type="category",
                        tickvals=names, ticktext=[shorten(name) for name in names])
    figure.update_xaxes(title=measure_of(measure).title)
    best = max(((row[measure][0], name) for name, row in table.rows.items() if measure in row), default=(0.0, "none"))
    draw(figure, key, f"{measure_of(measure).name} of {len(names)} rows, mean and standard deviation. The highest "
         f"trained row is {best[1]} with {best[0]:.4g}. The table below lists all values.")


def shorten(name: str) -> str:
    """Return a row's name cut to the length of a label; the point's tooltip and the table have the whole name."""
    return name if len(name) <= LONGEST_LABEL else f"{name[:LONGEST_LABEL - 1].rstrip(' ,;')}…"


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
