"""Charts of one linear neighborhood: its candidates, and their quality."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.exploration import neighborhoods as views
from udml_core.numerics.explanations import LinearNeighborhoods

from ..draw.figures import CURSOR, GRAY, draw, titled
from ..draw.palette import HIT, MISS, QUERY
from .center import Center

MEMBER, REJECTED = HIT, MISS
CHART_HEIGHT = 440  # so that the chart ends with the map's legend and caption beside it
WIDE = 1.4
"""Width of the chart's field relative to its height."""
EYE = {"eye": {"x": 1.5, "y": 1.5, "z": 1.1}}
SIDE, HEIGHT, DIRECTIONS = "side", "height", "directions"
AXES = {SIDE: "along and across", HEIGHT: "two directions and height", DIRECTIONS: "three directions"}
"""What a chart of the candidates shows. The first is plane: a 3-D chart takes a second where no GPU draws it."""


def show_flat(center: Center, hoods: LinearNeighborhoods) -> None:
    """Show the first image's candidates in the basis of its linear neighborhood.

    The axes can be chosen.
    """
    inside, across = views.coordinates(center.around, hoods)
    offered = [axes for axes in AXES if axes != DIRECTIONS or inside.shape[1] > 2]
    axes = st.segmented_control("Axes", offered, default=SIDE, required=True, key="neighborhood-axes",
                                format_func=AXES.__getitem__, label_visibility="collapsed")
    names = [center.dataset.caption(int(index)) for index in hoods.neighbors[0]]
    if axes == SIDE:
        side_picture(inside, across, hoods, names)
    else:
        flat_picture(inside, across, hoods, names, axes == DIRECTIONS)


def side_picture(inside: Array, across: Array, hoods: LinearNeighborhoods, names: Sequence[str]) -> None:
    """Show each candidate's distance along the flat and across it as a plane chart.

    Both axes have one scale, unless the candidates lie so near the flat that nothing of their distances would be seen.

    Args:
        inside: (k, m) coordinates of the candidates along the flat.
        across: (k,) distance of the candidates from the flat.
        hoods: Linear neighborhoods; the first is shown.
        names: Names of the candidates.
    """
    along = np.linalg.norm(inside, axis=1)
    stems = np.stack([np.column_stack([along, 0 * across]), np.column_stack([along, across]),
                      np.full((len(along), 2), np.nan)], axis=1).reshape(-1, 2)
    figure = go.Figure()
    figure.add_scatter(x=stems[:, 0], y=stems[:, 1], mode="lines", showlegend=False, hoverinfo="skip",
                       line={"color": GRAY, "width": 1.5})
    for mask, word, color, symbol in _kinds(hoods):
        figure.add_scatter(x=along[mask], y=across[mask], mode="markers+text", name=word, textposition="top center",
                           marker={"color": color, "symbol": symbol, "size": 10, "line": {"width": 2}},
                           **_labels(mask, word, hoods, names, across))
    figure.add_scatter(x=[0], y=[0], mode="markers", name="first image", hoverinfo="name", cliponaxis=False,
                       marker={"color": QUERY, "symbol": "diamond", "size": 13})
    figure.update_layout(height=CHART_HEIGHT, margin={"l": 8, "r": 8, "t": 8, "b": 8}, uirevision="kept",
                         legend={"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0})
    right, top = 1.1 * along.max(initial=0), 1.15 * across.max(initial=0)
    below = -0.06 * max(right, top)  # room for the first image's mark
    figure.update_xaxes(title="distance along the flat", range=[below, right], constrain="domain", zeroline=False)
    larger = max(1, round((right - below) / (top - below) / WIDE))
    drawn = f", drawn {larger} times larger" if larger > 1 else ""
    figure.update_yaxes(title=f"distance from the flat{drawn}", range=[below, top], scaleanchor="x",
                        scaleratio=larger, constrain="domain", zeroline=True, zerolinewidth=3, zerolinecolor=MEMBER)
    _draw(figure, hoods, across)


def flat_picture(inside: Array, across: Array, hoods: LinearNeighborhoods, names: Sequence[str],
                 directions: bool) -> None:
    """Show the first linear neighborhood in its own basis, to scale, as a 3-D chart.

    Args:
        inside: (k, m) coordinates of the candidates along the flat.
        across: (k,) distance of the candidates from the flat.
        hoods: Linear neighborhoods; the first is shown.
        names: Names of the candidates.
        directions: Whether the axes are the first three directions, not the first two and the height over the flat.
    """
    padded = np.column_stack([inside, np.zeros((len(inside), 2))])
    points = padded[:, :3] if directions else np.column_stack([padded[:, :2], across])
    figure = go.Figure()
    if not directions:
        _add_ground(figure, points)
    for mask, word, color, symbol in _kinds(hoods):
        figure.add_scatter3d(
            x=points[mask, 0], y=points[mask, 1], z=points[mask, 2], mode="markers+text", name=word,
            marker={"color": color, "symbol": symbol, "size": 6}, textposition="top center",
            **_labels(mask, word, hoods, names, across))
    figure.add_scatter3d(x=[0], y=[0], z=[0], mode="markers", name="first image", hoverinfo="name",
                         marker={"color": QUERY, "symbol": "diamond", "size": 9})
    axes = ("1", "2", "3" if directions else "height")
    figure.update_layout(height=CHART_HEIGHT, margin={"l": 24, "r": 8, "t": 0, "b": 0}, uirevision="kept",
                         legend={"orientation": "h", "y": 0},
                         scene={"aspectmode": "data", "camera": EYE} | {
                             f"{axis}axis": {"title": {"text": word}, "nticks": 5}
                             for axis, word in zip("xyz", axes, strict=True)})
    _draw(figure, hoods, across)


def _kinds(hoods: LinearNeighborhoods) -> list[tuple[Array, str, str, str]]:
    """Return the mask, the name, the color and the symbol of members and of rejected candidates."""
    members = hoods.members[0]
    return [(members, "member", MEMBER, "circle"), (~members, "rejected", REJECTED, "square-open")]


def _labels(mask: Array, word: str, hoods: LinearNeighborhoods, names: Sequence[str], across: Array) -> dict[str, Any]:
    """Return the ranks of some candidates, and their tooltips."""
    ranks, quality = np.flatnonzero(mask).tolist(), hoods.quality[0]
    return {"text": [str(rank + 1) for rank in ranks], "hoverinfo": "text",
            "hovertext": [f"{rank + 1}. {names[rank]}: {word}, quality {100 * quality[rank]:.1f} %, "
                          f"{across[rank]:.3f} from the flat" for rank in ranks]}


def _draw(figure: go.Figure, hoods: LinearNeighborhoods, across: Array) -> None:
    members = hoods.members[0]
    draw(figure, "neighborhood-flat", f"The image's {len(members)} candidates in its linear neighborhood: "
         f"{members.sum()} members and {(~members).sum()} rejected candidates, up to {across.max(initial=0):.2f} from "
         "the flat.")


def _add_ground(figure: go.Figure, points: Array) -> None:
    """Add the flat at height zero and a line from it to every candidate."""
    low, high = np.minimum(1.15 * points.min(axis=0), 0), np.maximum(1.15 * points.max(axis=0), 0)
    figure.add_surface(x=[low[0], high[0]], y=[low[1], high[1]], z=np.zeros((2, 2)), opacity=0.25, showscale=False,
                       hoverinfo="skip", colorscale=[[0, MEMBER], [1, MEMBER]])
    gaps = np.full(len(points), np.nan)
    stems = np.stack([points * [1, 1, 0], points, np.column_stack([gaps] * 3)], axis=1).reshape(-1, 3)
    figure.add_scatter3d(x=stems[:, 0], y=stems[:, 1], z=stems[:, 2], mode="lines", showlegend=False, hoverinfo="skip",
                         line={"color": GRAY, "width": 2})


def quality_bars(hoods: LinearNeighborhoods, threshold: float, untested: int) -> None:
    """Show the lowest quality at each candidate's test against T.

    Bars begin at T, so that they rise for admitted candidates and fall for rejected candidates.

    Args:
        hoods: Linear neighborhoods; the first is shown.
        threshold: T.
        untested: Number of nearest candidates that are members without a test; they have no bar.
    """
    members, worst = hoods.members[0], hoods.worst[0]
    ranks = np.arange(1, len(worst) + 1)
    figure = go.Figure()
    for mask, word, color, pattern in ((members & (ranks > untested), "admitted", MEMBER, ""),
                                       (~members, "rejected", REJECTED, "/")):
        # Without a width, the gaps between the bars of a trace would widen them.
        figure.add_bar(x=ranks[mask], y=100 * (worst[mask] - threshold), base=100 * threshold, width=0.8, name=word,
                       marker={"color": color, "pattern": {"shape": pattern}}, customdata=100 * worst[mask],
                       hovertemplate="%{x}: %{customdata:.1f} %")
    figure.add_hline(y=100 * threshold, line=CURSOR)
    figure.add_annotation(x=1, xref="paper", xanchor="left", y=100 * threshold, text=f"T = {100 * threshold:g} %",
                          showarrow=False)
    first = "1" if untested == 1 else f"1–{untested}"
    titled(figure, "Lowest quality at each candidate's test", 230, margin_r=72, legend={"orientation": "h", "y": -0.35},
           barmode="overlay", xaxis_title=f"candidate, nearest first{f' ({first} not tested)' if untested else ''}")
    figure.update_yaxes(title="quality, %", range=[max(0, 100 * min(worst.min(), threshold) - 10), 101])
    figure.update_xaxes(dtick=1 if len(ranks) <= 12 else 5, range=[0.4, len(ranks) + 0.6])
    draw(figure, "neighborhood-quality", f"{members.sum()} of {len(worst)} candidates are members at "
         f"T = {100 * threshold:g} %; the first {untested} need no test.")
