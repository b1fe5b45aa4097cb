"""Grid: a map with every image in a cell of its own.

Seams are colored by the distance between adjacent images.
"""

import streamlit as st

from pages.parts.draw.run_header import header_place, run_header
from pages.parts.maps.choosing import announce_maps, pick_map
from pages.parts.maps.coloring import pick_color
from pages.parts.maps.content import Color
from pages.parts.maps.excluding import excluded_images, visible_images
from pages.parts.maps.frame import MapFrame, load_map
from pages.parts.maps.image_grid import seam_range
from pages.parts.maps.images import follow_click, pick_clicked, picked_image
from pages.parts.maps.new_map import new_map_menu
from pages.parts.maps.panel import side_panel
from pages.parts.maps.scatter import show_map
from pages.parts.shell.address import choose_in_box
from pages.parts.shell.analyses import load_result, request_analysis, show_analysis_progress
from pages.parts.shell.empty_state import offer_example
from pages.parts.shell.run_picker import pick_run
from pages.parts.shell.selection import selection
from pages.parts.shell.user_errors import fragment, show_user_errors
from udml_core.runs import Run
from udml_core.runs.analyses import ImageGrid, analysis_at, plan_analysis
from udml_core.runs.analyses.kinds.grid import Grid
from udml_core.runs.search import frame_words


def show_grid(shown: MapFrame, grid_id: str, color: Color) -> None:
    """Show the grid, and the panel with the current image and the selection beside it."""
    grid = load_result(shown.run, grid_id)
    assert isinstance(grid, ImageGrid)
    hidden = excluded_images(shown.dataset)
    follow_click("grid", visible_images(grid.indices, hidden))
    selected, current = selection(shown.dataset), picked_image(shown)
    left, right = st.columns([7, 3], gap="small")
    with left:
        clicks = [show_map(shown, color, f"Grid of {grid.rows} rows and {grid.columns} columns", "grid", hidden,
                           grid=grid, current=current)]
    with right:
        clicks.append(side_panel(shown, selected, current, "anywhere on the grid", "grid"))
    low, high = seam_range(grid) or (0.0, 0.0)
    st.caption(f"{len(grid.indices):,} images in {grid.rows} rows and {grid.columns} columns. The seam between two "
               "images is dark if they are close in the embedding and bright yellow if they are far apart, from "
               f"{low:.2f} to {high:.2f} in Euclidean distance. Bright lines separate groups of similar images. "
               "Positions and areas carry no units.")
    pick_clicked(clicks)


def pick_embedding(run: Run, frames: tuple[str, ...]) -> str:
    """Choose which of the map's embeddings the grid shows; the address holds it."""
    default = frames[-1]
    if len({frame_words(frame, run) for frame in frames}) == 1:
        return default  # frozen features are the same before and after
    return choose_in_box("Embedding", "moment", {frame: frame_words(frame, run) for frame in frames}, default,
                         key="grid-moment", label_visibility="collapsed", width=180)


@fragment
def explore(run: Run) -> None:
    """Show the toolbar and the grid."""
    header = header_place()
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="map-toolbar"):
        source = pick_map(run, width=240)
        if source is not None:
            frames = load_map(run, source).projection.frames
            name = pick_embedding(run, frames)
            run_header(run, frame_words(name, run), header)
            shown = load_map(run, source, frames.index(name))
            color = pick_color(shown, "Border color", 220)
        new_map_menu(run)
    if source is None:
        run_header(run, place=header)
        offer_example()
        return
    spec = plan_analysis(Grid, source=source, frame=name)
    if analysis_at(run, spec).is_done():
        show_grid(shown, spec.id, color)
    else:
        st.info("This map has no grid yet. The grid is computed once in the background and kept with the run; it takes "
                "seconds.", icon=":material/lightbulb:")
        request_analysis(run, spec, "Compute grid", "grid-compute", primary=True)
        offer_example()
    announce_maps(run, source)


def draw() -> None:
    """Draw the view."""
    with show_user_errors():
        run = pick_run()
        if run is not None:
            explore(run)
            show_analysis_progress(run)
