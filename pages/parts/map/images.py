"""The current image of a map, which the address holds."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from pages.parts.base.address import number_from_address, write_address
from pages.parts.components.gallery import clicked_tile
from pages.parts.map.frame import MapFrame


def picked_image(shown: MapFrame) -> int | None:
    """Return the current image.

    Returns:
        The data set index; None if this map does not show the image.
    """
    current = int(number_from_address("picked", -1))
    return current if current in shown.projection.indices else None


def pick_clicked(clicks: Iterable[int | None]) -> None:
    """Make the image that was clicked in any of several views the current image."""
    clicked = clicked_tile(clicks)
    if clicked is not None:
        write_address("picked", str(clicked))
        st.rerun(scope="fragment")
