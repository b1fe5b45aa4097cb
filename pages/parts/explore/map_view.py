"""The map or grid of a run, alone or beside a second one, with a line on how far it can be trusted."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.runs.analyses import Placed, finished_analyses, plan_analysis
from udml_core.runs.analyses.kinds.grid import Grid
from udml_core.runs.analyses.kinds.placed import NewImages
from udml_core.runs.search import frame_words

from ..maps.coloring import colorings
from ..maps.excluding import show_excluded, visible_images
from ..maps.frame import UNITS, MapFrame, distortion_words
from ..maps.image_grid import seam_range
from ..maps.images import follow_click
from ..maps.scatter import show_map
from ..shell.analyses import load_result, request_analysis
from .toolbar import MOST_DRAWN, MapChoice
from .workbench import Workbench

KEY, SECOND = "explore-map", "explore-map2"
MOVING_WORDS = ("The positions y are from the map after training. At an earlier epoch an image is drawn at the mean "
                "position of its neighbors in that epoch's embedding, x = (1/k) Σ y(i), so an image whose neighbors "
                "belong to several clusters lies between them.")
LINES = 10
"""Number of lines from the current image to its neighbors."""


def follow_clicks(choice: MapChoice) -> bool:
    """Make an image that was just clicked on a map the current image; return whether one was."""
    return any([follow_click(KEY, shown_images(choice)),
                choice.other is not None
                and follow_click(SECOND, visible_images(choice.other.projection.indices, choice.hidden))])


def draw_maps(bench: Workbench, choice: MapChoice, ends: Array | None = None) -> None:
    """Draw the map or grid, and the second map beside it, with the current image marked.

    Args:
        bench: The workbench.
        choice: What the toolbar chose.
        ends: Data set indices of the images that lines join with the current image; its neighbors if None.
    """
    layout, shown, other = choice.layout, choice.shown, choice.other
    grid = layout.grid(bench.run, choice.frame)
    if layout.is_grid and grid is None:
        _offer_grid(choice)
        return
    places = [st.container()] if other is None else st.columns(2, gap="small")
    with places[0]:
        show_map(shown, choice.color, f"{layout.title}, {bench.frame_words}", KEY, choice.hidden,
                 layout=layout.draw(shown), grid=grid, current=bench.focus, ends=ends, most=LINES, legend_below=True,
                 placed=[] if grid is not None else placed_images(shown), linked=other is not None)
    if other is not None:
        colors = colorings(other)
        with places[1]:
            show_map(other, colors.get(choice.color.label, next(iter(colors.values())))(),
                     f"Second map, {frame_words(other.name, other.run)}", SECOND, choice.hidden, current=bench.focus,
                     most=LINES, legend_below=True, placed=placed_images(other), linked=True)


def _offer_grid(choice: MapChoice) -> None:
    """Show the button that computes the grid of a map."""
    st.info("This map has no grid yet. The grid is computed once in the background and kept with the run; it takes "
            "seconds.", icon=":material/lightbulb:")
    request_analysis(choice.shown.run, plan_analysis(Grid, source=choice.layout.source, frame=choice.frame),
                     "Compute grid", "grid-compute", primary=True)


def placed_images(shown: MapFrame) -> list[dict[str, Any]]:
    """List the positions and names of the new images that were placed on a layout."""
    placed: list[dict[str, Any]] = []
    for analysis in finished_analyses(shown.run, NewImages):
        spec = analysis.spec()
        if (spec.source, spec.frame) == (shown.map_id, shown.name):
            result = load_result(shown.run, analysis.id)
            assert isinstance(result, Placed)
            placed += [{"at": position, "word": name}
                       for position, name in zip(result.positions.tolist(), result.names, strict=True)]
    return placed


def shown_images(choice: MapChoice) -> Array:
    """Return the data set indices of the map's points in their order, (n,)."""
    grid = choice.layout.grid(choice.shown.run, choice.frame)
    indices = choice.shown.projection.indices if grid is None else grid.indices
    return visible_images(indices, choice.hidden)


def show_facts(choice: MapChoice) -> None:
    """Say in one line what the map shows and how far it can be trusted."""
    shown = choice.shown
    show_excluded(shown.dataset, shown.projection.indices, KEY)
    grid = choice.layout.grid(shown.run, choice.frame)
    if grid is not None:
        low, high = seam_range(grid) or (0.0, 0.0)
        st.caption(f"{len(grid.indices):,} images in {grid.rows} rows and {grid.columns} columns.",
                   help="The seam between two images is dark if they are close in the embedding and bright yellow if "
                        f"they are far apart, from {low:.2f} to {high:.2f} in Euclidean distance. Bright lines "
                        "separate groups of similar images. Positions and areas carry no units.")
        return
    text, hint = _words_of_map(choice)
    st.caption(text, help=hint)


def _words_of_map(choice: MapChoice) -> tuple[str, str]:
    """Return what a map shows, and what its positions mean."""
    shown, drawn, total = choice.shown, len(choice.shown.projection.indices), len(choice.shown.dataset)
    trust = np.nan if shown.is_quick else np.nanmean(shown.projection.trustworthiness[shown.frame])
    kept = "" if np.isnan(trust) else f" Trustworthiness {100 * trust:.1f} %."
    part = "" if drawn == total else f"{drawn:,} of {total:,} images. "
    if shown.is_large:
        sample = f"A sample of {MOST_DRAWN:,} of" if drawn > MOST_DRAWN else "All"
        part = f"{sample} {drawn:,} images, as points without thumbnails. "
    if part and shown.is_quick:
        part = f"A quick map of the {drawn:,} images stored for every epoch, of {total:,}. "
    hint = UNITS if shown.is_quick else f"{distortion_words(shown)} {UNITS}"
    hint += " Lines lead to the neighbors of the current image."
    if choice.layout.moves:
        hint += " " + MOVING_WORDS
    if choice.layout.moves and shown.is_quick:
        return f"Each image lies at the mean position of its {shown.neighbors.shape[1]} neighbors at this epoch.", hint
    return f"{part}Click an image; Shift and drag to select.{kept}", hint
