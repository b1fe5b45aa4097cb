"""The toolbar of the map: layout, epoch, colors, a second map, hidden images, and new maps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from udml_core.base.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.data.given.exclusions import excluded_images as listed_exclusions
from udml_core.exploration.map_content import Color
from udml_core.exploration.map_values import hide_rest
from udml_core.runs import Run
from udml_core.runs.analyses import ImageGrid
from udml_core.runs.search import frame_words

from ..data.columns import choose_values
from ..draw.run_header import run_header
from ..maps.choosing import map_specs, pick_frame
from ..maps.coloring import pick_color
from ..maps.excluding import excluded_images
from ..maps.frame import MapFrame
from ..maps.grids import compute_grid, grid_of
from ..maps.layouts import MapLayout, pick_any_layout
from ..maps.new_map import new_map_menu
from ..maps.second_map import pick_comparison, pick_second_map
from ..maps.uncertainty import LABEL, noise_slider

MOST_DRAWN = 1_000_000
"""Points that the browser gets."""


@dataclass(frozen=True)
class MapChoice:
    """The map that a user chose.

    Attributes:
        layout: The map or grid.
        frame: The embedding: "initial", "final", "frozen", a refinement or an epoch's number.
        shown: The map of this embedding.
        color: The colors of its points.
        hidden: Data set indices of the images that are not drawn.
        other: A second map beside it; None without one.
    """

    layout: MapLayout
    frame: str
    shown: MapFrame
    color: Color
    hidden: Array
    other: MapFrame | None

    @property
    def grid(self) -> ImageGrid | None:
        """The grid that is drawn in place of the map; None for a map, or while the grid is being computed."""
        return self.layout.grid(self.shown.run, self.frame)

    @property
    def other_grid(self) -> ImageGrid | None:
        """The grid that is drawn in place of the second map."""
        other = self.other
        return None if other is None or not self.layout.is_grid else grid_of(other.run, other.map_id, other.name)


def choose_map(run: Run, header: DeltaGenerator) -> MapChoice:
    """Show the toolbar, and load what it chooses.

    Args:
        run: The run.
        header: The place of the run's menu, which names the embedding.
    """
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="explore-toolbar"):
        layout = pick_any_layout(run)
        with st.container(width="stretch", key="explore-cursor"):
            frame = layout.frames[pick_frame(run, layout.frames, layout.start(run), "Epoch",
                                             f"explore-epoch-{layout.id}", buttons="explore-frame")]
        run_header(run, frame_words(frame, run), header)  # before the map is loaded, so that nothing moves later
        shown = layout.load(run, frame)
        color = pick_color(shown, "Color", 150, "explore-color")
        comparison = pick_comparison(len(layout.frames) if shown.map_id in map_specs(run) else 1, 176)
        hidden = hidden_images(shown.dataset, shown.projection.indices)
        new_map_menu(run)
    if color.label == LABEL and shown.epoch is None:
        noise_slider(run)
    other = pick_second_map(comparison, shown)
    if layout.is_grid:
        for grid in (shown, other) if other is not None else (shown,):
            compute_grid(grid.run, grid.map_id, grid.name)
    return MapChoice(layout, frame, shown, color, hidden, other)


def hidden_images(dataset: Dataset, indices: Array) -> Array:
    """Return the images that the view or the user's list excludes, and the images without the chosen values.

    Of more images than the browser draws, the images outside a sample are hidden as well. The button of the columns is
    drawn where this is called.
    """
    allowed = choose_values(dataset)
    hidden = np.union1d(excluded_images(dataset), listed_exclusions(dataset))
    if allowed is not None:
        hidden = np.union1d(hidden, np.flatnonzero(~allowed))
    return hide_rest(indices, hidden, MOST_DRAWN)
