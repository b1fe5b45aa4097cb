"""Members and rejected candidates of the first image, on the map and as images."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from udml_core.exploration import neighborhoods as views
from udml_core.numerics.explanations import LinearNeighborhoods

from ..draw.gallery import clicked_tile, gallery, tile_of
from ..draw.palette import CLASSES, color_legend
from ..draw.tables import table_behind
from ..maps.coloring import default_color
from ..maps.frame import UNITS, distortion_words, link_to_map, whole_map
from ..maps.scatter import Ring, draw_map
from .center import Center

HEIGHT = "max(370px, 100vh - 430px)"
"""Height of the map as a CSS length, as app.css has it, too."""


def draw_members(center: Center, hoods: LinearNeighborhoods, second: int) -> int | None:
    """Show the first image, its candidates and the second image on a map.

    Returns:
        The index of the image that was clicked just now.
    """
    shown = whole_map(center.run)
    if shown is None:
        link_to_map(center.run, "Compute a map of all images to see this image on it")
        return None
    candidates, members = hoods.neighbors[0], hoods.members[0]
    marks = [*(Ring(image, radius=5) for image in candidates[~members].tolist()), Ring(second, "second"),
             Ring(center.index, "first", candidates[members])]
    clicked = draw_map(center.dataset, shown.layout, default_color(shown),
                       f"Map of all images, with {center.name} joined to its members", "neighborhood-map", marks=marks,
                       height=HEIGHT, legend_below=True, near=center.index)
    st.caption("Lines lead to the members; rings without a line are rejected candidates. Click a point to make its "
               "image the first image. The button with four corners shows all images.",
               help=f"{distortion_words(shown)} {UNITS}")
    return clicked


def show_strip(center: Center, hoods: LinearNeighborhoods, second: int) -> int | None:
    """Show the candidates in one row, the members first, with their ranks by distance.

    Returns:
        The index of the image that was clicked just now.
    """
    members, images = hoods.members[0], hoods.neighbors[0]
    order = np.argsort(~members, kind="stable")
    tiles = [tile_of(center.dataset, images[rank], center.mark(images[rank]), f"{rank + 1}") for rank in order]
    return gallery(center.dataset, tiles, "Members, then rejected candidates", "neighborhood-strip", 42, second,
                   strip=True, shared=True, end=int(members.sum()))


def show_candidates(center: Center, hoods: LinearNeighborhoods, geometry: views.Geometry,
                    second: int) -> int | None:
    """Show members and rejected candidates as images with their quality.

    Returns:
        The index of the image that was clicked just now.
    """
    members, images = hoods.members[0], hoods.neighbors[0]
    quality, worst = views.floor_percent(hoods.quality[0]), views.floor_percent(hoods.worst[0])
    badges = views.tested_words(hoods.worst[0], geometry.untested)
    st.caption("A flat is a line, plane or larger subspace through the "
               f"{'image' if geometry.through == 'point' else 'origin'}. A candidate is admitted if every member keeps "
               "a quality of at least T: the share of its squared distance that lies in the flat.",
               help=_explain_untested(geometry))
    st.caption(_source_words(center))
    clicks = []
    for column, mask, word, sign in zip(st.columns(2), (members, ~members), ("Members", "Rejected"), "≥<", strict=True):
        with column:
            st.markdown(f"**{word}: {mask.sum()}** · badge: rank by distance, and quality "
                        f"{sign} T = {geometry.threshold:g}")
            if mask.any():
                tiles = [tile_of(center.dataset, images[rank], center.mark(images[rank]),
                                 f"{rank + 1} · {badges[rank]}")
                         for rank in np.flatnonzero(mask)]
                clicks.append(gallery(center.dataset, tiles, word, f"neighborhood-{word.lower()}", 84, second))
    if center.same_class is not None:
        color_legend(*CLASSES)
    table_behind("The candidates as a table", pd.DataFrame({
        "Rank": np.arange(1, len(members) + 1), "Image": [center.dataset.caption(int(index)) for index in images],
        "Member": members, "Lowest quality in its test, %": worst, "Quality in the final flat, %": quality,
        "Distance from the flat": views.coordinates(center.around, hoods)[1].round(4)}))
    return clicked_tile(clicks)


def _source_words(center: Center) -> str:
    """Say which images and which embedding the candidates come from, here and in training."""
    here = "Candidates are the nearest of all images, test images among them, in the embedding chosen above."
    if "admission" not in center.run.spec().build_method().model_dump():
        return here
    return f"{here} Training took them from batches of random views, in the embedding of its teacher."


def _explain_untested(geometry: views.Geometry) -> str:
    """Say why the nearest candidates are members without a test."""
    if geometry.through == "point":
        return (f"A flat of m dimensions contains any m other points, so the {geometry.untested} nearest images are "
                "members without a test.")
    return (f"A flat of m dimensions contains any m points, so the image and its {geometry.untested} nearest images "
            "need no test. Heights and distances from the flat measure the difference from the image, as s does.")
