"""The panel beside a map or grid: the selected images with actions, and the current image with its neighbors."""

from __future__ import annotations

import streamlit as st

from udml_core.base.arrays import rows_of
from udml_core.runs import Run

from ..draw.downloads import image_list
from ..draw.gallery import clicked_tile, gallery, mark_of, selectable_gallery, tile_of
from ..draw.palette import CLASSES, color_legend
from ..shell.address import join_indices
from ..shell.cached import load_retrieval
from ..shell.selection import PARAMETER, Selection, select
from ..shell.undo import undo_buttons
from ..shell.views import view_link
from .excluding import PARAMETER as EXCLUDED
from .excluding import exclude_button, show_excluded
from .frame import MapFrame
from .scatter import HEIGHT

MOST_TILES = 3000
SEARCHED = 10
"""Neighbors that are searched for on a large map."""
MOST_SEARCHED = 24
"""Images that one search can combine."""
HINT = ("**Click** {thing} to see its neighbors here. **Shift and drag** around {things}, or click a name in the "
        "legend, to select images and label, search or exclude them. **Right-click** an image to search with it.")
KEYS = "Keys on the {key}: arrows move, + and − zoom, 0 shows all, L lasso, B box, P pan, Q search, Esc clear."


def side_panel(shown: MapFrame, selected: Selection, current: int | None, where: str, key: str) -> int | None:
    """Show the panel, which scrolls at the height of the map.

    Args:
        shown: The map.
        selected: The data set's selection.
        current: Data set index of the current image.
        where: Words that say which embedding the neighbors are from.
        key: Prefix of the widgets' keys.

    Returns:
        The data set index of the image that was clicked just now, or None.
    """
    clicks = []
    with st.container(height=HEIGHT, border=True, key=f"{key}-panel"):
        with st.container(horizontal=True, gap="small"):
            undo_buttons(shown.dataset, key, parameters=(EXCLUDED,))
        show_excluded(shown.dataset, shown.projection.indices, key)
        if len(selected.ids):
            clicks.append(selected_images(shown, selected, f"{key}-selected"))
        if current is not None:
            clicks.append(nearest_images(shown, current, where, f"{key}-near"))
        if not len(selected.ids) and current is None:
            thing, things = ("an image", "images") if key == "grid" else ("a point", "points")
            st.markdown(HINT.format(thing=thing, things=things))
            st.caption(KEYS.format(key=key))
    return clicked_tile(clicks)


def selected_images(shown: MapFrame, selected: Selection, key: str) -> int | None:
    """Show the selected images with what can be done with them.

    Returns:
        The data set index of the image that was opened just now, or None.
    """
    dataset, ids = shown.dataset, selected.ids
    st.markdown(f"**{len(ids):,} images selected**")
    _show_actions(shown.run, shown, selected, key)
    if len(ids) > MOST_TILES:
        st.caption(f"Only the first {MOST_TILES:,} images are shown.")
    tiles = [tile_of(dataset, index) for index in ids[:MOST_TILES].tolist()]
    return selectable_gallery(dataset, tiles, "Selected images", key, selected, 56, height=260)


def _show_actions(run: Run, shown: MapFrame, selected: Selection, key: str) -> None:
    dataset, ids = shown.dataset, selected.ids
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        view_link("labels", label="Label", icon=":material/new_label:", width="content",
                     help="Assign a class to the selected images.",
                     query_params={"run": run.id, PARAMETER: st.query_params.get(PARAMETER, "")})
        first = "" if len(ids) <= MOST_SEARCHED else f" The first {MOST_SEARCHED} are used."
        view_link("retrieval", label="Search", icon=":material/image_search:", width="content",
                     help=f"Search with the mean of the selected images.{first}",
                     query_params={"run": run.id, "add": join_indices(ids[:MOST_SEARCHED].tolist())})
        exclude_button(dataset, ids, f"{key}-exclude")
        st.download_button("CSV", lambda: image_list(dataset, ids), "selection.csv", "text/csv", type="tertiary",
                           icon=":material/download:", on_click="ignore", key=f"{key}-csv",
                           help="Save index, name and class of the selected images.")
        st.button("Clear", icon=":material/close:", key=f"{key}-clear", type="tertiary",
                  on_click=select, args=(dataset.fingerprint, ids[:0]),
                  help="Select no image. Esc on the map does the same.")


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
    neighbors = _neighbors(shown, current)
    dataset = shown.dataset
    tiles = [tile_of(dataset, current, "query", "current"),
             *(tile_of(dataset, index, mark_of(dataset, index, current), f"{rank} · {_badge(shown, index)}")
               for rank, index in enumerate(neighbors, 1))]
    st.markdown(f"**{dataset.caption(current)}** and its {len(neighbors)} nearest neighbors, {where}")
    with st.container(horizontal=True, gap="small"):
        for page, label, icon, parameter, words in (
                ("retrieval", "Search", "image_search", "add", "Search all images with this image."),
                ("neighborhoods", "Neighborhood", "hub", "picked", "Show its linear neighborhood."),
                ("instances", "Instance", "fingerprint", "picked", "Show instance discrimination.")):
            view_link(page, label=label, icon=f":material/{icon}:", width="content", help=words,
                         query_params={"run": shown.run.id, parameter: str(current)})
    clicked = gallery(dataset, tiles, f"The current image and its nearest neighbors in the embedding, {where}", key, 68)
    color_legend("current image", *(CLASSES if dataset.labels is not None else ()))
    return clicked


def _neighbors(shown: MapFrame, current: int) -> list[int]:
    """Return the indices of an image's nearest neighbors: as stored with the map, or searched on a large map."""
    if shown.is_large:
        return [hit.index for hit in load_retrieval(shown.run).search_item(current, SEARCHED, shown.name)]
    row = rows_of(shown.projection.indices, current)
    found: list[int] = shown.projection.indices[shown.neighbors[row]].tolist()
    return found


def _badge(shown: MapFrame, index: int) -> str:
    """Return an image's class, or its file name without classes; the class 8 must not read as a rank or a decimal."""
    name = tile_of(shown.dataset, index).badge
    return f"class {name}" if shown.dataset.labels is not None and name.isdecimal() else name
