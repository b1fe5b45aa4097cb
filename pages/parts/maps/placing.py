"""New images on an existing map."""

from __future__ import annotations

from typing import Any

import streamlit as st

from udml_core.data.sources.listing import ENDINGS
from udml_core.runs.analyses import Placed, find_analysis, list_analyses
from udml_core.runs.search import frame_words
from udml_core.work import jobs

from ..shell.analyses import load_result
from ..shell.user_errors import show_user_errors
from .frame import MapFrame


def placed_images(shown: MapFrame) -> list[dict[str, Any]]:
    """List the positions and names of the new images that were placed on a layout."""
    placed: list[dict[str, Any]] = []
    for analysis in list_analyses(shown.run, "placed"):
        spec = analysis.spec()
        if analysis.is_done() and (spec.source, spec.frame) == (shown.map_id, shown.name):
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
