"""Choosing one of a run's maps and one of its embeddings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import streamlit as st

from udml_core.runs import Run
from udml_core.runs.analyses import AnalysisSpec, finished_maps
from udml_core.runs.search import frame_words

from ..draw.slider import live_slider
from ..shell.address import choice_from_address, number_from_address, write_address
from ..shell.analyses import short_title
from ..shell.focus import carried_frame, remember_frame
from .frame import MapFrame, load_map

REQUESTED, SEEN = "map-requested", "maps-seen"
"""Keys of the session: the map that a user started, and the maps of each run that were offered or shown."""


def map_specs(run: Run) -> dict[str, AnalysisSpec]:
    """Return the specs of a run's finished maps by id, the preferred map first."""
    return {analysis.id: analysis.spec() for analysis in finished_maps(run)}


def carry_frame(run: Run, default: str, frames_of: Mapping[str, Sequence[str]], starts: Mapping[str, int]) -> None:
    """Write the first layout that has the embedding of the page before to the address.

    Args:
        run: The run.
        default: The id of the default layout.
        frames_of: The embeddings of each layout by its id, the preferred layout first.
        starts: Position of the embedding that each layout shows at first.
    """
    if carried := carried_frame(run, frames_of):
        layout, position = carried
        write_address("map", layout, default)
        write_address("frame", str(position), str(starts[layout]))


def pick_map(run: Run, parameter: str, label: str) -> str | None:
    """Choose one of the run's finished maps; the address holds its id.

    Args:
        run: The run.
        parameter: Name in the address.
        label: The label, for screen readers.

    Returns:
        The id of the map; None, with instructions on the page, if there is no map yet.
    """
    specs = map_specs(run)
    if not specs:
        st.info("This run has no map yet. Compute one with New map: PCA takes seconds; t-SNE and UMAP take a minute or "
                "two for a few thousand images.", icon=":material/lightbulb:")
        return None
    return pick_layout(run, {map_id: short_title(spec) for map_id, spec in specs.items()}, label,
                       f"choose-{parameter}", "stretch", parameter)


def pick_layout(run: Run, titles: Mapping[str, str], label: str, key: str, width: int | Literal["stretch"],
                parameter: str = "map", icon: str | None = None) -> str:
    """Choose a layout; the address holds its id.

    Under the name `map`, a map that the user started, or a better default, is shown as soon as it is finished.

    Args:
        run: The run.
        titles: The names of the layouts by id; the first is shown at first.
        label: The label, for screen readers.
        key: The widget's key.
        width: Width in pixels.
        parameter: Name in the address; only under the name `map` the default is left out.
        icon: An icon in the box.
    """
    default = next(iter(titles))
    if parameter == "map":
        _show_requested(run, titles, key)
        _follow_default(run, default, key)
    wanted = choice_from_address(parameter, list(titles), default)
    chosen = st.selectbox(label, list(titles), list(titles).index(wanted), key=key, width=width, icon=icon,
                          label_visibility="collapsed", format_func=lambda name: titles.get(name, name))
    write_address(parameter, chosen, default if parameter == "map" else "")
    return chosen


def _follow_default(run: Run, default: str, key: str) -> None:
    """Change the chosen layout to a better default that has just finished, unless the user chose another layout.

    Args:
        run: The run.
        default: The id of the default layout.
        key: The key of the widget that holds the layout.
    """
    memory = f"{key}-default"
    followed = st.session_state.get(memory)
    if followed == (run.id, st.session_state.get(key)) and followed != (run.id, default):
        st.session_state[key] = default
        write_address("map", default, default)
    st.session_state[memory] = (run.id, default)


def _show_requested(run: Run, layouts: Collection[str], key: str) -> None:
    """Show the map that a user started as soon as it is finished."""
    requested = st.session_state.get(REQUESTED)
    if requested and requested[0] == run.id and requested[1] in layouts:
        st.session_state[key] = requested[1]
        del st.session_state[REQUESTED]


def pick_frame(run: Run, frames: Sequence[str], start: int, label: str, key: str, parameter: str = "frame",
               buttons: str = "") -> int:
    """Choose one of several embeddings with a slider; the address holds its position.

    Args:
        run: The run.
        frames: The embeddings.
        start: The position at first.
        label: The slider's label.
        key: The slider's key.
        parameter: Name in the address.
        buttons: Key of the buttons that take the place of the slider between two embeddings; always a slider if empty.
    """
    last = len(frames) - 1
    position = round(number_from_address(parameter, start, 0, last))
    words = [frame_words(frame, run) for frame in frames]
    if last == 1 and buttons:
        st.session_state[buttons] = position
        position = st.segmented_control(
            "Embedding", range(last + 1), key=buttons, required=True, format_func=lambda at: words[at].capitalize(),
            label_visibility="collapsed",
            on_change=lambda: write_address(parameter, str(st.session_state[buttons]), str(start))) or 0
    elif last:
        position = round(live_slider(label, 0, last, position, 1, key, play=True, words=words))
    write_address(parameter, str(position), str(start))
    if parameter == "frame":
        remember_frame(run, frames[position])
    return position


def pick_map_frame(run: Run, map_id: str, parameter: str, label: str, apart_from: int | None = None) -> MapFrame:
    """Choose one layout of a map.

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
    return load_map(run, map_id, pick_frame(run, frames, start, label, f"{parameter}-{map_id}", parameter))


def announce_maps(run: Run, shown: str, key: str) -> None:
    """Offer maps that finished since the run was opened and that are not shown.

    Args:
        run: The run.
        shown: The id of the layout that is shown.
        key: The key of the box that chooses the layout.
    """
    specs = map_specs(run)
    seen: set[str] = st.session_state.setdefault(f"{SEEN}-{run.id}", set(specs))
    seen.add(shown)
    for map_id in [map_id for map_id in specs if map_id not in seen]:
        def show(map_id: str = map_id) -> None:
            st.session_state[key] = map_id

        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption(f"{short_title(specs[map_id])} is ready.")
            st.button("Show it", icon=":material/visibility:", key=f"show-{map_id}", type="tertiary", on_click=show)
            st.button("Dismiss", key=f"dismiss-{map_id}", type="tertiary", on_click=seen.add, args=(map_id,))
