"""Curves of many rows in one chart: a few in color with their names at their ends, the others gray."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from udml_core.numerics.measures import LOWER, curve_of

from ..draw.figures import GRAY, draw, line_style, titled

MOST_COLORED = 5
BASELINES = ("Frozen", "PCA")
"""How the names of rows begin that others are compared with, so that they have colors."""
HEIGHT, LEAST_GAP = 420, 0.06
"""Pixels of the chart, and share of the axis between two names at least."""
LONGEST_NAME = 15
ROOM = 1.45
"""Width of the chart, of which the curves fill 1; the rest holds their names, also on a phone."""
Points = dict[str, list[tuple[float, float]]]


def many_curves(name: str, rows: Mapping[str, Sequence[Mapping[str, Any]]], key: str) -> None:
    """Show a curve for each row; the best ones and the baselines have colors, and a pointer names the others.

    Args:
        name: The curve's name in the rows.
        rows: Metrics by row.
        key: The chart's key.
    """
    measure = curve_of(name)
    scale = 100 if measure.is_percent else 1
    points = whole_curves({row: [(line["epoch"], scale * line[name]) for line in lines if line.get(name) is not None]
                           for row, lines in rows.items()})
    colored = colored_rows({row: values[-1][1] for row, values in points.items()}, measure.better == LOWER)
    figure = go.Figure()
    for row in sorted(points, key=lambda row: row in colored):  # colors lie above the gray lines
        place = colored.index(row) if row in colored else -1
        line = {"color": GRAY, "width": 1} if place < 0 else line_style(place) | {"width": 2.5}
        figure.add_scatter(x=[x for x, _ in points[row]], y=[y for _, y in points[row]], name=row, mode="lines",
                           line=line, opacity=0.55 if place < 0 else 1,
                           hovertemplate="%{fullData.name}: %{y:.4g}<extra></extra>")
    _name_ends(figure, {row: points[row][-1] for row in colored}, points)
    titled(figure, measure.name, HEIGHT, showlegend=False, hovermode="closest")
    figure.update_yaxes(title=measure.axis_title, tickformat=".4~g", nticks=6)
    last = max((values[-1][0] for values in points.values()), default=1)
    figure.update_xaxes(title="Epoch", range=[0, ROOM * last], nticks=5, showgrid=False)
    draw(figure, key, f"{measure.name} by epoch. " + "; ".join(
        f"{row} {values[0][1]:.3g} to {values[-1][1]:.3g}" for row, values in points.items()))


def whole_curves(points: Points) -> Points:
    """Leave out rows of one or two values if others have more: these are no curves."""
    longest = max(map(len, points.values()), default=0)
    return {row: values for row, values in points.items() if len(values) > min(2, longest - 1)}


def colored_rows(ends: Mapping[str, float], lower_is_better: bool) -> list[str]:
    """Return the rows that have colors, the best first: the baselines, and the best of the others.

    Args:
        ends: The last value of each row.
        lower_is_better: Whether the least value is the best.
    """
    ranked = sorted(ends, key=lambda row: ends[row], reverse=not lower_is_better)
    baselines = [row for row in ranked if row.startswith(BASELINES)][:2]
    best = [row for row in ranked if row not in baselines][:MOST_COLORED - len(baselines)]
    return [row for row in ranked if row in (*baselines, *best)]


def spread_apart(values: Sequence[float], gap: float) -> list[float]:
    """Move values, which fall, apart until each is at least a gap below the one before it."""
    places: list[float] = []
    for value in values:
        places.append(value if not places else min(value, places[-1] - gap))
    return places


def _name_ends(figure: go.Figure, ends: Mapping[str, tuple[float, float]], points: Points) -> None:
    """Write the names of the colored rows beside the ends of their curves."""
    values = [y for row in points.values() for _, y in row]
    right = max((row[-1][0] for row in points.values()), default=0)
    falling = sorted(ends, key=lambda row: -ends[row][1])
    gap = LEAST_GAP * (max(values, default=0) - min(values, default=0) or 1)
    places = spread_apart([ends[row][1] for row in falling], gap)
    for row, place in zip(falling, places, strict=True):
        color = line_style(list(ends).index(row))["color"]
        short = row if len(row) <= LONGEST_NAME else f"{row[:LONGEST_NAME - 1]}…"
        figure.add_annotation(x=right, y=place, text=short, xanchor="left", xshift=8, showarrow=False,
                              font={"color": color, "size": 12}, hovertext=row)
