"""The map of a run's training images, colored by where random walks end."""

from __future__ import annotations

import numpy as np
import streamlit as st

from udml_core.base.arrays import rows_of
from udml_core.runs.analyses import plan_analysis

from ..maps.content import Color
from ..maps.frame import UNITS, MapFrame, covering_map, distortion_words
from ..maps.scatter import Ring, draw_map
from ..shell.address import choice_from_address, write_address
from ..shell.analyses import request_analysis, show_analysis_progress
from ..shell.selection import select, selection
from .board import Board

COLORS = {"class": "Most probable class", "certainty": "Certainty"}
DEFAULT_COLOR = "class"


def spread_map(board: Board) -> None:
    """Show the map colored by the spread of the labels.

    A click selects or deselects an image.
    """
    shown = covering_map(board.run, board.images)
    if shown is None:
        st.info("This run has no map of its training images. Compute one to see the labels spread.",
                icon=":material/lightbulb:")
        request_analysis(board.run, plan_analysis(kind="pca", scope="all", frames=("final",)), "Compute map",
                         "labels-map-new")
        show_analysis_progress(board.run)
        return
    by = st.segmented_control("Color", list(COLORS), default=choice_from_address("show", COLORS, DEFAULT_COLOR),
                              required=True, format_func=COLORS.__getitem__, key="labels-color",
                              label_visibility="collapsed") or DEFAULT_COLOR
    write_address("show", by, DEFAULT_COLOR)
    selected = selection(board.dataset)
    marks = [*(Ring(image) for image in board.labels), *(Ring(image, "next") for image in board.suggested_images[:1])]
    clicked = draw_map(board.dataset, shown.layout, _color(board, shown, by), f"Map colored by {COLORS[by].lower()}",
                       "labels-map", marks=marks, height=430)
    st.caption("Rings mark labeled images; no label reaches the gray images. Click a point to select or deselect it; "
               "hold Shift and drag to select several.",
               help=f"The gray images include all images outside the training half. {distortion_words(shown)} {UNITS}")
    if clicked is not None:
        select(board.dataset.fingerprint, np.setxor1d(selected.ids, [clicked]))
        st.rerun(scope="fragment")


def _color(board: Board, shown: MapFrame, by: str) -> Color:
    """Return the colors of the map's points, none outside the training half."""
    rows = rows_of(board.images, shown.layout.indices)
    none = "not reached"
    if by == "class":
        return Color(by, np.where(rows >= 0, board.ends.best[rows], -1), board.names or ("no class yet",), none=none)
    percent = 100 * board.ends.certainty
    return Color(by, np.where(rows >= 0, percent[rows], np.nan), unit=" %", none=none, low=0, high=100)
