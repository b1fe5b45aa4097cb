"""Linear neighborhoods drawn: the flat with what lies on and off it, how a pair is split by it, equal similarity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from PIL import Image, ImageOps

from pages.parts.components.gallery import gallery, mark_of, tile_of
from pages.parts.kit.drawing import LIGHT, Colors, show_drawing, svg
from pages.parts.kit.figures import COLORS, GRAY, draw, table_behind
from pages.parts.kit.pictures import inline
from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.explanations import LinearNeighborhoods
from udml_core.exploration.neighborhoods import Along, Direction, Heat, Pair, toy

WIDTH, LEFT, BELOW, SIDE = 360, 66, 70, 52
MEMBER, REFUSED = COLORS[0], COLORS[1]
BAR_BELOW = {"orientation": "h", "y": -0.2, "thickness": 14, "title": {"text": "s", "side": "right"}}
EYE = {"eye": {"x": 1.5, "y": 1.5, "z": 1.1}}
LEAST_LABELED = 4
"""Images of a class so small that its name would lie over its neighbors' on the heat map."""


def flat_picture(inside: Array, across: Array, hoods: LinearNeighborhoods, names: Sequence[str],
                 directions: bool) -> None:
    """The first neighborhood in its own basis, to scale; it can be turned.

    Args:
        inside: (k, m) coordinates of the candidates along the flat. across: (k,) their distance from it.
        directions: draw the first three directions; else the first two, and the height over the flat.
    """
    members, quality = hoods.members[0], hoods.quality[0]
    places = np.column_stack([inside, np.zeros((len(inside), 2))])[:, :3] if directions else np.column_stack(
        [inside[:, 0], inside[:, 1] if inside.shape[1] > 1 else np.zeros(len(inside)), across])
    figure = go.Figure()
    if not directions:
        _ground(figure, places)
    for among, word, color, symbol in ((members, "member", MEMBER, "circle"),
                                       (~members, "refused", REFUSED, "square-open")):
        figure.add_scatter3d(
            x=places[among, 0], y=places[among, 1], z=places[among, 2], mode="markers+text", name=word,
            marker={"color": color, "symbol": symbol, "size": 6}, textposition="top center",
            text=[str(rank) for rank in np.flatnonzero(among) + 1], hoverinfo="text",
            hovertext=[f"{rank + 1}. {names[rank]}: {word}, quality {100 * quality[rank]:.0f} %, "
                       f"{across[rank]:.3f} off the flat" for rank in np.flatnonzero(among).tolist()])
    figure.add_scatter3d(x=[0], y=[0], z=[0], mode="markers", name="the image itself", hoverinfo="name",
                         marker={"color": COLORS[2], "symbol": "diamond", "size": 9})
    axes = ("1", "2", "3" if directions else "off")
    figure.update_layout(height=430, margin={"l": 24, "r": 8, "t": 0, "b": 0}, uirevision="kept",
                         legend={"orientation": "h", "y": 0},
                         scene={"aspectmode": "data", "camera": EYE} | {
                             f"{axis}axis": {"title": {"text": word}, "nticks": 5}
                             for axis, word in zip("xyz", axes, strict=True)})
    draw(figure, "neighborhood-flat", f"The image's {len(members)} candidates in its own linear neighborhood: "
         f"{members.sum()} are members, {(~members).sum()} are refused and lie up to "
         f"{across.max(initial=0):.2f} off the flat.")


def _ground(figure: go.Figure, places: Array) -> None:
    """The flat at height zero, and a stem from it to every candidate."""
    low, high = (1.15 * end(places.min(axis=0), 0) if end is np.minimum else 1.15 * end(places.max(axis=0), 0)
                 for end in (np.minimum, np.maximum))
    x, y = [low[0], high[0]], [low[1], high[1]]
    figure.add_surface(x=x, y=y, z=np.zeros((2, 2)), opacity=0.25, showscale=False, hoverinfo="skip",
                       colorscale=[[0, MEMBER], [1, MEMBER]])
    gaps = np.full(len(places), np.nan)
    stems = np.stack([places * [1, 1, 0], places, np.column_stack([gaps] * 3)], axis=1).reshape(-1, 3)
    figure.add_scatter3d(x=stems[:, 0], y=stems[:, 1], z=stems[:, 2], mode="lines", showlegend=False, hoverinfo="skip",
                         line={"color": GRAY, "width": 2})


def quality_bars(hoods: LinearNeighborhoods, threshold: float) -> None:
    """The worst quality at each candidate's test against T; the first m are not tested."""
    members, worst, untested = hoods.members[0], hoods.worst[0], hoods.basis.shape[2]
    ranks = np.arange(1, len(worst) + 1)
    figure = go.Figure()
    for among, word, color, pattern in ((ranks <= untested, "not tested", GRAY, "."),
                                        (members & (ranks > untested), "admitted", MEMBER, ""),
                                        (~members, "refused", REFUSED, "/")):
        figure.add_bar(x=ranks[among], y=100 * worst[among], name=word,
                       marker={"color": color, "pattern": {"shape": pattern}})
    figure.add_hline(y=100 * threshold, line={"width": 2, "dash": "dot", "color": GRAY},
                     annotation_text=f"T = {100 * threshold:g} %", annotation_position="bottom right")
    figure.update_layout(title={"text": "Worst quality at each candidate's test, %", "font": {"size": 14}}, height=230,
                         margin={"l": 8, "r": 8, "t": 36, "b": 8}, xaxis_title="candidate, nearest first",
                         legend={"orientation": "h", "y": -0.35}, barmode="overlay")
    figure.update_yaxes(range=[max(0, 100 * min(worst.min(), threshold) - 10), 101])
    figure.update_xaxes(dtick=1 if len(ranks) <= 12 else 5)
    draw(figure, "neighborhood-quality", f"Of {len(worst)} candidates {members.sum()} are members at "
         f"T = {100 * threshold:g} %; the first {untested} need no test.")


def split_drawing(part: Direction, pair: Pair, images: tuple[Image.Image, Image.Image],
                  colors: Colors = LIGHT) -> str:
    """The SVG of v split by a flat, to scale: along it, across it, and the two images at the ends of v.

    Args:
        part: what is drawn of the pair; all drawings of a pair have one scale and one height.
        images: the one whose flat it is, and the other.
    """
    ink, blue, orange, _green = colors
    scale = (WIDTH - LEFT - SIDE - 30) / pair.distance if pair.distance else 0.0
    x0, y0 = LEFT, SIDE + 14 + scale * max(pair.first.across, pair.other.across)
    x1, y1 = x0 + scale * part.along, y0 - scale * part.across
    parts = [
        _line((10, y0), (WIDTH - 10, y0), f'stroke="{blue}" stroke-opacity=".35" stroke-width="2"'),
        _line((x0, y0), (x1, y1), f'stroke="{ink}" stroke-width="1.5" stroke-dasharray="6 4"'),
        _line((x0, y0), (x1, y0), f'stroke="{blue}" stroke-width="5"'),
        _line((x1, y0), (x1, y1), f'stroke="{orange}" stroke-width="5"'),
        f'<circle cx="{x0}" cy="{y0:.1f}" r="5"/><circle cx="{x1:.1f}" cy="{y1:.1f}" r="5"/>',
        _picture(images[0], x0 - SIDE - 8, y0 + 6), _picture(images[1], x1 + 6, y1 - SIDE - 6),
    ]
    for line, (words, color) in enumerate(((f"p = {part.along:.3f} along, β = {part.beta:.3f}", blue),
                                           (f"o = {part.across:.3f} across, α = {part.alpha:.3f}", orange),
                                           (f"s′ = αβ = {part.similarity:.3f}", ink)), 1):
        parts.append(f'<text x="{x0 + 8}" y="{y0 + 2 + 20 * line:.1f}" font-size="13" fill="{color}">{words}</text>')
    return svg(WIDTH, round(y0 + BELOW), ink, parts)


def show_split(pair: Pair, images: tuple[Image.Image, Image.Image], first: bool) -> None:
    """One of the two drawings of a pair."""
    part, ends = (pair.first, images) if first else (pair.other, images[::-1])
    whose = "In the first image's flat" if first else "In the second image's flat"
    show_drawing(lambda colors: split_drawing(part, pair, ends, colors), whose,
                 f"{whose} the pair lies {part.along:.3f} along and {part.across:.3f} across: α is {part.alpha:.3f}, β "
                 f"is {part.beta:.3f}, s′ is {part.similarity:.3f}.", f"pair-{'first' if first else 'second'}")


def _line(start: tuple[float, float], end: tuple[float, float], style: str) -> str:
    (x0, y0), (x1, y1) = start, end
    return f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" {style}/>'


def _picture(image: Image.Image, x: float, y: float) -> str:
    padded = ImageOps.pad(image, (2 * SIDE, 2 * SIDE), color="white")
    return f'<image href="{inline(padded)}" x="{x:.1f}" y="{y:.1f}" width="{SIDE}" height="{SIDE}"/>'


def because(pair: Pair, typical: float, unit: bool) -> str:
    """Why two images are as similar as they are, in a sentence; `typical` is the median s of the first one's nearest,
    `unit` whether embeddings are of unit length, so that their cosine says something."""
    if pair.distance == 0:
        return "**Similar because** they are the same point of the embedding."
    shares = (pair.first.share, pair.other.share)
    along = [f"{100 * share:.0f} %" for share in shares]
    costs = (1 - (pair.first.beta + pair.other.beta) / 2, 1 - (pair.first.alpha + pair.other.alpha) / 2)
    similar = pair.similarity >= typical
    link = "because" if similar == (max(shares) > 0.5) else "although"
    lead = ("Similar " if similar else "Less similar than most of its nearest ") + link
    mostly = ("mostly along the flats" if min(shares) > 0.5 else "mostly across the flats" if max(shares) < 0.5
              else "along one flat and across the other")
    return (f"**{lead}** the way of {pair.distance:.3f} between them leads {mostly}: {along[0]} of its square lies in "
            f"the first image's flat, {along[1]} in the second's. What goes across takes {100 * costs[1]:.0f} % off "
            f"(1 − α), what goes along {100 * costs[0]:.0f} % (1 − β). s = {pair.similarity:.3f} (the middle of the "
            f"nearest: {typical:.3f})" + (f", the cosine is {pair.cosine:.3f}." if unit else "."))


def heat_picture(found: Heat, classes: Sequence[str]) -> None:
    """s among a set, sorted by class, its classes named on the axes."""
    figure = go.Figure(go.Heatmap(z=found.values, colorscale="Viridis", zmin=0, zmax=1, colorbar=BAR_BELOW,
                                  hovertemplate="s %{z:.3f}<extra></extra>"))
    for end in found.starts[1:].tolist():
        figure.add_vline(x=end - 0.5, line={"width": 1, "color": "white"})
        figure.add_hline(y=end - 0.5, line={"width": 1, "color": "white"})
    ends = np.append(found.starts[1:], len(found.order))
    named = np.flatnonzero(ends - found.starts >= LEAST_LABELED)
    figure.update_layout(height=420, margin={"l": 8, "r": 8, "t": 8, "b": 8}, uirevision="kept")
    figure.update_xaxes(showticklabels=False, scaleanchor="y", constrain="domain")
    figure.update_yaxes(tickvals=(found.starts + ends - 1)[named] / 2,
                        ticktext=[classes[one] for one in named.tolist()], autorange="reversed", constrain="domain")
    draw(figure, "neighborhood-heat", f"Similarities among {len(found.order)} images sorted by class, in "
         f"{len(classes)} classes" + (f": {found.within:.2f} on average within a class, {found.between:.2f} between "
                                      "classes." if np.isfinite(found.correlation) else "."))
    table = pd.DataFrame(found.by_class.round(3), columns=list(classes))
    table.insert(0, "Class", list(classes))
    table_behind("Mean s between classes as a table", table)


def contours(n_alpha: float, n_beta: float) -> None:
    """Lines of equal similarity around a point in the plane whose flat is the horizontal axis."""
    ticks, values = toy(n_alpha, n_beta)
    figure = go.Figure(go.Contour(x=ticks, y=ticks, z=values, colorscale="Viridis", colorbar=BAR_BELOW,
                                  contours={"start": 0.1, "end": 0.9, "size": 0.1, "showlabels": True,
                                            "labelfont": {"color": "white"}}))
    figure.update_layout(height=360, margin={"l": 8, "r": 8, "t": 8, "b": 8}, xaxis_title="along the flat, p",
                         yaxis_title="across it, o")
    figure.update_yaxes(scaleanchor="x", constrain="domain")
    figure.update_xaxes(constrain="domain")
    at = np.linspace(0, len(ticks) // 2, 9).astype(int) + len(ticks) // 2
    table = pd.DataFrame({"Distance": ticks[at], "s along the flat": values[len(ticks) // 2, at],
                          "s across it": values[at, len(ticks) // 2]}).round(3)
    draw(figure, "neighborhood-toy", f"Equal similarity around a point at Nα {n_alpha:g} and Nβ {n_beta:g}: one unit "
         f"along the flat s is {table['s along the flat'][4]}, one unit across it {table['s across it'][4]}.")
    table_behind("Similarity along and across as a table", table)


def direction_images(dataset: Dataset, images: Array, along: Along, number: int, key: str, middle: int = -1,
                     chosen: int | None = None) -> int | None:
    """Images along one direction, the one at its origin amid them where it is of the data set."""
    st.markdown(f"**Direction {number}**" + ("" if len(images) else ": nothing near lies this way."))
    if not len(images):
        return None
    tiles = [tile_of(dataset, index, mark_of(dataset, index, middle) if middle >= 0 else "",
                     f"{'◂' if value < 0 else '▸'} {100 * share:.0f} %")
             for index, value, share in zip(images.tolist(), along.coordinates, along.shares, strict=True)]
    if middle >= 0:
        tiles.insert(int((along.coordinates < 0).sum()), tile_of(dataset, middle, "query", "the image"))
    return gallery(dataset, tiles, f"Images along direction {number}", f"{key}-direction-{number}", 72, chosen)
