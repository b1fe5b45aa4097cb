"""Images that a user excluded from the view of a map; the address holds them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.data import selections
from udml_core.data.dataset import Dataset
from udml_core.exploration.map_content import Color, Layout
from udml_core.exploration.map_values import keep_neighbors

from ..shell.address import write_address
from ..shell.selection import PREFIX, select
from ..shell.user_errors import show_user_errors

PARAMETER = "excluded"
NONE = np.zeros(0, dtype=np.int64)


def excluded_images(dataset: Dataset) -> Array:
    """Return the indices of the excluded images; none if the address names other or unknown images."""
    prefix, _, token = st.query_params.get(PARAMETER, "").partition(":")
    if not token or prefix != dataset.fingerprint[:PREFIX]:
        return NONE
    try:
        return selections.load_selection(token, len(dataset))
    except UserError:
        return NONE


def exclude_images(dataset: Dataset, ids: Array) -> None:
    """Exclude further images from view and clear the selection."""
    with show_user_errors():
        name = selections.store_selection(np.union1d(excluded_images(dataset), ids))
        write_address(PARAMETER, f"{dataset.fingerprint[:PREFIX]}:{name}")
        select(dataset.fingerprint, NONE)


def exclude_button(dataset: Dataset, ids: Array, key: str) -> None:
    """Show the button that excludes the selected images from view."""
    st.button("Exclude", icon=":material/visibility_off:", key=key, type="tertiary", on_click=exclude_images,
              args=(dataset, ids), help="Hide the selected images and fit the window to the rest.")


def show_excluded(dataset: Dataset, indices: Array, key: str) -> None:
    """Say how many images of a map are excluded from view, with a button that shows them.

    Args:
        dataset: The data set.
        indices: Data set indices of the map's images.
        key: Prefix of the button's key.
    """
    count = int(np.isin(indices, excluded_images(dataset)).sum())
    if count:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f"{count:,} images excluded from view")
            st.button("Show all", key=f"{key}-all", type="tertiary", on_click=write_address,
                      args=(PARAMETER, ""))


def visible_images(indices: Array, excluded: Array) -> Array:
    """Return the indices (m,) of a map's images that are drawn; all if none would be left."""
    visible: Array = indices[_visible(indices, excluded)]
    return visible


def _visible(indices: Array, excluded: Array) -> Array:
    """Return which of a map's images are drawn, (n,)."""
    kept: Array = ~np.isin(indices, excluded)
    return kept if kept.any() else ~kept


def without_excluded(layout: Layout, color: Color, excluded: Array) -> tuple[Layout, Color]:
    """Return a map without the excluded images; the window then fits the rest."""
    rest = visible_layout(layout, excluded)
    if rest is layout:
        return layout, color
    return rest, replace(color, values=np.asarray(color.values)[_visible(layout.indices, excluded)])


def visible_layout(layout: Layout, excluded: Array) -> Layout:
    """Return the positions of the images that are not excluded; the window then fits them."""
    kept = _visible(layout.indices, excluded)
    if kept.all():
        return layout
    neighbors = None if layout.neighbors is None else keep_neighbors(layout.neighbors, kept)
    return Layout(layout.indices[kept], layout.positions[kept], f"{layout.name} {(~kept).sum()}", None, neighbors,
                  layout.is_roomy)
