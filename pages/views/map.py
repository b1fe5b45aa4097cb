"""Map: the embedding in two dimensions through training, beside a second map."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from pages.parts.curves.similarities import similarity_pictures, similarity_words
from pages.parts.data.columns import choose_values
from pages.parts.draw.downloads import Download, image_list, share
from pages.parts.draw.figures import curve, curve_names
from pages.parts.draw.gallery import clicked_tile
from pages.parts.draw.run_header import header_place, run_header
from pages.parts.maps.choosing import announce_maps, carry_to_map, pick_map, pick_map_frame
from pages.parts.maps.coloring import colorings, pick_color, sample_clusters
from pages.parts.maps.columns import upload_columns
from pages.parts.maps.content import Color
from pages.parts.maps.excluding import excluded_images, visible_images
from pages.parts.maps.frame import UNITS, MapFrame, show_distortion
from pages.parts.maps.images import announce_missing, follow_click, pick_clicked, picked_image
from pages.parts.maps.new_map import new_map_menu
from pages.parts.maps.panel import side_panel
from pages.parts.maps.scatter import map_file, show_map
from pages.parts.maps.second_map import changed_neighborhoods, pick_comparison, pick_second_map
from pages.parts.maps.uncertainty import LABEL, certain_and_uncertain, noise_slider
from pages.parts.shell.address import number_from_address
from pages.parts.shell.analyses import load_result, show_analysis_progress
from pages.parts.shell.empty_state import offer_example
from pages.parts.shell.run_picker import pick_run
from pages.parts.shell.selection import Selection, selection
from pages.parts.shell.user_errors import fragment, show_user_errors
from udml_core.base.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.data.sources.listing import ENDINGS
from udml_core.exploration.clusters import cluster_summary
from udml_core.exploration.map_values import hide_rest
from udml_core.runs import Run
from udml_core.runs.analyses import Placed, find_analysis, finished_analyses
from udml_core.runs.analyses.kinds.placed import NewImages
from udml_core.runs.search import frame_words
from udml_core.work import jobs

MOST_DRAWN = 1_000_000  # points that the browser gets
CURVES = ("sample map@r", "loss", "neighbor stability")


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


def place_images(shown: MapFrame) -> None:
    """Show the menu that places uploaded images on the map, in the background."""
    with st.popover("Place new images", icon=":material/add_photo_alternate:"):
        st.caption(f"This run's model embeds the images and places them on this map of the embedding "
                   f"({frame_words(shown.name, shown.run)}). The existing points do not move.")
        files = st.file_uploader("Images", type=sorted(ending[1:] for ending in ENDINGS), accept_multiple_files=True,
                                 key="place-files")
        if st.button("Place images", disabled=not files, icon=":material/add_location:", key="place"):
            with show_user_errors():
                jobs.place_images(shown.run, find_analysis(shown.run, shown.map_id), shown.name,
                                  [(file.name, file.getvalue()) for file in files])
                st.rerun()


def map_title(shown: MapFrame) -> str:
    """Return the data set and the embedding in words."""
    return f"{shown.run.spec().dataset_title}, {frame_words(shown.name, shown.run)}"


def hidden_images(dataset: Dataset, indices: Array) -> Array:
    """Return the indices of the images that the view excludes and of the images without the chosen values.

    Of more images than the browser draws, the images outside a sample are hidden as well. The button of the columns is
    drawn where this is called.
    """
    allowed = choose_values(dataset)
    hidden = excluded_images(dataset)
    if allowed is not None:
        hidden = np.union1d(hidden, np.flatnonzero(~allowed))
    return hide_rest(indices, hidden, MOST_DRAWN)


def show_size(shown: MapFrame) -> None:
    """Say in one sentence what a map of very many images leaves out."""
    count = len(shown.projection.indices)
    if shown.is_large:
        sample = f"draws a sample of {MOST_DRAWN:,} of" if count > MOST_DRAWN else "draws"
        st.caption(f"This map {sample} {count:,} images as points without thumbnails; click a point to see its image "
                   "and to search for its neighbors.")


def show_maps(shown: MapFrame, other: MapFrame | None, color: Color, selected: Selection, hidden: Array) -> int | None:
    """Draw one map or two without the hidden images, with the panel beside them."""
    for key, frame in (("map", shown), ("map2", other)):
        if frame is not None:
            follow_click(key, visible_images(frame.layout.indices, hidden))
    current = picked_image(shown)
    columns = st.columns([7, 3] if other is None else [4, 4, 3], gap="small")
    clicks = []
    for column, key, frame in zip(columns, ("map", "map2"), (shown, other), strict=False):
        if frame is not None:
            if frame is other:
                colors = colorings(frame)
                color = colors.get(color.label, next(iter(colors.values())))()
            with column:
                clicks.append(show_map(frame, color, f"Map of {map_title(frame)}", key, hidden, current=current,
                                       placed=placed_images(frame), linked=other is not None))
    with columns[-1]:
        clicks.append(side_panel(shown, selected, current, frame_words(shown.name, shown.run), "map"))
    return clicked_tile(clicks)


def epoch_curves(shown: MapFrame) -> None:
    """Show the clusters of a map's epoch, and the training curves.

    A cursor in the curves marks the epoch. Nothing is computed before the user opens this part.
    """
    if shown.epoch is None:
        return
    part = st.expander("Training curves and clusters at this epoch", icon=":material/show_chart:", key="map-curves",
                       on_change="rerun")
    if not part.open:
        return
    with part:
        _curves_and_clusters(shown, shown.epoch)


def _curves_and_clusters(shown: MapFrame, epoch: int) -> None:
    rows = shown.run.metrics()[0]
    clusters = sample_clusters(shown.run, epoch)
    labels = None if shown.dataset.labels is None else shown.dataset.labels[shown.run.sample_indices()]
    numbers = cluster_summary(clusters, labels)
    purity = "" if numbers.purity is None else f", purity {100 * numbers.purity:.1f} %"
    st.markdown(f"**Clusters at this epoch:** {numbers.count} clusters, {numbers.singletons} singletons, coverage "
                f"{100 * numbers.coverage:.1f} % of the sample{purity}.")
    names = [name for name in CURVES if name in curve_names(rows)]
    for column, name in zip(st.columns(len(CURVES)), names, strict=False):
        with column:
            curve(name, {"run": rows}, f"map-{name}", epoch)


def pair_similarities(shown: MapFrame) -> None:
    """Show the similarities of positive and negative pairs at a map's epoch, if any."""
    numbers = shown.run.epoch_numbers()
    named = {"initial": numbers[0], "final": shown.run.kept_epoch()} if numbers else {}
    epoch = named.get(shown.name) if shown.epoch is None else shown.epoch
    if epoch is not None:
        part = st.expander("Similarities of positive and negative pairs", icon=":material/join_inner:",
                           key="map-similarities", on_change="rerun")
        if part.open:
            with part:
                similarity_pictures(shown.run, epoch, "map-near")
                st.caption(similarity_words([shown.run]))


def show_exports(shown: MapFrame, color: Color, selected: Selection) -> None:
    """Show the menus that add images and columns to the map, and the downloads."""
    ids = selected.ids if len(selected.ids) else shown.projection.indices
    with st.container(horizontal=True):
        if shown.run.spec().encoder.reads_images:
            place_images(shown)
        upload_columns(shown.dataset)
        share([Download("Map as an HTML file", "map.html", "text/html",
                        lambda: map_file(shown.dataset, shown.layout, color, selected, map_title(shown), UNITS)),
               Download("Selection as a CSV file", "selection.csv", "text/csv",
                        lambda: image_list(shown.dataset, ids))], "map")


@fragment
def explore(run: Run) -> None:
    """Show the toolbar, the map with its panel, and further views below."""
    header = header_place()
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="map-toolbar"):
        carry_to_map(run)
        map_id = pick_map(run, width=170)
        if map_id is not None:
            with st.container(width="stretch", key="map-cursor"):
                shown = pick_map_frame(run, map_id, "frame", "Embedding")
            run_header(run, frame_words(shown.name, run), header)
            color = pick_color(shown, "Color", 190)
            comparison = pick_comparison(len(shown.projection.frames), 165)
            hidden = hidden_images(shown.dataset, shown.projection.indices)
        new_map_menu(run)
    if map_id is None:
        run_header(run, place=header)
        offer_example()
        return
    if color.label == LABEL and shown.epoch is None:
        noise_slider(run)
    other = pick_second_map(comparison, shown)
    selected = selection(shown.dataset)
    clicks = [show_maps(shown, other, color, selected, hidden)]
    announce_missing(shown.dataset, int(number_from_address("picked", -1)), np.setdiff1d(
        shown.projection.indices, hidden))
    announce_maps(run, map_id)
    show_size(shown)
    show_distortion(shown)
    st.caption(UNITS)
    epoch_curves(shown)
    pair_similarities(shown)
    if color.label == LABEL:
        clicks.append(certain_and_uncertain(shown.run, shown.dataset, shown.projection.indices, color))
    if other is not None:
        clicks.append(changed_neighborhoods(shown, other))
    show_exports(shown, color, selected)
    pick_clicked(clicks)


def draw() -> None:
    """Draw the view."""
    with show_user_errors():
        run = pick_run()
        if run is not None:
            explore(run)
            show_analysis_progress(run)
