"""What all views of the page Explore share: the run, the current image, and the embedding that the map shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.data.splits import Split
from udml_core.exploration.focus import stand_in
from udml_core.exploration.gallery_content import Tile
from udml_core.exploration.neighborhoods import Geometry
from udml_core.numerics.explanations import Explanation
from udml_core.runs import Run
from udml_core.runs.search import epoch_of, frame_words

from ..clusters.clustering import Clustering
from ..draw.gallery import gallery, mark_of, tile_of
from ..shell.address import write_address
from ..shell.cached import load_split
from ..shell.epochs import Record, epochs_with, load_record
from ..shell.interesting import interesting_queries
from ..shell.run_hash import RUN_HASH
from ..shell.run_status import escaped
from ..shell.views import view_link

PARAMETER = "picked"
SIDE = 58
"""Least width of a tile: five fit beside each other in the panel at 1400 pixels."""


@dataclass(frozen=True)
class Workbench:
    """The state that the map and all panels share.

    Attributes:
        run: The run.
        dataset: Its data set.
        focus: Data set index of the current image.
        frame: The embedding that the map shows: "initial", "final", "frozen", a refinement or an epoch's number.
        clustering: The clusters that color the map; None if it has other colors.
        geometry: The geometry of linear neighborhoods; the run's if None.
        gamma: γ of the walks that spread labels; the run's if None.
        alpha: α of the panel's triplets in degrees; the run's if None.
        temperature: τ of the panel's softmax; the run's if None.
    """

    run: Run
    dataset: Dataset
    focus: int
    frame: str
    clustering: Clustering | None = None
    geometry: Geometry | None = None
    gamma: float | None = None
    alpha: float | None = None
    temperature: float | None = None

    @cached_property
    def split(self) -> Split:
        """The run's split."""
        return load_split(self.run)

    @property
    def caption(self) -> str:
        """The name of the current image."""
        return self.dataset.caption(self.focus)

    @property
    def file(self) -> str:
        """The file name of the current image, without its folders."""
        return self.dataset.names[self.focus].rsplit("/", 1)[-1]

    @property
    def title(self) -> str:
        """The class of the current image; its file name without classes."""
        labels = self.dataset.labels
        return self.file if labels is None else self.dataset.class_names[labels[self.focus]]

    @property
    def facts(self) -> str:
        """The file name of the current image below its class, and its half; empty without classes and halves."""
        file = "" if self.dataset.labels is None else f"{self.file}. "
        half = "Training half." if self.focus in self.split.train else "Test half."
        return file + (half if self.split.name != "all" else "")

    @property
    def frame_words(self) -> str:
        """The name of the embedding that the map shows."""
        return frame_words(self.frame, self.run)

    def epoch_with(self, kind: type[Explanation]) -> int | None:
        """Return the epoch whose record the panels show.

        Returns:
            The newest epoch with a record of this kind up to the map's epoch, else the first; None without records.
        """
        epochs = epochs_with(self.run, kind)
        if not epochs:
            return None
        shown = epoch_of(self.frame)
        last = epochs[-1] if shown is None else shown
        return max((epoch for epoch in epochs if epoch <= last), default=epochs[0])

    def record(self, kind: type[Record]) -> Record | None:
        """Return the record of the epoch that the panels show, read once."""
        epoch = self.epoch_with(kind)  # type: ignore[arg-type]  # a TypeVar bound by a union is not one of its types
        return None if epoch is None else _record(self.run, epoch, kind)

    def nearest_of(self, among: Array) -> int:
        """Return the current image if it is among some images, else the nearest of them after training."""
        return stand_in(self.run.embeddings("final"), self.focus, among)

    def tile(self, index: int, badge: str = "") -> Tile:
        """Return an image's tile, marked by whether it has the class of the current image."""
        return tile_of(self.dataset, index, mark_of(self.dataset, index, self.focus), badge)

    def tiles(self, tiles: list[Tile], label: str, name: str, side: int = SIDE) -> None:
        """Show a gallery of the panel; a click makes an image the current image."""
        gallery(self.dataset, tiles, label, f"explore-tiles-{name}", side, on_pick=set_current_image,
                shared=side == SIDE)


_record = st.cache_resource(max_entries=16, show_spinner=False, hash_funcs=RUN_HASH)(load_record)


def interesting_images(run: Run) -> list[int]:
    """Return the queries of the page Search, whose neighbors changed most through training, in its order."""
    return [image for image, _ in interesting_queries(run)]


def set_current_image(index: int) -> None:
    """Make an image the current image; the address holds it."""
    write_address(PARAMETER, str(index))


def show_another(images: Sequence[int] | Array, current: int, step: int) -> None:
    """Make the next of some images, or a random one, the current image.

    A callback calls this, so it must not load a data set: the progress bar would replace the page's title.

    Args:
        images: Data set indices.
        current: The current image.
        step: Number of images to move by; 0 for a random image.
    """
    listed = np.asarray(images)
    if not len(listed):
        return
    at = np.flatnonzero(listed == current)
    position = np.random.default_rng().integers(len(listed)) if not step else (at[0] + step if len(at) else 0)
    set_current_image(int(listed[position % len(listed)]))


def explain(sentence: str, formula: str) -> None:
    """Explain a panel in one sentence, with the formula behind a question mark.

    Args:
        sentence: What to notice.
        formula: How the panel's numbers are computed.
    """
    st.markdown(f":small[{sentence}]", help=formula)


def say_stand_in(bench: Workbench, index: int, where: str) -> None:
    """Say that another image is shown because a record does not contain the current image.

    Args:
        bench: The workbench.
        index: The image that is shown.
        where: What does not contain the current image.
    """
    if index != bench.focus:
        st.caption(f"The current image is not {where}. The panel shows the nearest image that is: "
                   f"**{escaped(bench.dataset.caption(index))}**.")


@dataclass(frozen=True)
class DeepLink:
    """The link from a panel to the page that shows the same in depth.

    Attributes:
        page: The page's name.
        query: Its address parameters.
    """

    page: str
    query: Mapping[str, str]


def link(page: str, bench: Workbench, **parameters: Any) -> DeepLink:
    """Return the link that opens a deep page with the same run and image.

    Args:
        page: The page's name.
        bench: The workbench.
        parameters: Further address parameters.
    """
    return DeepLink(page, {"run": bench.run.id, **{name: str(value) for name, value in parameters.items()}})


def in_address(*names: str) -> dict[str, str]:
    """Return the parameters that the address holds, of some names: settings that a deep page shares."""
    return {name: st.query_params[name] for name in names if name in st.query_params}


def show_link(target: DeepLink) -> None:
    """Show the link to a deep page."""
    view_link(target.page, label="Open in depth", icon=":material/open_in_new:",
                 query_params=dict(target.query), width="content")
