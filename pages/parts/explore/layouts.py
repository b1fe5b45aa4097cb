"""The layouts of the map: finished maps, alone or with every epoch drawn on them, grids, and PCA computed at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from udml_core.exploration.epoch_places import place_among_neighbors
from udml_core.exploration.quick_frames import quick_frames
from udml_core.runs import Run
from udml_core.runs.analyses import MAPS, ImageGrid, Projection, analysis_at, list_analyses, plan_analysis
from udml_core.runs.analyses.kinds.pca import PCA
from udml_core.runs.search.retrieval import FROZEN

from ..draw.map_content import Layout
from ..draw.slider import live_slider
from ..maps.frame import MapFrame, load_map
from ..shell.address import choice_from_address, number_from_address, write_address
from ..shell.analyses import frame_words, load_projection, load_result, rows_of, short_title
from ..shell.cached import dataset_of
from ..shell.epoch_images import epoch_images
from ..shell.focus import carried_frame, remember_frame
from ..shell.run_hash import RUN_HASH

NOW, EPOCHS, GRID, MOVING = "pca-now", "pca-epochs", "grid-of-", "epochs-of-"
FRAMES: tuple[str, ...] = ("initial", "final")
DEFAULT = "explore-map-default"
"""Session key of the run and its default layout when the page was drawn last."""
LAYOUT_WIDTH, COLOR_WIDTH = 240, 180
"""Pixels of the boxes in the toolbar."""
FEW = 2
"""Up to this number, embeddings are buttons; more are a slider with a play button."""


@dataclass(frozen=True)
class MapLayout:
    """A layout that the map offers.

    Attributes:
        id: The id of a finished map, NOW, EPOCHS, GRID and the id of the map that a grid arranges, or MOVING and the id
            of the map on which the epochs are drawn.
        title: Its name.
        frames: The embeddings it shows.
    """

    id: str
    title: str
    frames: tuple[str, ...]

    @property
    def moves(self) -> bool:
        """Whether every epoch is drawn on the map after training."""
        return self.id.startswith(MOVING)

    def start(self, run: Run) -> int:
        """Return the position of the embedding that is shown at first: the one that the run keeps."""
        kept = str(run.kept_epoch())
        return self.frames.index(kept) if kept in self.frames else len(self.frames) - 1

    def load(self, run: Run, frame: str) -> MapFrame:
        """Return the layout of an embedding; for a grid, of the map that it arranges."""
        if self.moves:
            return _load_moving(run, self.id.removeprefix(MOVING), frame)
        if self.id in (NOW, EPOCHS):
            return MapFrame(run, dataset_of(run), self.id, _quick(run, self.id), self.frames.index(frame))
        map_id = self.id.removeprefix(GRID)
        return load_map(run, map_id, load_map(run, map_id).projection.frames.index(frame))

    def draw(self, shown: MapFrame) -> Layout:
        """Return the points of a layout that was loaded; hover lines need neighbors.

        Epochs keep the bounds of the map on which they are drawn, so that the view stays as they change.
        """
        points = shown.layout if shown.neighbors.shape[1] else replace(shown.layout, neighbors=None)
        if not self.moves:
            return points
        ground = load_projection(shown.run, shown.map_id)
        after = ground.positions[ground.frames.index("final")]
        (left, bottom), (right, top) = after.min(axis=0).tolist(), after.max(axis=0).tolist()
        return replace(points, name=f"{shown.run.id} {self.id}", bounds=(left, bottom, right, top))

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
        write_address("frame", str(carried[1]), str(layouts[carried[0]].start(run)))
    followed = st.session_state.get(DEFAULT)
    if followed not in (None, (run.id, default)) and followed == (run.id, st.session_state.get(key)):
        st.session_state[key] = default
        write_address("map", default, default)
    st.session_state[DEFAULT] = (run.id, default)
    wanted = choice_from_address("map", layouts, default)
    chosen = st.selectbox("Layout", list(layouts), list(layouts).index(wanted), key=key, width=LAYOUT_WIDTH,
                          label_visibility="collapsed", icon=":material/scatter_plot:",
                          format_func=lambda name: layouts[name].title if name in layouts else name)
    write_address("map", chosen, default)
    return layouts[chosen]


def _layouts(run: Run) -> list[MapLayout]:
    """List the layouts: every epoch on the best map of all images, maps with UMAP first, quick PCA, and grids."""
    specs = [analysis.spec() for kind in reversed(MAPS)
             for analysis in sorted(list_analyses(run, kind), key=lambda analysis: (
                 analysis.spec().scope != "all", len(analysis.spec().frames))) if analysis.is_done()]
    maps = [MapLayout(spec.id, short_title(spec), spec.frames) for spec in specs]
    quick = [] if any(layout.title == PCA.title for layout in maps) else [MapLayout(NOW, PCA.title, FRAMES)]
    epochs, moving = tuple(map(str, run.epoch_numbers())), []
    if len(epochs) > len(FRAMES):
        ground = next((spec for spec in specs
                       if not spec.declared.is_linear and spec.scope == "all" and "final" in spec.frames), None)
        of_pca = MapLayout(EPOCHS, f"{PCA.title} · every epoch", epochs)
        moving = [of_pca if ground is None else
                  MapLayout(MOVING + ground.id, f"{short_title(ground)} · every epoch", epochs)]
        if ground is not None and not any(layout.frames == epochs for layout in maps):
            quick.append(of_pca)
    grids = []
    for layout in maps:
        frames = tuple(frame for frame in layout.frames if analysis_at(run, plan_analysis(
            kind="grid", source=layout.id, frame=frame)).is_done())
        if frames:
            grids.append(MapLayout(GRID + layout.id, f"Grid of {layout.title}", frames))
    layouts = [*moving, *maps, *quick, *grids]
    if run.spec().method == FROZEN:  # nothing was trained
        return [replace(layout, frames=("final",)) for layout in layouts if "final" in layout.frames]
    return layouts


@st.cache_resource(max_entries=8, show_spinner=False, hash_funcs=RUN_HASH)
def _quick(run: Run, name: str) -> Projection:
    """Compute PCA of all images before and after training, or of the images that every epoch has."""
    if name == NOW:
        indices, frames = np.arange(len(dataset_of(run))), FRAMES
        positions = quick_frames([run.embeddings("initial"), run.embeddings("final")])
    else:
        kept = epoch_images(run)
        indices, frames = kept.indices, tuple(map(str, run.epoch_numbers()))
        positions = quick_frames(map(kept.embedding, run.epoch_numbers()))
    # Neighbors and distortion take longer than a click may; finished maps have them.
    unknown = np.full(positions.shape[:2], np.nan, dtype=np.float32)
    return Projection(indices, frames, positions, np.zeros((*positions.shape[:2], 0), np.int32), unknown, unknown)


def _load_moving(run: Run, map_id: str, frame: str) -> MapFrame:
    """Return an epoch drawn on a map of all images; after training, the map itself.

    Earlier epochs show the images that every epoch has, each at the mean position of its neighbors at that epoch.
    """
    ground = load_map(run, map_id, load_projection(run, map_id).frames.index("final"))
    if frame == str(run.kept_epoch()):
        return ground
    return MapFrame(run, ground.dataset, map_id, _moving(run, map_id, int(frame)), 1)


@st.cache_resource(max_entries=48, show_spinner=False, hash_funcs=RUN_HASH)
def _moving(run: Run, map_id: str, epoch: int) -> Projection:
    """Return the first epoch, an epoch, and the map after training, so that all epochs have nearly the same bounds."""
    projection, images = load_projection(run, map_id), epoch_images(run)
    rows = rows_of(projection.indices, images.indices)
    drawn = np.flatnonzero(rows >= 0)
    after = projection.positions[projection.frames.index("final")][rows[drawn]]
    epochs = run.epoch_numbers()[0], epoch
    placed = [place_among_neighbors(images.embedding(number)[drawn], after) for number in epochs]
    positions = np.stack([*(places for places, _ in placed), after])
    neighbors = np.stack([*(nearby for _, nearby in placed), placed[-1][1]])
    unknown = np.full(positions.shape[:2], np.nan, dtype=np.float32)
    return Projection(images.indices[drawn], (*map(str, epochs), "final"), positions, neighbors, unknown, unknown)


def pick_frame(run: Run, layout: MapLayout) -> str:
    """Choose the embedding that the map shows; the address parameter `frame` holds its position."""
    last, start = len(layout.frames) - 1, layout.start(run)
    position = int(number_from_address("frame", start, 0, last))
    if 0 < last < FEW:
        st.session_state["explore-frame"] = position
        position = st.segmented_control("Embedding", range(last + 1), key="explore-frame", required=True,
                                        format_func=lambda at: frame_words(layout.frames[at], run).capitalize(),
                                        label_visibility="collapsed", on_change=lambda: write_address(
                                            "frame", str(st.session_state["explore-frame"]), str(start))) or 0
    elif last:
        position = round(live_slider("Epoch", 0, last, position, 1, f"explore-epoch-{layout.id}", play=True,
                                     words=[frame_words(frame, run) for frame in layout.frames]))
    write_address("frame", str(position), str(start))
    remember_frame(run, layout.frames[position])
    return layout.frames[position]
