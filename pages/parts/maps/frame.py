"""One layout of a run's map, and how far it can be trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from udml_core.base.arrays import LARGE, Array, rows_of
from udml_core.data.dataset import Dataset
from udml_core.exploration.map_content import Layout
from udml_core.runs import Run
from udml_core.runs.analyses import Projection, find_analysis, finished_maps

from ..shell.analyses import load_projection
from ..shell.cached import dataset_of, load_split
from ..shell.views import view_link

UNITS = ("Distances on a map are not distances in the embedding: areas, gaps and axes carry no units. "
         "Trustworthiness and continuity measure how well the map preserves neighbors.")


@dataclass(frozen=True)
class MapFrame:
    """One layout of a map, which shows one of the run's embeddings.

    Attributes:
        run: The run.
        dataset: Its data set.
        map_id: The id of the analysis.
        projection: The map with all its layouts.
        frame: Position of the layout among the map's layouts.
        is_roomy: Whether images that lie on each other move apart, as on maps by UMAP and t-SNE, which group tightly.
    """

    run: Run
    dataset: Dataset
    map_id: str
    projection: Projection
    frame: int
    is_roomy: bool = False

    @property
    def neighbors(self) -> Array:
        """Rows of the nearest neighbors in the embedding, (n, k)."""
        return self.projection.neighbors[self.frame]

    @property
    def is_large(self) -> bool:
        """Whether the map has too many images for their neighbors to be stored with it."""
        return len(self.projection.indices) > LARGE

    @property
    def is_quick(self) -> bool:
        """Whether the layout was computed at once, without its distortion."""
        return bool(np.isnan(self.projection.trustworthiness).all())

    @property
    def name(self) -> str:
        """The embedding that is shown: "frozen", "initial", "final" or an epoch's number."""
        return self.projection.frames[self.frame]

    @property
    def epoch(self) -> int | None:
        """The epoch that is shown; None if the embedding has another name than an epoch."""
        return int(self.name) if self.name.isdecimal() else None

    @property
    def layout(self) -> Layout:
        """The positions of the points, with bounds of all the map's layouts."""
        projection = self.projection
        return Layout(projection.indices, projection.positions[self.frame], f"{self.run.id} {self.map_id}",
                      projection.bounds, None if self.is_large else self.neighbors, self.is_roomy)


def load_map(run: Run, map_id: str, frame: int = -1) -> MapFrame:
    """Load one layout of a map.

    Args:
        run: The run.
        map_id: The id of the finished analysis.
        frame: Position of the layout; the last one if negative or too large.
    """
    projection = load_projection(run, map_id)
    last = len(projection.frames) - 1
    is_roomy = not find_analysis(run, map_id).spec().declared.is_linear
    return MapFrame(run, dataset_of(run), map_id, projection, frame if 0 <= frame <= last else last, is_roomy)


def covering_map(run: Run, indices: Array, map_id: str = "") -> MapFrame | None:
    """Find the preferred map that shows all of some images.

    Args:
        run: The run.
        indices: Data set indices, (m,).
        map_id: The only analysis to consider; any if empty.

    Returns:
        The last layout of the map, or None if no map shows all images.
    """
    for analysis in finished_maps(run):
        if map_id in ("", analysis.id):
            shown = load_map(run, analysis.id)
            if (rows_of(shown.projection.indices, indices) >= 0).all():
                return shown
    return None


def whole_map(run: Run) -> MapFrame | None:
    """Find the preferred map that shows all images of a run, which may exclude some of the data set."""
    return covering_map(run, np.setdiff1d(np.arange(len(dataset_of(run))), load_split(run).excluded))


def link_to_map(run: Run, label: str) -> None:
    """Show a link to the view that computes a map of a run."""
    view_link("explore", label=label, icon=":material/scatter_plot:", query_params={"run": run.id})


def distortion_words(shown: MapFrame) -> str:
    """Return the two measures of how well a layout preserves neighbors."""
    trust, continuity = (100 * float(np.nanmean(values[shown.frame])) for values in (
        shown.projection.trustworthiness, shown.projection.continuity))
    measured = np.isfinite(shown.projection.continuity[shown.frame])
    return (f"**Trustworthiness {trust:.1f} %** (neighbors on the map are near in the embedding), "
            f"**continuity {continuity:.1f} %** (neighbors in the embedding are near on the map)"
            + ("." if measured.all() else f", measured among {measured.sum():,} images."))


def show_distortion(shown: MapFrame) -> None:
    """Show how well a layout preserves neighbors."""
    st.markdown(distortion_words(shown))
