"""The map or grid of a run, alone or beside a second one, with a line on how far it can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.runs.analyses import ImageGrid, Placed, finished_analyses
from udml_core.runs.analyses.kinds.placed import NewImages
from udml_core.runs.examples import point_of
from udml_core.runs.search import SCOPE_WORDS, frame_words

from ..maps.choosing import map_specs
from ..maps.coloring import colorings
from ..maps.excluding import show_excluded, visible_images
from ..maps.frame import UNITS, MapFrame, distortion_words
from ..maps.grids import offer_grid
from ..maps.image_grid import seam_range
from ..maps.images import follow_click
from ..maps.scatter import Ring, show_map
from ..shell.analyses import load_result
from ..shell.run_status import escaped
from .toolbar import MOST_DRAWN, MapChoice
from .workbench import Workbench

KEY, SECOND = "explore-map", "explore-map2"
MOVING_WORDS = ("The positions $y$ are from the map after training. At an earlier epoch an image is drawn at the mean "
                r"position of its neighbors in that epoch's embedding, $x = \frac{1}{k}\sum_i y_i$, so an image whose "
                "neighbors belong to several clusters lies between them.")
LINES = 10
"""Number of lines from the current image to its neighbors."""


def follow_clicks(choice: MapChoice) -> bool:
    """Make an image that was just clicked on a map the current image; return whether one was."""
    return any([follow_click(KEY, choice.shown.dataset),
                choice.other is not None and follow_click(SECOND, choice.other.dataset)])


def draw_maps(bench: Workbench, choice: MapChoice, marks: Sequence[Ring] | None = None) -> None:
    """Draw the map or grid, and the second map beside it, with the current image marked.

    Args:
        bench: The workbench.
        choice: What the toolbar chose.
        marks: Images that rings and lines mark; the current image and its neighbors if None.
    """
    layout, shown, other, grid = choice.layout, choice.shown, choice.other, choice.grid
    places = [st.container()] if other is None else st.columns(2, gap="small")
    with places[0]:
        show_map(shown, choice.color, f"{layout.title}, {bench.frame_words}", KEY, choice.hidden,
                 layout=layout.draw(shown), grid=grid, current=bench.focus, marks=marks, most=LINES, legend_below=True,
                 placed=[] if grid is not None else placed_images(shown), linked=other is not None,
                 ahead=layout.following(shown, choice.frame))
    if other is not None:
        colors = colorings(other)
        with places[1]:
            show_map(other, colors.get(choice.color.label, next(iter(colors.values())))(),
                     f"Second {'grid' if choice.other_grid else 'map'}, {frame_words(other.name, other.run)}", SECOND,
                     choice.hidden, grid=choice.other_grid, current=bench.focus, most=LINES, legend_below=True,
                     placed=[] if choice.other_grid is not None else placed_images(other), linked=True)


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
    return _visible(choice.shown, choice.grid, choice.hidden)


def _visible(shown: MapFrame, grid: ImageGrid | None, hidden: Array) -> Array:
    return visible_images(shown.projection.indices if grid is None else grid.indices, hidden)


def show_facts(choice: MapChoice) -> None:
    """Say in one line what the map shows and how far it can be trusted."""
    shown = choice.shown
    show_excluded(shown.dataset, shown.projection.indices, KEY)
    if choice.grid is not None:
        _grid_facts(choice.grid, choice.color.label)
        return
    if choice.layout.is_grid:
        st.caption("The map stays until its grid is computed.", width="content")
        offer_grid(shown.run, shown.map_id, shown.name)
        return
    text, hint = _words_of_map(choice)
    st.caption(text, help=hint)
    if point := point_of(shown.run):
        st.caption(f"**This example:** {escaped(point)}")


def _grid_facts(grid: ImageGrid, color: str) -> None:
    """Say what the lines and colors of a grid mean."""
    low, high = seam_range(grid) or (0.0, 0.0)
    st.caption(f"Similar images are neighbors in the grid. Strip or frame: {color}. Line between two images: dark if "
               "they are close in the embedding, yellow if far apart.",
               help=f"{len(grid.indices):,} images in {grid.rows} rows and {grid.columns} columns. The lines range "
                    f"from {low:.2f} to {high:.2f} in Euclidean distance. Bright lines separate groups of similar "
                    "images. Positions and areas carry no units.")


def _words_of_map(choice: MapChoice) -> tuple[str, str]:
    """Return what a map shows, and what its positions mean."""
    shown, drawn, total = choice.shown, len(choice.shown.projection.indices), len(choice.shown.dataset)
    trust = np.nan if shown.is_quick else np.nanmean(shown.projection.trustworthiness[shown.frame])
    kept = "" if np.isnan(trust) else f" Trustworthiness {100 * trust:.1f} %."
    spec = map_specs(shown.run).get(shown.map_id)
    scope = f": the {SCOPE_WORDS[spec.scope]}" if spec is not None and spec.scope != "all" else ""
    part = "" if drawn == total else f"{drawn:,} of the {total:,} images{scope}. "
    if shown.is_large:
        sample = f"A sample of {MOST_DRAWN:,} of" if drawn > MOST_DRAWN else "All"
        part = f"{sample} {drawn:,} images, as points without thumbnails. "
    if part and shown.is_quick:
        part = f"{drawn:,} of the {total:,} images: each epoch is stored for these. "
    hint = UNITS if shown.is_quick else f"{distortion_words(shown)} {UNITS}"
    hint += " Lines lead to the neighbors of the current image."
    if choice.layout.moves:
        hint += " " + MOVING_WORDS
    if choice.layout.moves and shown.is_quick:
        left_out = choice.layout.count_left_out(shown)
        rest = f" {left_out:,} images are left out: their embedding is stored after training only." if left_out else ""
        neighbors = shown.neighbors.shape[1]
        return f"Each image lies at the mean position of its {neighbors} neighbors at this epoch.{rest}", hint
    return f"{part}Click an image; the lasso selects several.{kept}", hint
