"""Map: the embedding in two dimensions through training, beside a second map."""

import numpy as np
import streamlit as st

from pages.parts.base.address import number_from_address, write_address
from pages.parts.base.analyses import frame_words
from pages.parts.base.run_picker import pick_run
from pages.parts.base.selection import Selection, selection
from pages.parts.base.user_errors import show_user_errors
from pages.parts.components.map_content import Color
from pages.parts.components.map_file import map_file
from pages.parts.components.scatter import scatter
from pages.parts.components.slider import live_slider
from pages.parts.kit.downloads import Download, image_list, share
from pages.parts.map.choosing import new_map_menu, pick_map
from pages.parts.map.coloring import colorings, pick_color
from pages.parts.map.columns import upload_columns
from pages.parts.map.comparison import changed_neighborhoods
from pages.parts.map.frame import UNITS, MapFrame, load_map, show_distortion
from pages.parts.map.images import nearest_images, pick_clicked, picked_image, selected_images
from pages.parts.map.placing import place_images, placed_images
from pages.parts.map.second_map import pick_comparison, pick_second_map
from pages.parts.map.training import epoch_curves, pair_similarities
from pages.parts.map.uncertainty import LABEL, certain_and_uncertain
from udml_core.runs import Run


def pick_frame(run: Run, map_id: str, parameter: str, label: str, default: int = -1) -> MapFrame:
    """Choose one layout of a map with a slider; the address holds its position.

    Args:
        run: The run.
        map_id: The id of the map.
        parameter: Name in the address.
        label: The slider's label.
        default: Position of the layout at first; -1 for the last.
    """
    frames = load_map(run, map_id).projection.frames
    last = len(frames) - 1
    if last == 0:
        return load_map(run, map_id)
    start = default % len(frames)
    position = round(live_slider(label, 0, last, number_from_address(parameter, start, 0, last), 1,
                                 f"{parameter}-{map_id}", play=True,
                                 marks={0.0: frame_words(frames[0]), float(last): frame_words(frames[last])}))
    write_address(parameter, str(position), str(start))
    return load_map(run, map_id, position)


def map_title(shown: MapFrame) -> str:
    """Return the data set and the embedding in words."""
    return f"{shown.run.spec().dataset_title}, {frame_words(shown.name)}"


def draw_map(shown: MapFrame, key: str, color: Color, selected: Selection, linked: bool,
             current: int | None) -> int | None:
    """Draw a map with its title and its distortion.

    Args:
        shown: The map.
        key: The widget's key.
        color: The colors of the points.
        selected: The data set's selection.
        linked: Whether another map on the page shows the same selection.
        current: Data set index of the current image, which is marked with its neighbors.

    Returns:
        The data set index of the image that was clicked just now, or None.
    """
    title = map_title(shown)
    st.markdown(f"**{title}**")
    rows = np.flatnonzero(shown.projection.indices == (-1 if current is None else current))
    marks = [{"row": int(row), "word": "current", "lines": shown.neighbors[row].tolist()} for row in rows]
    description = f"Map of {title}, {len(shown.projection.indices)} images"
    clicked = scatter(shown.dataset, shown.layout, color, selected, description, key, marks=marks,
                      placed=placed_images(shown), linked=linked)
    show_distortion(shown)
    return clicked


def show_exports(shown: MapFrame, color: Color, selected: Selection) -> None:
    """Show the menus that add images and columns to the map, and the downloads."""
    ids = selected.ids if len(selected.ids) else shown.projection.indices
    with st.container(horizontal=True):
        place_images(shown)
        upload_columns(shown.dataset)
        share([Download("Map as an HTML file", "map.html", "text/html",
                        lambda: map_file(shown.dataset, shown.layout, color, selected, map_title(shown), UNITS)),
               Download("Selection as a CSV file", "selection.csv", "text/csv",
                        lambda: image_list(shown.dataset, ids))], "map")


@st.fragment
@show_user_errors()
def explore(run: Run, map_id: str, other_run: Run | None, other_map: str | None) -> None:
    """Show everything that depends on the embedding, the color or the selection."""
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    other = None
    with left:
        shown = pick_frame(run, map_id, "frame", "Embedding")
        if other_run and other_map:
            same_map = (other_run, other_map) == (run, map_id)
            other = pick_frame(other_run, other_map, "frame2", "Embedding of the second map", 0 if same_map else -1)
    with right:
        color = pick_color(shown, "Color")
    selected = selection(shown.dataset)
    current = picked_image(shown)
    clicks = []
    if other is None:
        clicks.append(draw_map(shown, "map", color, selected, False, current))
    else:
        other_colors = colorings(other)
        other_color = other_colors.get(color.label, next(iter(other_colors.values())))()
        left, right = st.columns(2)
        with left:
            clicks.append(draw_map(shown, "map", color, selected, True, current))
        with right:
            clicks.append(draw_map(other, "map2", other_color, selected, True, current))
    st.caption(UNITS)
    if current is not None:
        clicks.append(nearest_images(shown, current, frame_words(shown.name), "map-near"))
    epoch_curves(shown)
    pair_similarities(shown)
    if color.label == LABEL:
        clicks.append(certain_and_uncertain(shown.run, shown.dataset, shown.projection.indices, color))
    if other is not None:
        clicks.append(changed_neighborhoods(shown, other))
    clicks.append(selected_images(shown.dataset, selected, "map-selected"))
    show_exports(shown, color, selected)
    pick_clicked(clicks)


st.title("Map")
with show_user_errors():
    run = pick_run()
    if run is not None:
        row = st.columns([4, 2, 1.2], vertical_alignment="bottom")
        with row[0]:
            first_map = pick_map(run)
        with row[2]:
            new_map_menu(run)
        if first_map is not None:
            with row[1]:
                comparison = pick_comparison()
            match comparison:
                case "frame":
                    explore(run, first_map, run, first_map)
                case "run":
                    explore(run, first_map, *pick_second_map(run))
                case _:
                    explore(run, first_map, None, None)
