"""The current image of a map, which the address holds."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from udml_core.base.arrays import Array
from udml_core.data.dataset import Dataset

from ..draw.gallery import clicked_tile
from ..shell.address import number_from_address, write_address
from ..shell.run_status import escaped


def announce_missing(dataset: Dataset, index: int, shown: Array) -> None:
    """Say that a map does not show the current image, if so.

    Args:
        dataset: The data set.
        index: The current image; −1 for none.
        shown: Data set indices of the map's points, (n,).
    """
    if 0 <= index < len(dataset) and index not in shown:
        st.caption(f"The current image, {escaped(dataset.caption(index))}, is not among the {len(shown):,} images of "
                   "this map.", width="content")


def follow_click(map_key: str, dataset: Dataset) -> bool:
    """Make the image that was just clicked on the map the current image.

    The answer of the map is read before the page is drawn, so that a click costs one run of the fragment.

    Args:
        map_key: The key of the map.
        dataset: The data set whose images the map shows.

    Returns:
        Whether an image was clicked on the map.
    """
    index = getattr(st.session_state.get(map_key), "picked", None)
    if index is None or int(index) >= len(dataset):
        return False
    write_address("picked", str(int(index)))
    return True


def pick_clicked(clicks: Iterable[int | None]) -> None:
    """Make the image that was clicked in any of several views the current image, unless `follow_click` did."""
    clicked = clicked_tile(clicks)
    if clicked is not None and clicked != int(number_from_address("picked", -1)):
        write_address("picked", str(clicked))
        st.rerun(scope="fragment")
