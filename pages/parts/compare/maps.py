"""Maps of several runs beside each other, turned onto the first."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.parts.base.address import choice_from_address, write_address
from pages.parts.base.analyses import KIND_WORDS
from pages.parts.base.run_status import escaped
from pages.parts.base.selection import selection
from pages.parts.components.map_content import Layout
from pages.parts.components.scatter import scatter
from pages.parts.map.coloring import colorings
from pages.parts.map.frame import UNITS, MapFrame, load_map
from udml_core.analyses import MAPS, Analysis, list_analyses
from udml_core.exploration.comparison import aligned_layouts
from udml_core.exploration.maps import bounds
from udml_core.runs import Run

MOST_MAPS = 4
HEIGHT = 380
SIDE_PANEL_WIDTH = 2  # Two maps a row leave room for their legends.


def maps_by_kind(runs: Sequence[Run]) -> dict[str, dict[str, Analysis]]:
    """Return the newest finished map after training of each run, by kind and by the run's id; UMAP first."""
    found: dict[str, dict[str, Analysis]] = {}
    for kind in reversed(MAPS):
        for run in runs:
            analysis = next((analysis for analysis in list_analyses(run, kind) if analysis.is_done()
                             and analysis.spec().frames[-1] == "final" and analysis.spec().scope in ("all", "test")),
                            None)
            if analysis is not None:
                found.setdefault(kind, {})[run.id] = analysis
    return found


def show_maps(runs: Sequence[Run], names: Sequence[str]) -> None:
    """Show one map of each run after training, at most four, in matched orientation."""
    found = maps_by_kind(runs)
    if not found:
        st.info("None of these runs has a map yet. Compute one on the page Map.", icon=":material/lightbulb:")
        st.page_link("pages/map.py", label="Map", icon=":material/scatter_plot:", query_params={"run": runs[0].id})
        return
    kinds = sorted(found, key=lambda kind: -len(found[kind]))  # The kind that most runs have; UMAP first.
    wanted = choice_from_address("kind", kinds, kinds[0])
    kind = wanted if len(kinds) == 1 else st.segmented_control(
        "Projection", kinds, default=wanted, required=True, key="compare-kind", format_func=KIND_WORDS.__getitem__,
        label_visibility="collapsed") or wanted
    write_address("kind", kind, kinds[0])
    shown = [(load_map(run, found[kind][run.id].id), name) for run, name in zip(runs, names, strict=True)
             if run.id in found[kind]][:MOST_MAPS]
    if len(shown) < len(runs):
        st.caption(f"{len(shown)} of {len(runs)} runs are shown: at most {MOST_MAPS}, and only runs with a finished "
                   f"{KIND_WORDS[kind]} map. Compute missing maps on the page Map.")
    _draw([frame for frame, _ in shown], [name for _, name in shown])
    st.caption(f"Each map is rotated, mirrored and scaled to match the first as well as possible. {UNITS}")


def _draw(frames: Sequence[MapFrame], names: Sequence[str]) -> None:
    """Draw aligned maps that share one selection."""
    positions = aligned_layouts([(frame.projection.indices, frame.projection.positions[frame.frame])
                                 for frame in frames])
    selected = selection(frames[0].dataset)
    for start in range(0, len(frames), SIDE_PANEL_WIDTH):
        for column, number in zip(st.columns(SIDE_PANEL_WIDTH), range(start, len(frames)), strict=False):
            frame = frames[number]
            layout = Layout(frame.projection.indices, positions[number], f"{frame.run.id} {frame.map_id} matched",
                            bounds(positions[number]), frame.neighbors)
            color = next(iter(colorings(frame).values()))()
            with column:
                st.markdown(f"**{escaped(names[number])}**")
                scatter(frame.dataset, layout, color, selected,
                        f"Map of {names[number]}, {len(layout.indices)} images", f"compare-map-{frame.run.id}",
                        height=HEIGHT, linked=True)
