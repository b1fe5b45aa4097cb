"""The cursor through a map's embeddings."""

from __future__ import annotations

import streamlit as st

from udml_core.runs import Run

from ..draw.slider import live_slider
from ..shell.address import number_from_address, write_address
from ..shell.analyses import frame_words
from ..shell.focus import remember_frame
from .frame import MapFrame, load_map


def pick_frame(run: Run, map_id: str, parameter: str, label: str, apart_from: int | None = None) -> MapFrame:
    """Choose one layout of a map with a slider; the address holds its position.

    Args:
        run: The run.
        map_id: The id of the map.
        parameter: Name in the address.
        label: The slider's label.
        apart_from: Position of the layout that is shown beside this one on the same map, so that at first the two
            differ: the first layout, or the last if the first is shown already.
    """
    frames = load_map(run, map_id).projection.frames
    last = len(frames) - 1
    if last == 0:
        st.caption(f"{label}: {frame_words(frames[0], run)}")
        return load_map(run, map_id)
    memory = f"{parameter}-{map_id}-start"  # later the start stays, so that moving one cursor never moves the other
    start = st.session_state.setdefault(memory, last if apart_from is None or apart_from == 0 else 0)
    position = round(live_slider(label, 0, last, number_from_address(parameter, start, 0, last), 1,
                                 f"{parameter}-{map_id}", play=True,
                                 words=[frame_words(frame, run) for frame in frames]))
    write_address(parameter, str(position), str(start))
    if parameter == "frame":
        remember_frame(run, frames[position])
    return load_map(run, map_id, position)
