"""What stands below the map: curves at its epoch, and menus."""

from __future__ import annotations

import streamlit as st

from udml_core.data.sources.listing import ENDINGS
from udml_core.exploration.clusters import cluster_summary
from udml_core.runs.analyses import find_analysis
from udml_core.runs.search import frame_words
from udml_core.work import jobs

from ..curves.similarities import similarity_pictures, similarity_words
from ..draw.downloads import Download, image_list, share
from ..draw.figures import curve, curve_names
from ..maps.choosing import map_specs
from ..maps.coloring import sample_clusters
from ..maps.columns import upload_columns
from ..maps.frame import UNITS, MapFrame
from ..maps.scatter import map_file
from ..maps.uncertainty import LABEL, certain_and_uncertain
from ..shell.selection import Selection
from ..shell.user_errors import show_user_errors
from .toolbar import MapChoice

CURVES = ("sample map@r", "loss", "neighbor stability")


def show_menus(choice: MapChoice, selected: Selection) -> None:
    """Show the menus that add images and columns to the map, and the downloads."""
    shown = choice.shown
    ids = selected.ids if len(selected.ids) else shown.projection.indices
    if shown.run.spec().encoder.reads_images and shown.map_id in map_specs(shown.run):
        _place_images(shown)
    upload_columns(shown.dataset)
    share([Download("Map as an HTML file", "map.html", "text/html",
                    lambda: map_file(shown.dataset, choice.layout.draw(shown), choice.color, selected,
                                     f"{shown.run.spec().dataset_title}, {frame_words(shown.name, shown.run)}", UNITS)),
           Download("Selection as a CSV file", "selection.csv", "text/csv",
                    lambda: image_list(shown.dataset, ids))], "map")


def show_below(choice: MapChoice) -> list[int | None]:
    """Show the curves at the map's epoch, and what its color means.

    Returns:
        The data set indices of the images that were clicked just now.
    """
    shown, clicks = choice.shown, []
    _epoch_curves(choice)
    _pair_similarities(choice)
    if choice.color.label == LABEL:
        clicks.append(certain_and_uncertain(shown.run, shown.dataset, shown.projection.indices, choice.color))
    return clicks


def _place_images(shown: MapFrame) -> None:
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


def _epoch_curves(choice: MapChoice) -> None:
    """Show the clusters of the map's epoch, and the training curves.

    A cursor in the curves marks the epoch. Nothing is computed before the user opens this part.
    """
    if not choice.frame.isdecimal():
        return
    part = st.expander("Training curves and clusters at this epoch", icon=":material/show_chart:", key="map-curves",
                       on_change="rerun")
    if part.open:
        with part:
            _curves_and_clusters(choice.shown, int(choice.frame))


def _curves_and_clusters(shown: MapFrame, epoch: int) -> None:
    rows = shown.run.metrics()[0]
    clusters = sample_clusters(shown.run, epoch)
    labels = None if shown.dataset.labels is None else shown.dataset.labels[shown.run.sample_indices()]
    numbers = cluster_summary(clusters, labels)
    purity = "" if numbers.purity is None else f", purity {100 * numbers.purity:.1f} %"
    st.markdown(f"**Clusters at this epoch:** {numbers.count} clusters, {numbers.singletons} of one image; "
                f"{100 * numbers.coverage:.1f} % of the sample are in larger ones{purity}.")
    names = [name for name in CURVES if name in curve_names(rows)]
    for column, name in zip(st.columns(len(CURVES)), names, strict=False):
        with column:
            curve(name, {"run": rows}, f"map-{name}", epoch)


def _pair_similarities(choice: MapChoice) -> None:
    """Show the similarities of positive and negative pairs at the map's epoch, if any."""
    run = choice.shown.run
    numbers = run.epoch_numbers()
    named = {"initial": numbers[0], "final": run.kept_epoch()} if numbers else {}
    epoch = int(choice.frame) if choice.frame.isdecimal() else named.get(choice.frame)
    if epoch is not None:
        part = st.expander("Similarities of positive and negative pairs", icon=":material/join_inner:",
                           key="map-similarities", on_change="rerun")
        if part.open:
            with part:
                similarity_pictures(run, epoch, "map-near")
                st.caption(similarity_words([run]))
