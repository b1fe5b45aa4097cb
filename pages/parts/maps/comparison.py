"""What differs between two maps: the images whose neighborhoods changed most."""

from __future__ import annotations

import streamlit as st

from udml_core.exploration.map_values import neighborhood_change

from ..draw.gallery import gallery, tile_of
from .frame import MapFrame

CHANGED = 48


def changed_neighborhoods(first: MapFrame, second: MapFrame) -> int | None:
    """Show the images whose neighborhoods differ most between two maps.

    Returns:
        The data set index of the image that was clicked just now, or None.
    """
    change = neighborhood_change(*((shown.projection.indices, shown.neighbors) for shown in (first, second)))
    if not len(change.indices):
        st.info("The two maps have no image in common.", icon=":material/info:")
        return None
    st.subheader("Which neighborhoods changed most?")
    st.caption(f"On average, {100 * change.kept.mean():.1f} % of an image's {first.neighbors.shape[1]} nearest "
               f"neighbors in the embedding are the same in both maps, over {len(change.indices):,} shared images. The "
               "badge is that share for each image.")
    tiles = [tile_of(first.dataset, int(change.indices[position]), badge=f"{100 * change.kept[position]:.1f} %")
             for position in change.most_changed(CHANGED)]
    return gallery(first.dataset, tiles, "Images whose neighborhoods changed most", "map-changed", 72, height=240)
