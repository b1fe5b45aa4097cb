"""The map or grid of the page Explore, with a one-line toolbar."""

from __future__ import annotations

import numpy as np
import streamlit as st

from ..maps.content import Color
from ..maps.excluding import excluded_images, show_excluded, visible_images
from ..maps.frame import MapFrame
from ..maps.layouts import MapLayout
from ..maps.scatter import show_map
from .workbench import Workbench

KEY = "explore-map"
MOVING_WORDS = ("The positions y are from the map after training. At an earlier epoch an image is drawn at the mean "
                "position of its neighbors in that epoch's embedding, x = (1/k) Σ y(i), so an image whose neighbors "
                "belong to several clusters lies between them.")
LINES = 10
"""Number of lines from the current image to its neighbors."""


def draw_layout(bench: Workbench, layout: MapLayout, shown: MapFrame, color: Color) -> None:
    """Draw the map or grid with the current image marked.

    Args:
        bench: The workbench.
        layout: The chosen layout.
        shown: Its map of the chosen embedding.
        color: The colors of the map's points.
    """
    show_map(shown, color, f"{layout.title}, {bench.frame_words}", KEY, excluded_images(bench.dataset),
             layout=layout.draw(shown), grid=layout.grid(bench.run, bench.frame), current=bench.focus, most=LINES,
             legend_below=True)


def shown_images(layout: MapLayout, shown: MapFrame, bench_frame: str) -> np.ndarray:
    """Return the data set indices of the map's points in their order, (n,)."""
    grid = layout.grid(shown.run, bench_frame)
    indices = shown.projection.indices if grid is None else grid.indices
    return visible_images(indices, excluded_images(shown.dataset))


def show_facts(layout: MapLayout, shown: MapFrame) -> None:
    """Say in one line what the map shows and how far it can be trusted."""
    show_excluded(shown.dataset, shown.projection.indices, KEY)
    trust = np.nan if shown.is_quick else np.nanmean(shown.projection.trustworthiness[shown.frame])
    kept = "" if np.isnan(trust) else f" Trustworthiness {100 * trust:.1f} %."
    drawn, total = len(shown.projection.indices), len(shown.dataset)
    part = "" if drawn == total else f"{drawn:,} of {total:,} images. "
    if part and shown.is_quick:
        part = f"A quick map of the {drawn:,} images stored for every epoch, of {total:,}. "
    text = f"{part}Click an image; Shift and drag to select.{kept}"
    hint = ("Distances on a map are not distances in the embedding: areas, gaps and axes carry no units. The "
            "trustworthiness is 100 % if all neighbors on the map are neighbors in the embedding, and falls with the "
            "rank of each false one. Lines lead to the neighbors of the current image.")
    if layout.moves:
        hint += " " + MOVING_WORDS
    if layout.moves and shown.is_quick:
        text = f"Each image lies at the mean position of its {shown.neighbors.shape[1]} neighbors at this epoch."
    st.caption(text, help=hint)
