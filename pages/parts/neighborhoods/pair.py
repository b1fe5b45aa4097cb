"""Two images: their difference v split by both flats, and why they are similar."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st
from PIL import Image, ImageOps

from udml_core.base.arrays import Array
from udml_core.exploration import neighborhoods as views
from udml_core.exploration.neighborhoods import Direction, Pair
from udml_core.numerics.explanations import LinearNeighborhoods

from ..draw.drawing import LIGHT, Colors, show_drawing, svg
from ..draw.pictures import inline
from ..draw.tables import table_behind
from ..shell.run_picker import open_search
from ..shell.run_status import escaped
from .center import Center, set_images, surroundings_of

WIDTH, LEFT, BELOW, SIDE = 360, 66, 70, 52
"""Pixels: width of a drawing, margins left and below, and side of an image."""


def show_pair(center: Center, hoods: LinearNeighborhoods, geometry: views.Geometry, second: int,
              similarities: Array) -> None:
    """Show the two images split by both flats, and the reasons for their similarity.

    Args:
        center: The first image.
        hoods: Linear neighborhoods of the first image and its nearest images.
        geometry: The geometry.
        second: Index of the second image.
        similarities: (c,) s of the nearest images to the first image.
    """
    st.subheader("How similar are two images, and why?")
    other = surroundings_of(center.run, center.which, (second,))
    pair = views.pair(np.concatenate([center.around.centers[:1], other.centers]),
                      np.concatenate([hoods.basis[:1], other.neighborhoods(geometry).basis]), geometry)
    rank = ""
    if second in center.nearest:
        by_s = 1 + int((similarities > pair.similarity + 1e-6).sum())
        by_metric = 1 + int(np.flatnonzero(center.nearest == second)[0])
        rank = f": rank {by_s} by s and {by_metric} by {center.metric} among the {len(similarities)} nearest images"
    st.markdown(f"First **{escaped(center.name)}**, second **{escaped(center.dataset.caption(second))}**{rank}.")
    for column, first in zip(st.columns(2), (True, False), strict=True):
        with column:
            show_split(pair, (center.image, center.dataset.images[second]), first)
    st.markdown(explain_similarity(pair, float(np.median(similarities)), center.metric == "cosine"))
    st.caption("Both drawings have the same scale. Blue: the flat, and p, the part along it. Orange: o, the part "
               "across it. Dashed: the difference v of the two images.")
    rows = [(whose, part.along, part.across, part.alpha, part.beta, part.similarity)
            for whose, part in (("first image", pair.first), ("second image", pair.other))]
    table_behind("The pair as a table", pd.DataFrame(
        rows, columns=["In the flat of the", "Along, p", "Across, o", "α", "β", "s′"]))
    with st.container(horizontal=True):
        st.button("Swap the images", icon=":material/swap_horiz:", key="neighborhood-swap", on_click=set_images,
                  args=(second, center.index), help="Make the second image the first image.")
        if st.button("Search with the second image", icon=":material/image_search:", key="neighborhood-search"):
            open_search(center.dataset, second)


def show_split(pair: Pair, images: tuple[Image.Image, Image.Image], first: bool) -> None:
    """Show the split by the first image's flat or by the second's."""
    part, ends = (pair.first, images) if first else (pair.other, images[::-1])
    title = "In the first image's flat" if first else "In the second image's flat"
    show_drawing(lambda colors: split_drawing(part, pair, ends, colors), title,
                 f"{title} the pair differs by {part.along:.3f} along and {part.across:.3f} across: α is "
                 f"{part.alpha:.3f}, β is {part.beta:.3f}, s′ is {part.similarity:.3f}.",
                 f"pair-{'first' if first else 'second'}")


def split_drawing(part: Direction, pair: Pair, images: tuple[Image.Image, Image.Image],
                  colors: Colors = LIGHT) -> str:
    """Return an SVG of v split by a flat, to scale.

    It shows the part along the flat, the part across, and both images.

    Args:
        part: The split to draw.
        pair: The pair; all drawings of a pair have the same scale and height.
        images: The image with this flat, and the other image.
        colors: Colors of the page.
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
        _svg_image(images[0], x0 - SIDE - 8, y0 + 6), _svg_image(images[1], x1 + 6, y1 - SIDE - 6),
    ]
    for number, (words, color) in enumerate(((f"p = {part.along:.3f} along, β = {part.beta:.3f}", blue),
                                             (f"o = {part.across:.3f} across, α = {part.alpha:.3f}", orange),
                                             (f"s′ = αβ = {part.similarity:.3f}", ink)), 1):
        parts.append(f'<text x="{x0 + 8}" y="{y0 + 2 + 20 * number:.1f}" font-size="13" fill="{color}">{words}</text>')
    return svg(WIDTH, round(y0 + BELOW), ink, parts)


def _line(start: tuple[float, float], end: tuple[float, float], style: str) -> str:
    (x0, y0), (x1, y1) = start, end
    return f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" {style}/>'


def _svg_image(image: Image.Image, x: float, y: float) -> str:
    padded = ImageOps.pad(image, (2 * SIDE, 2 * SIDE), color="white")
    return f'<image href="{inline(padded)}" x="{x:.1f}" y="{y:.1f}" width="{SIDE}" height="{SIDE}"/>'


def explain_similarity(pair: Pair, median: float, normalized: bool) -> str:
    """Explain in sentences why two images are similar or not.

    Args:
        pair: The pair.
        median: Median s of the first image's nearest images.
        normalized: Whether embeddings have unit length, so that the cosine is meaningful.
    """
    if pair.distance == 0:
        return "**Similar because** they are the same point of the embedding."
    shares = (pair.first.share, pair.other.share)
    along = [f"{100 * share:.1f} %" for share in shares]
    loss_along, loss_across = (100 * (1 - (first + other) / 2) for first, other in (
        (pair.first.beta, pair.other.beta), (pair.first.alpha, pair.other.alpha)))
    similar = pair.similarity >= median
    link = "because" if similar == (max(shares) > 0.5) else "although"
    lead = ("Similar " if similar else "Less similar than most of its nearest images ") + link
    mostly = ("mostly along the flats" if min(shares) > 0.5 else "mostly across the flats" if max(shares) < 0.5
              else "along one flat and across the other")
    cosine = f", cosine = {pair.cosine:.3f}" if normalized else ""
    return (f"**{lead}** the difference v of length {pair.distance:.3f} points {mostly}: {along[0]} of its squared "
            f"length is in the first image's flat, {along[1]} in the second's. The part across reduces s by "
            f"{loss_across:.1f} % (1 − α), the part along by {loss_along:.1f} % (1 − β). s = {pair.similarity:.3f} "
            f"(median of the nearest images: {median:.3f}){cosine}.")
