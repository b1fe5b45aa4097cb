"""Maps of several runs beside each other, turned onto the first."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array, rows_of
from udml_core.exploration.comparison import aligned_layouts
from udml_core.exploration.map_content import Color, Layout
from udml_core.exploration.map_values import bounds
from udml_core.runs import Run
from udml_core.runs.analyses import KINDS, MAPS, Analysis, finished_maps, list_analyses
from udml_core.runs.tasks import LIVE_STATES
from udml_core.work import jobs

from ..maps.coloring import default_color, group_color
from ..maps.frame import UNITS, MapFrame, link_to_map, load_map
from ..maps.scatter import Ring, draw_map
from ..shell.address import choice_from_address, write_address
from ..shell.analyses import show_analysis_progress
from ..shell.run_status import escaped
from .colors import run_heading

MOST_MAPS = 4
HEIGHT = 380
SIDE_PANEL_WIDTH = 2  # Two maps a row leave room for their legends.


def maps_by_kind(runs: Sequence[Run]) -> dict[str, dict[str, Analysis]]:
    """Return the preferred map after training of each run, by kind and by the run's id; UMAP first."""
    by_kind: dict[str, dict[str, Analysis]] = {}
    for run in runs:
        for analysis in finished_maps(run):
            spec = analysis.spec()
            if spec.frames[-1] == "final" and spec.scope in ("all", "test"):
                by_kind.setdefault(spec.kind, {}).setdefault(run.id, analysis)
    return {kind.name: by_kind[kind.name] for kind in MAPS if kind.name in by_kind}


def show_maps(runs: Sequence[Run], names: Sequence[str]) -> None:
    """Show one map of each run after training, at most four, in matched orientation."""
    by_kind = maps_by_kind(runs)
    if not by_kind:
        if not show_coming_maps(runs, names, ()):
            st.info("None of these runs has a map yet. Compute one on the page Explore.", icon=":material/lightbulb:")
            link_to_map(runs[0], "Map")
        return
    kinds = sorted(by_kind, key=lambda kind: -len(by_kind[kind]))  # The kind that most runs have; UMAP first.
    wanted = choice_from_address("kind", kinds, kinds[0])
    kind = wanted if len(kinds) == 1 else st.segmented_control(
        "Projection", kinds, default=wanted, required=True, key="compare-kind",
        format_func=lambda name: KINDS[name].title, label_visibility="collapsed") or wanted
    write_address("kind", kind, kinds[0])
    placed = matched_maps(runs, by_kind[kind])
    if len(placed) < len(runs):
        st.caption(f"{len(placed)} of {len(runs)} runs are shown: at most {MOST_MAPS}, and only runs with a finished "
                   f"{KINDS[kind].title} map. Compute missing maps on the page Explore.")
        show_coming_maps(runs, names, placed)
    shown = [(number, placed[run.id]) for number, run in enumerate(runs) if run.id in placed]
    for start in range(0, len(shown), SIDE_PANEL_WIDTH):
        for column, (number, matched) in zip(st.columns(SIDE_PANEL_WIDTH), shown[start:start + SIDE_PANEL_WIDTH],
                                             strict=False):
            with column:
                run_heading(runs, number, names[number])
                show_matched_map(matched, names[number])
    st.caption(f"Each map is rotated, mirrored and scaled to match the first as well as possible. {UNITS}")


def show_coming_maps(runs: Sequence[Run], names: Sequence[str], present: Collection[str]) -> bool:
    """Show the progress of the maps that are being computed; return whether there are any.

    Args:
        runs: The compared runs.
        names: Their names.
        present: Ids of the runs whose map is shown.
    """
    coming = [(run, name) for run, name in zip(runs, names, strict=True) if run.id not in present and is_coming(run)]
    for run, name in coming[:MOST_MAPS]:
        st.markdown(f"The map of **{escaped(name)}** is being computed.")
        show_analysis_progress(run, in_corner=False)
    return bool(coming)


def is_coming(run: Run) -> bool:
    """Return whether a map of a run is being computed, or follows in the background."""
    maps = {kind.name for kind in MAPS}
    return jobs.are_maps_coming(run) or any(analysis.status().state in LIVE_STATES for analysis in list_analyses(run)
                                            if analysis.spec().kind in maps)


@dataclass(frozen=True)
class MatchedMap:
    """A run's map after training, turned onto the first run's map.

    Attributes:
        frame: The map.
        positions: (n, 2) turned positions.
        color: The colors of its points, of the same kind on all maps.
    """

    frame: MapFrame
    positions: Array
    color: Color


def matched_maps(runs: Sequence[Run], analyses: Mapping[str, Analysis]) -> dict[str, MatchedMap]:
    """Return the maps of at most four runs in matched orientation, by the run's id.

    Args:
        runs: The runs.
        analyses: Finished maps of one kind by the run's id.
    """
    frames = [load_map(run, analyses[run.id].id) for run in runs if run.id in analyses][:MOST_MAPS]
    positions = aligned_layouts([(frame.projection.indices, frame.projection.positions[frame.frame])
                                 for frame in frames]) if frames else []
    return {frame.run.id: MatchedMap(frame, places, _color(frame, frames[0]))
            for frame, places in zip(frames, positions, strict=True)}


def _color(frame: MapFrame, first: MapFrame) -> Color:
    """Return the classes; without classes, the groups of the first map on all maps: a reader sees what moved."""
    if frame.dataset.labels is not None:
        return default_color(frame)
    groups = group_color(first)
    rows = rows_of(first.projection.indices, frame.projection.indices)
    return replace(groups, values=np.where(rows >= 0, np.asarray(groups.values)[rows], -1), none="not on the first map",
                   fixed=True)


def show_matched_map(matched: MatchedMap, name: str, query: int | None = None, neighbors: Sequence[int] = (),
                     height: int = HEIGHT) -> int | None:
    """Draw a map that shares its selection with the other maps.

    Args:
        matched: The map.
        name: The run's name.
        query: Index of the image to mark, joined with its neighbors by lines.
        neighbors: Indices of the neighbors.
        height: Height in pixels.

    Returns:
        The index of the image that was clicked just now, or None.
    """
    frame = matched.frame
    layout = Layout(frame.projection.indices, matched.positions, f"{frame.run.id} {frame.map_id} matched",
                    bounds(matched.positions), frame.neighbors)
    marks = [] if query is None else [Ring(query, "query", neighbors)]
    return draw_map(frame.dataset, layout, matched.color, f"Map of {name}, {len(layout.indices)} images",
                    f"compare-map-{frame.run.id}", height=height, linked=True, marks=marks)
