"""The layouts of the map: finished maps and grids, and PCA computed at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from pages.parts.base.address import choice_from_address, number_from_address, write_address
from pages.parts.base.analyses import KIND_WORDS, frame_words, load_result, short_title
from pages.parts.base.cached import dataset_of
from pages.parts.base.focus import carried_frame, remember_frame
from pages.parts.base.run_hash import RUN_HASH
from pages.parts.components.slider import live_slider
from pages.parts.map.frame import MapFrame, load_map
from udml_core.analyses import MAPS, ImageGrid, Projection, analysis_at, list_analyses, plan_analysis
from udml_core.exploration.quick_frames import quick_frames
from udml_core.runs import Run

NOW, EPOCHS, GRID = "pca-now", "pca-epochs", "grid-of-"
FRAMES: tuple[str, ...] = ("initial", "final")
DEFAULT = "explore-map-default"
"""Session key of the run and its default layout when the page was drawn last."""
FEW = 3
"""Up to this number, embeddings are buttons; more are a slider with a play button."""


@dataclass(frozen=True)
class MapLayout:
    """A layout that the map offers.

    Attributes:
        id: The id of a finished map, NOW, EPOCHS, or GRID and the id of the map that a grid arranges.
        title: Its name.
        frames: The embeddings it shows.
    """

    id: str
    title: str
    frames: tuple[str, ...]

    def load(self, run: Run, frame: str) -> MapFrame:
        """Return the layout of an embedding; for a grid, of the map that it arranges."""
        if self.id in (NOW, EPOCHS):
            return MapFrame(run, dataset_of(run), self.id, _quick(run, self.id), self.frames.index(frame))
        map_id = self.id.removeprefix(GRID)
        return load_map(run, map_id, load_map(run, map_id).projection.frames.index(frame))

    def grid(self, run: Run, frame: str) -> ImageGrid | None:
        """Return the grid of an embedding; None if this layout is a map."""
        if not self.id.startswith(GRID):
            return None
        grid = load_result(run, plan_analysis(kind="grid", source=self.id.removeprefix(GRID), frame=frame).id)
        assert isinstance(grid, ImageGrid)
        return grid


def pick_layout(run: Run) -> MapLayout:
    """Choose a layout; the address parameter `map` holds it.

    Until the user chooses another layout, the page shows the default: UMAP as soon as it is finished.
    """
    layouts = {layout.id: layout for layout in _layouts(run)}
    default, key = next(iter(layouts)), f"explore-map-{run.id}"
    if carried := carried_frame(run, {layout.id: layout.frames for layout in layouts.values()}):
        write_address("map", carried[0], default)
        write_address("frame", str(carried[1]), str(len(layouts[carried[0]].frames) - 1))
    followed = st.session_state.get(DEFAULT)
    if followed not in (None, (run.id, default)) and followed == (run.id, st.session_state.get(key)):
        st.session_state[key] = default
        write_address("map", default, default)
    st.session_state[DEFAULT] = (run.id, default)
    wanted = choice_from_address("map", layouts, default)
    chosen = st.selectbox("Layout", list(layouts), list(layouts).index(wanted), key=key,
                          format_func=lambda name: layouts[name].title if name in layouts else name)
    write_address("map", chosen, default)
    return layouts[chosen]


def _layouts(run: Run) -> list[MapLayout]:
    """List the layouts: maps with UMAP first and of each kind all images first, quick PCA, and grids."""
    specs = [analysis.spec() for kind in reversed(MAPS)
             for analysis in sorted(list_analyses(run, kind), key=lambda analysis: (
                 analysis.spec().scope != "all", len(analysis.spec().frames))) if analysis.is_done()]
    maps = [MapLayout(spec.id, short_title(spec), spec.frames) for spec in specs]
    quick = [] if any(layout.title == KIND_WORDS["pca"] for layout in maps) else [
        MapLayout(NOW, KIND_WORDS["pca"], FRAMES)]
    epochs = tuple(map(str, run.epoch_numbers()))
    if len(epochs) > 1 and not any(layout.frames == epochs for layout in maps):
        quick.append(MapLayout(EPOCHS, f"{KIND_WORDS['pca']} · every epoch", epochs))
    grids = []
    for layout in maps:
        frames = tuple(frame for frame in layout.frames if analysis_at(run, plan_analysis(
            kind="grid", source=layout.id, frame=frame)).is_done())
        if frames:
            grids.append(MapLayout(GRID + layout.id, f"Grid of {layout.title}", frames))
    return [*maps, *quick, *grids]


@st.cache_resource(max_entries=8, show_spinner=False, hash_funcs=RUN_HASH)
def _quick(run: Run, name: str) -> Projection:
    """Compute PCA of all images before and after training, or of the fixed sample after every epoch."""
    if name == NOW:
        indices, frames = np.arange(len(dataset_of(run))), FRAMES
        positions = quick_frames([run.embeddings("initial"), run.embeddings("final")])
    else:
        indices, frames = run.sample_indices(), tuple(map(str, run.epoch_numbers()))
        positions = quick_frames(map(run.epoch_sample, run.epoch_numbers()))
    # Neighbors and distortion take longer than a click may; finished maps have them.
    unknown = np.full(positions.shape[:2], np.nan, dtype=np.float32)
    return Projection(indices, frames, positions, np.zeros((*positions.shape[:2], 0), np.int32), unknown, unknown)


def pick_frame(run: Run, layout: MapLayout) -> str:
    """Choose the embedding that the map shows; the address parameter `frame` holds its position."""
    last = len(layout.frames) - 1
    position = int(number_from_address("frame", last, 0, last))
    if 0 < last < FEW:
        st.session_state["explore-frame"] = position
        position = st.segmented_control("Embedding", range(last + 1), key="explore-frame", required=True,
                                        format_func=lambda at: frame_words(layout.frames[at], run).capitalize(),
                                        on_change=lambda: write_address(
                                            "frame", str(st.session_state["explore-frame"]), str(last))) or 0
    elif last:
        position = round(live_slider("Epoch", 0, last, position, 1, f"explore-epoch-{layout.id}", play=True,
                                     words=[frame_words(frame, run) for frame in layout.frames]))
    write_address("frame", str(position), str(last))
    remember_frame(run, layout.frames[position])
    return layout.frames[position]


def offer_epochs(run: Run, layout: MapLayout) -> None:
    """Say why a layout shows no epochs, and offer the layout that does."""
    layouts = _layouts(run)
    moving = next((other for other in layouts if len(other.frames) >= FEW), None)
    if moving is None or len(layout.frames) >= FEW:
        return
    st.caption(f"Epochs are stored for a fixed sample of {len(run.sample_indices()):,} test images only.",
               width="content")
    st.button("Show every epoch", icon=":material/animation:", key="explore-every-epoch", type="tertiary",
              on_click=_open_layout, args=(run, moving.id, layouts[0].id), help=f"Opens the layout {moving.title}.")


def _open_layout(run: Run, layout_id: str, default: str) -> None:
    """Choose a layout in place of the user; it begins at its last embedding."""
    st.session_state[f"explore-map-{run.id}"] = layout_id
    write_address("map", layout_id, default)
    write_address("frame", "")
