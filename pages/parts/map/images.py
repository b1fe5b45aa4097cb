"""Images below a map: the current image with its neighbors, and the selection."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import streamlit as st

from pages.parts.base.address import number_from_address, write_address
from pages.parts.base.selection import Selection
from pages.parts.components.gallery import clicked_tile, gallery, mark_of, selectable_gallery, tile_of
from pages.parts.map.frame import MapFrame
from udml_core.data.dataset import Dataset

MOST_TILES = 3000


def picked_image(shown: MapFrame) -> int | None:
    """Return the current image, which the address holds.

    Returns:
        The data set index; None if this map does not show the image.
    """
    current = int(number_from_address("picked", -1))
    return current if current in shown.projection.indices else None


def nearest_images(shown: MapFrame, current: int, where: str, key: str) -> int | None:
    """Show the current image with its nearest neighbors in the embedding.

    Args:
        shown: The map.
        current: Data set index of the current image.
        where: Words that say which neighbors these are.
        key: The widget's key.

    Returns:
        The data set index of the image that was clicked just now, or None.
    """
    row = int(np.searchsorted(shown.projection.indices, current))
    neighbors = shown.projection.indices[shown.neighbors[row]].tolist()
    dataset = shown.dataset
    tiles = [tile_of(dataset, current, "query", "current"),
             *(tile_of(dataset, index, mark_of(dataset, index, current), f"{rank}. {dataset.caption(index)}")
               for rank, index in enumerate(neighbors, 1))]
    st.markdown(f"**{dataset.caption(current)}** and its {len(neighbors)} nearest neighbors in the embedding, {where}")
    clicked = gallery(dataset, tiles, f"The current image and its nearest neighbors in the embedding, {where}", key, 84)
    st.page_link("pages/retrieval.py", label="Search all images with it", icon=":material/image_search:",
                 query_params={"run": shown.run.id, "add": str(current)})
    st.page_link("pages/neighborhoods.py", label="Show its linear neighborhood", icon=":material/hub:",
                 query_params={"run": shown.run.id, "picked": str(current)})
    st.page_link("pages/instances.py", label="Show instance discrimination", icon=":material/fingerprint:",
                 query_params={"run": shown.run.id, "picked": str(current)})
    return clicked


def selected_images(dataset: Dataset, selected: Selection, key: str) -> int | None:
    """Show the selected images, or how to select images.

    Returns:
        The data set index of the image that was opened just now, or None.
    """
    if not len(selected.ids):
        st.caption("Select images by drawing a lasso on the map (Shift and drag) or clicking a name in the legend; "
                   "they appear here. Click a point to see its nearest neighbors; right-click any image to search with "
                   "it. Keys on the map: arrows, + and −, 0, L, B, P, Q, Esc.")
        return None
    st.subheader(f"{len(selected.ids):,} images selected")
    if len(selected.ids) > MOST_TILES:
        st.caption(f"Only the first {MOST_TILES:,} images are shown.")
    tiles = [tile_of(dataset, index) for index in selected.ids[:MOST_TILES].tolist()]
    return selectable_gallery(dataset, tiles, "Selected images", key, selected)


def pick_clicked(clicks: Iterable[int | None]) -> None:
    """Make the image that was clicked in any of several views the current image."""
    clicked = clicked_tile(clicks)
    if clicked is not None:
        write_address("picked", str(clicked))
        st.rerun(scope="fragment")
