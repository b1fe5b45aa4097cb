"""The layouts of the map: finished maps, alone or with every epoch drawn on them, grids, and PCA computed at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from udml_core.base.arrays import rows_of
from udml_core.exploration.map_content import Layout
from udml_core.exploration.quick_map import place_among_neighbors, quick_frames
from udml_core.runs import Run
from udml_core.runs.analyses import AnalysisSpec, ImageGrid, Projection
from udml_core.runs.analyses.kinds.pca import PCA
from udml_core.runs.search import FROZEN, SCOPE_WORDS

from ..shell.analyses import frames_words, load_projection, short_title
from ..shell.cached import dataset_of
from ..shell.epoch_images import epoch_images
from ..shell.run_hash import RUN_HASH
from ..shell.views import GRID
from .choosing import carry_frame, map_specs, pick_layout
from .frame import MapFrame, load_map
from .grids import grid_of

NOW, EPOCHS, MOVING = "pca-now", "pca-epochs", "epochs-of-"
FRAMES: tuple[str, ...] = ("initial", "final")
WIDTH = 228
"""Pixels of the box."""


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

    @property
    def is_grid(self) -> bool:
        """Whether it is the grid of a map."""
        return self.id.startswith(GRID)

    @property
    def source(self) -> str:
        """The id of the map that a grid arranges."""
        return self.id.removeprefix(GRID)

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
        return load_map(run, self.source, load_map(run, self.source).projection.frames.index(frame))

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
        return replace(points, name=f"{shown.run.id} {self.id}", bounds=(left, bottom, right, top), is_roomy=False)

    def following(self, shown: MapFrame, frame: str) -> Layout | None:
        """Return the points of the embedding after one; None after the last, and for images too many to fetch ahead."""
        position = self.frames.index(frame) + 1
        if position == len(self.frames) or self.is_grid or shown.is_large:
            return None
        return self.draw(self.load(shown.run, self.frames[position]))

    def count_left_out(self, shown: MapFrame) -> int:
        """Return the number of images on the map after training that have no embedding at a layout's epoch."""
        if not self.moves:
            return 0
        return len(load_projection(shown.run, shown.map_id).indices) - len(shown.projection.indices)

    def grid(self, run: Run, frame: str) -> ImageGrid | None:
        """Return the grid of an embedding; None if this layout is a map, or the grid is not computed yet."""
        return grid_of(run, self.source, frame) if self.is_grid else None


def pick_any_layout(run: Run) -> MapLayout:
    """Choose a finished map, its epochs, its grid, or PCA; the address parameter `map` holds it.

    Until the user chooses another layout, the page shows the default: UMAP as soon as it is finished.
    """
    layouts = {layout.id: layout for layout in _layouts(run)}
    carry_frame(run, next(iter(layouts)), {name: layout.frames for name, layout in layouts.items()},
                {name: layout.start(run) for name, layout in layouts.items()})
    return layouts[pick_layout(run, {name: layout.title for name, layout in layouts.items()}, "Layout",
                               f"explore-map-{run.id}", WIDTH, icon=":material/scatter_plot:")]


def _layouts(run: Run) -> list[MapLayout]:
    """List the layouts: every epoch on the best map of all images, maps with UMAP first, quick PCA, and grids."""
    specs = list(map_specs(run).values())
    maps = [MapLayout(spec.id, _title(spec), spec.frames) for spec in specs]
    quick = [] if any(layout.title == PCA.title for layout in maps) else [MapLayout(NOW, PCA.title, FRAMES)]
    epochs, moving = tuple(map(str, run.epoch_numbers())), []
    if len(epochs) > len(FRAMES):
        ground = next((spec for spec in specs
                       if not spec.declared.is_linear and spec.scope == "all" and "final" in spec.frames), None)
        of_pca = MapLayout(EPOCHS, f"{PCA.title} · every epoch", epochs)
        moving = [of_pca if ground is None else
                  MapLayout(MOVING + ground.id, f"{short_title(ground)} · by epoch", epochs)]
        if ground is not None and not any(layout.frames == epochs for layout in maps):
            quick.append(of_pca)
    grids = [MapLayout(GRID + layout.id, f"Grid of {layout.title}", layout.frames) for layout in maps]
    layouts = [*moving, *maps, *quick, *grids]
    if run.spec().method == FROZEN:  # nothing was trained
        return [replace(layout, frames=("final",)) for layout in layouts if "final" in layout.frames]
    return layouts


def _title(spec: AnalysisSpec) -> str:
    """Return a map's title, short enough for the box: the epochs of the sample stand on the slider beside it."""
    long, short = f"{SCOPE_WORDS['sample']} · {frames_words(spec.frames)}", "sample"
    return short_title(spec).replace(long, short) if spec.scope == "sample" else short_title(spec)


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

    At earlier epochs the images that every epoch has lie at the mean position of their neighbors at that epoch. The
    other images have no position there, and are left out.
    """
    ground = load_map(run, map_id, load_projection(run, map_id).frames.index("final"))
    if frame == str(run.kept_epoch()):
        return ground
    return MapFrame(run, ground.dataset, map_id, _moving(run, map_id, int(frame)), 1)


@st.cache_resource(max_entries=48, show_spinner=False, hash_funcs=RUN_HASH)
def _moving(run: Run, map_id: str, epoch: int) -> Projection:
    """Return the first epoch, an epoch, and the map after training, of the images that every epoch has."""
    projection, images = load_projection(run, map_id), epoch_images(run)
    rows = rows_of(projection.indices, images.indices)
    drawn = np.flatnonzero(rows >= 0)
    after = projection.positions[projection.frames.index("final")][rows[drawn]].astype(np.float32)
    epochs = run.epoch_numbers()[0], epoch
    placed = [place_among_neighbors(images.embedding(number)[drawn], after) for number in epochs]
    unknown = np.full((len(epochs) + 1, len(after)), np.nan, dtype=np.float32)
    return Projection(images.indices[drawn], (*map(str, epochs), "final"),
                      np.stack([*(places for places, _ in placed), after]),
                      np.stack([*(nearby for _, nearby in placed), placed[-1][1]]), unknown, unknown)
