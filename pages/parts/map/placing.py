"""New images on a map that exists."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages.parts.base.analyses import frame_words, load_result
from pages.parts.base.user_errors import show_user_errors
from pages.parts.map.shown_map import Shown
from udml_core import jobs
from udml_core.analyses import Placed, find_analysis, list_analyses
from udml_core.data.sources.listing import ENDINGS
from udml_core.runs import Run


def placed_images(run: Run, map_id: str, frame: str) -> list[dict[str, Any]]:
    """Where the images lie that were brought to a frame of a map."""
    found: list[dict[str, Any]] = []
    for analysis in list_analyses(run, "placed"):
        spec = analysis.spec()
        if analysis.is_done() and (spec.source, spec.frame) == (map_id, frame):
            result = load_result(run, analysis.id)
            assert isinstance(result, Placed)
            found += [{"at": at, "word": name}
                      for at, name in zip(result.positions.tolist(), result.names, strict=True)]
    return found


def bring_images(shown: Shown) -> None:
    """Files that are embedded by the run's model and placed among the points, in the background."""
    with st.popover("Place new images", icon=":material/add_photo_alternate:"):
        st.caption(f"They are embedded by this run's model and placed on this map, {frame_words(shown.name)}, "
                   "without moving what is there.")
        files = st.file_uploader("Images", type=sorted(ending[1:] for ending in ENDINGS), accept_multiple_files=True,
                                 key="place-files")
        if st.button("Place them", disabled=not files, icon=":material/add_location:", key="place"):
            with show_user_errors():
                jobs.place_images(shown.run, find_analysis(shown.run, shown.map_id), shown.name,
                                  [(file.name, file.getvalue()) for file in files])
                st.rerun()
