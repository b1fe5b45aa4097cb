"""A map snapped to a grid: every image in a cell of its own, seams as bright as neighbors are truly apart."""

from dataclasses import replace

import numpy as np
import streamlit as st

from pages.parts.base.address import choice_from_address, write_address
from pages.parts.base.analyses import frame_words, load_result, request_analysis
from pages.parts.base.run_picker import pick_run
from pages.parts.base.selection import selection
from pages.parts.base.user_errors import show_user_errors
from pages.parts.components.scatter import Color, grid_layout, scatter
from pages.parts.kit.downloads import Download, image_list, share
from pages.parts.map.shown_map import (
    Shown,
    go_to,
    load_map,
    nearest_images,
    new_map,
    pick_color,
    pick_map,
    picked_image,
    selected_images,
)
from udml_core.analyses import AnalysisSpec, ImageGrid, analysis_at, plan_analysis
from udml_core.runs import find_run, runs_folder


def in_order_of(grid: ImageGrid, shown: Shown, color: Color) -> Color:
    """The same colours for the grid's images, which may be ordered differently from the map's."""
    rows = np.searchsorted(shown.projection.indices, grid.indices)
    return replace(color, values=np.asarray(color.values)[rows])


@st.fragment
@show_user_errors()
def explore(run_id: str, map_id: str, frame: int, grid_id: str) -> None:
    """The grid, what is picked and what is selected."""
    run = find_run(run_id, runs_folder())
    shown, grid = load_map(run, map_id, frame), load_result(run, grid_id)
    assert isinstance(grid, ImageGrid)
    color = in_order_of(grid, shown, pick_color(shown, "Frame the images by"))
    held = selection(shown.dataset)
    words = f"{len(grid.indices):,} images in {grid.rows} rows and {grid.columns} columns"
    clicks = [scatter(shown.dataset, grid_layout(grid, grid_id), color, held, words, "grid", height=720, grid=grid)]
    seams = np.concatenate([grid.right[np.isfinite(grid.right)], grid.down[np.isfinite(grid.down)]])
    low, high = np.percentile(seams, [2, 98]) if len(seams) else (0, 0)
    st.caption(f"{words}. A seam between two images is dark where they are near in the embedding and bright yellow "
               f"where they are far apart: {low:.2f} to {high:.2f} in Euclidean distance. A bright line is a true "
               "border, a dark region one kind of image. Positions and areas carry no units.")
    picked = picked_image(shown)
    if picked is not None:
        clicks.append(nearest_images(shown, picked, "wherever they lie on the grid", "grid-near"))
    clicks.append(selected_images(shown.dataset, held, "grid-selected"))
    chosen_ids = held.ids if len(held.ids) else grid.indices
    share([Download("Selection as a list", "selection.csv", "text/csv",
                    lambda: image_list(shown.dataset, chosen_ids))], "grid")
    go_to(clicks)


st.title("Grid")
with show_user_errors():
    run = pick_run()
    if run is not None:
        left, middle, right = st.columns([4, 2, 1.2], vertical_alignment="bottom")
        with left:
            source = pick_map(run)
        with right:
            new_map(run)
        if source is not None:
            frames = load_map(run, source, 0).projection.frames
            with middle:
                usual = frames[-1]
                name = st.selectbox("Moment", frames, frames.index(choice_from_address("moment", list(frames), usual)),
                                    format_func=frame_words, key="grid-moment")
                write_address("moment", name, usual)
            spec: AnalysisSpec = plan_analysis(kind="grid", source=source, frame=name)
            if analysis_at(run, spec).is_done():
                explore(run.id, source, frames.index(name), spec.id)
            else:
                st.info("This map is not snapped to a grid yet. It is done once, in the background, and kept with the "
                        "run: seconds for a few thousand images, a minute for 5,000.", icon=":material/lightbulb:")
                request_analysis(run, spec, "Snap to a grid", "grid-compute", primary=True)
