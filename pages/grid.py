"""Grid: a map with every image in a cell of its own.

Seams are colored by the distance between adjacent images.
"""

from dataclasses import replace

import numpy as np
import streamlit as st

from pages.parts.base.address import choice_from_address, write_address
from pages.parts.base.analyses import frame_words, load_result, request_analysis
from pages.parts.base.run_picker import pick_run
from pages.parts.base.selection import selection
from pages.parts.base.user_errors import show_user_errors
from pages.parts.components.image_grid import grid_layout, seam_range
from pages.parts.components.map_content import Color
from pages.parts.components.scatter import scatter
from pages.parts.kit.downloads import Download, image_list, share
from pages.parts.map.choosing import new_map_menu, pick_map
from pages.parts.map.coloring import pick_color
from pages.parts.map.frame import MapFrame, load_map
from pages.parts.map.images import nearest_images, pick_clicked, picked_image, selected_images
from udml_core.analyses import ImageGrid, analysis_at, plan_analysis
from udml_core.runs import Run


def color_in_order_of(grid: ImageGrid, shown: MapFrame, color: Color) -> Color:
    """Return the map's colors in the order of the grid's images."""
    rows = np.searchsorted(shown.projection.indices, grid.indices)
    return replace(color, values=np.asarray(color.values)[rows])


@st.fragment
@show_user_errors()
def explore(run: Run, map_id: str, frame: int, grid_id: str) -> None:
    """Show the grid, the current image and the selection."""
    shown, grid = load_map(run, map_id, frame), load_result(run, grid_id)
    assert isinstance(grid, ImageGrid)
    color = color_in_order_of(grid, shown, pick_color(shown, "Border color"))
    selected = selection(shown.dataset)
    size = f"{len(grid.indices):,} images in {grid.rows} rows and {grid.columns} columns"
    clicks = [scatter(shown.dataset, grid_layout(grid, grid_id), color, selected, size, "grid", height=720, grid=grid)]
    low, high = seam_range(grid) or (0.0, 0.0)
    st.caption(f"{size}. The seam between two images is dark if they are close in the embedding and bright yellow if "
               f"they are far apart, from {low:.2f} to {high:.2f} in Euclidean distance. Bright lines separate groups "
               "of similar images. Positions and areas carry no units.")
    current = picked_image(shown)
    if current is not None:
        clicks.append(nearest_images(shown, current, "anywhere on the grid", "grid-near"))
    clicks.append(selected_images(shown.dataset, selected, "grid-selected"))
    ids = selected.ids if len(selected.ids) else grid.indices
    share([Download("Selection as a CSV file", "selection.csv", "text/csv",
                    lambda: image_list(shown.dataset, ids))], "grid")
    pick_clicked(clicks)


def pick_embedding(frames: tuple[str, ...]) -> str:
    """Choose which of the map's embeddings the grid shows; the address holds it."""
    default = frames[-1]
    wanted = choice_from_address("moment", frames, default)
    name = st.selectbox("Embedding", frames, frames.index(wanted), format_func=frame_words, key="grid-moment")
    write_address("moment", name, default)
    return name


st.title("Grid")
with show_user_errors():
    run = pick_run()
    if run is not None:
        left, middle, right = st.columns([4, 2, 1.2], vertical_alignment="bottom")
        with left:
            source = pick_map(run)
        with right:
            new_map_menu(run)
        if source is not None:
            frames = load_map(run, source).projection.frames
            with middle:
                name = pick_embedding(frames)
            spec = plan_analysis(kind="grid", source=source, frame=name)
            if analysis_at(run, spec).is_done():
                explore(run, source, frames.index(name), spec.id)
            else:
                st.info("This map has no grid yet. The grid is computed once in the background and kept with the run; "
                        "it takes seconds for a few thousand images and a minute for 5,000.",
                        icon=":material/lightbulb:")
                request_analysis(run, spec, "Compute grid", "grid-compute", primary=True)
