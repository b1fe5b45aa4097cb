"""The map or grid of the page Explore, with a one-line toolbar."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st

from udml_core.base.arrays import rows_of

from ..draw.image_grid import grid_layout
from ..draw.map_content import Color
from ..draw.scatter import scatter
from ..maps.coloring import COLOR_WORDS, NEEDS_NEIGHBORS, colorings
from ..maps.excluding import excluded_images, show_excluded, visible_images, without_excluded
from ..maps.frame import MapFrame
from ..shell.address import choice_from_address, write_address
from ..shell.selection import Selection
from .layouts import COLOR_WIDTH, MapLayout
from .workbench import Workbench

KEY = "explore-map"
HEIGHT = 600
"""Pixels; the legend below the map takes up to 60 more."""
MOVING_WORDS = ("The positions y are from the map after training. At an earlier epoch an image is drawn at the mean "
                "position of its neighbors in that epoch's embedding, x = (1/k) Σ y(i), so an image whose neighbors "
                "belong to several clusters lies between them.")
LINES = 10
"""Number of lines from the current image to its neighbors."""


def is_quick(shown: MapFrame) -> bool:
    """Return whether a layout was computed at once: its distortion is unknown, and colors know it by no id."""
    return bool(np.isnan(shown.projection.trustworthiness).all())


def _plain(shown: MapFrame) -> MapFrame:
    """Name the embedding of a quick layout "final", as its images are not the fixed sample, which epochs stand for."""
    frames = ("final",) * len(shown.projection.frames)
    return replace(shown, projection=replace(shown.projection, frames=frames)) if is_quick(shown) else shown


def pick_color(shown: MapFrame) -> Color:
    """Choose the colors of the points; the address parameter `color` holds the choice."""
    choices = {name: make for name, make in colorings(_plain(shown)).items()
               if not (is_quick(shown) and name in NEEDS_NEIGHBORS)}
    default = next(iter(choices))
    wanted = choice_from_address("color", list(choices), default)
    chosen = st.selectbox("Color", list(choices), list(choices).index(wanted), key="explore-color", width=COLOR_WIDTH,
                          label_visibility="collapsed", icon=":material/palette:",
                          format_func=lambda name: COLOR_WORDS.get(name, name))
    write_address("color", chosen, default)
    return choices[chosen]()


def draw_map(bench: Workbench, layout: MapLayout, shown: MapFrame, color: Color, selected: Selection) -> None:
    """Draw the map or grid with the current image marked.

    Args:
        bench: The workbench.
        layout: The chosen layout.
        shown: Its map of the chosen embedding.
        color: The colors of the map's points.
        selected: The data set's selection.
    """
    grid = layout.grid(bench.run, bench.frame)
    points = layout.draw(shown)
    if grid is not None:
        points = grid_layout(grid, f"{layout.id} {bench.frame}")
        color = replace(color, values=np.asarray(color.values)[rows_of(shown.projection.indices, grid.indices)])
    points, color = without_excluded(points, color, excluded_images(bench.dataset))
    row = int(rows_of(points.indices, bench.focus))
    lines = [] if row < 0 or points.neighbors is None else points.neighbors[row][:LINES].tolist()
    marks = [] if row < 0 else [{"row": row, "word": "current", "lines": lines}]
    scatter(bench.dataset, points, color, selected, f"{layout.title}, {bench.frame_words}, {len(points.indices):,} "
            f"images", KEY, marks=marks, height=HEIGHT, grid=grid, legend_below=True)


def shown_images(layout: MapLayout, shown: MapFrame, bench_frame: str) -> np.ndarray:
    """Return the data set indices of the map's points in their order, (n,)."""
    grid = layout.grid(shown.run, bench_frame)
    indices = shown.projection.indices if grid is None else grid.indices
    drawn: np.ndarray = indices[visible_images(indices, excluded_images(shown.dataset))]
    return drawn


def show_facts(layout: MapLayout, shown: MapFrame) -> None:
    """Say in one line what the map shows and how far it can be trusted."""
    show_excluded(shown.dataset, shown.projection.indices, KEY)
    trust = np.nan if is_quick(shown) else np.nanmean(shown.projection.trustworthiness[shown.frame])
    kept = "" if np.isnan(trust) else f" Trustworthiness {100 * trust:.1f} %."
    drawn, total = len(shown.projection.indices), len(shown.dataset)
    part = "" if drawn == total else f"{drawn:,} of {total:,} images. "
    if part and is_quick(shown):
        part = f"A quick map of the {drawn:,} images stored for every epoch, of {total:,}. "
    text = f"{part}Click an image; Shift and drag to select.{kept}"
    hint = ("Distances on a map are not distances in the embedding: areas, gaps and axes carry no units. The "
            "trustworthiness is 100 % if all neighbors on the map are neighbors in the embedding, and falls with the "
            "rank of each false one. Lines lead to the neighbors of the current image.")
    if layout.moves:
        hint += " " + MOVING_WORDS
    if layout.moves and is_quick(shown):
        text = f"Each image lies at the mean position of its {shown.neighbors.shape[1]} neighbors at this epoch."
    st.caption(text, help=hint)
