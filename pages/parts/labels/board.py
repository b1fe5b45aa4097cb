"""The assigned labels on a run's neighbor graph, and the images to label next."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array, Booleans
from udml_core.base.declaration import describe_field
from udml_core.data.dataset import Dataset, Report
from udml_core.data.given.labels import assigned_classes, assigned_now
from udml_core.exploration import label_spread as views
from udml_core.exploration.gallery_content import Tile
from udml_core.exploration.grouping import Proposal
from udml_core.methods.ssdml import SSDML
from udml_core.runs import Run
from udml_core.runs.search import Retrieval
from udml_core.runs.search.naming import SEEN, NamedImages, name_images

from ..draw.gallery import tile_of
from ..shell.cached import load_retrieval
from ..shell.label_graph import graph_of_run, reach_in
from ..shell.run_hash import RUN_HASH
from .actions import skipped_images

SUGGESTIONS = 5
SUGGESTING = float(describe_field(SSDML, "gamma").default)
"""Probability γ of the walks that find images to label, as measured in assets/results/suggested-labels.json."""
CLASSES_WITH_KEYS, MOST_BUTTONS = 10, 40
MOST_TILES = SEEN
"""Session key of the certainty from which names were last accepted."""
TRUE_CLASS = "labels-true-class"
"""Session key of the toggle that shows the class of the images to label in the data set."""


@dataclass(frozen=True)
class Board:
    """The assigned labels on the neighbor graph of a run's training images.

    Attributes:
        run: The run whose final embedding defines the graph.
        dataset: The run's data set.
        images: Indices of the training images, ascending, (p,).
        neighbors: Rows of the k nearest neighbors of each training image, (p, k).
        labels: The assigned class of each labeled image, by index, in the order of assignment.
        names: All classes that were assigned and not undone, so that each keeps its number.
        codes: Index into `names` of each training image's class, −1 without a label, (p,).
        gamma: Probability γ that a walk continues at each step, which names images.
        least: Certainty from which a name is accepted, if the user chose one; calibrated if None.
        frame: The embedding whose groups are formed, and along whose neighbors names spread.
    """

    run: Run
    dataset: Dataset
    images: Array
    neighbors: Array
    labels: dict[int, str]
    names: tuple[str, ...]
    codes: Array
    gamma: float
    least: float | None = None
    frame: str = "final"

    @cached_property
    def classes(self) -> dict[str, int]:
        """The number of each class that an image has now, of which the first have a key.

        A class keeps its number when others go; the numbers with a key that are free go to the oldest without a key.
        """
        current = set(self.labels.values())
        numbers = {name: number for number, name in enumerate(self.names, 1) if name in current}
        free = iter([key for key in range(1, CLASSES_WITH_KEYS + 1) if key not in numbers.values()])
        given = {name: number if number <= CLASSES_WITH_KEYS else next(free, number)
                 for name, number in numbers.items()}
        return dict(sorted(given.items(), key=lambda each: each[1]))

    @cached_property
    def buttons(self) -> dict[str, int]:
        """The number of each class that gets a button.

        Classes with a key have priority, then the most recently assigned classes; at most `MOST_BUTTONS`.
        """
        with_key = [name for name, number in self.classes.items() if number <= CLASSES_WITH_KEYS]
        shown = list(dict.fromkeys([*with_key, *reversed(self.labels.values())]))[:MOST_BUTTONS]
        return {name: number for name, number in self.classes.items() if name in shown}

    def prepare_names(self, report: Report) -> None:
        """Spread the names of all classes, which is kept; report if it takes long."""
        sets = np.array([self.codes == code for code in range(len(self.names))]).reshape(-1, len(self.images))
        reach_in(self.run, self.frame, self.gamma).prepare(sets, report)

    @cached_property
    def names_given(self) -> NamedImages:
        """The names that follow from the labels, with the certainty of each."""
        return name_images(self.dataset, self.images, reach_in(self.run, self.frame, self.gamma), chosen=self.least)

    @property
    def left_out(self) -> Booleans:
        """Whether each training image (p,) was excluded since the run."""
        return self.names_given.left_out

    @cached_property
    def proposals(self) -> list[Proposal]:
        """The proposed names, the class with the most first."""
        return self.names_given.proposals if self.spreads else []

    @cached_property
    def next_names(self) -> list[Proposal]:
        """The next images of each class to ask about, the class first whose names are most probably right."""
        return self.names_given.next_names if self.spreads else []

    @cached_property
    def retrieval(self) -> Retrieval:
        """The search of the run; opening it may show progress, which a callback must not."""
        return load_retrieval(self.run)

    @cached_property
    def points(self) -> Array:
        """The embedding (p, l) of the training images."""
        return self.retrieval.frame(self.frame).take(self.images)

    @property
    def named(self) -> Array:
        """The class (p,) of each training image with a label or an accepted name; −1 for the others."""
        return self.names_given.accepted

    @property
    def certainty(self) -> Array:
        """The certainty (p,) of the most probable class of each training image, 0 if no walk reaches a label."""
        return self.names_given.naming.named[1]

    @cached_property
    def spreads(self) -> bool:
        """Whether a training image has a label."""
        return bool((self.codes >= 0).any())

    @cached_property
    def suggestions(self) -> list[views.Suggestion]:
        """The images to label next, the most useful first."""
        skipped = (*skipped_images(self.dataset), *self.images[self.left_out].tolist())
        return _suggestions(self.run, self.codes, skipped)

    @property
    def suggested_images(self) -> list[int]:
        """Indices of the images to label next, the most useful first."""
        return [int(self.images[suggestion.row]) for suggestion in self.suggestions]


def tile_to_label(board: Board, image: int, badge: str = "") -> Tile:
    """Make the tile of an image without its class in the data set, unless the user shows the true class.

    Args:
        board: The board.
        image: Index of the image.
        badge: Short text below the image; the class or the file name if empty.
    """
    if st.session_state.get(TRUE_CLASS):
        return tile_of(board.dataset, image, badge=badge)
    name = board.dataset.names[image].rsplit("/", 1)[-1]
    return Tile(int(image), name, "", badge or name)


def board_of(run: Run, dataset: Dataset, gamma: float, frame: str = "final") -> Board:
    """Return the board of a run with the labels that are assigned now; see `Board`."""
    images, neighbors = graph_of_run(run)
    labels, names = assigned_now(dataset), assigned_classes(dataset)
    return Board(run, dataset, images, neighbors, labels, names, views.label_codes(labels, names, images), gamma,
                 frame=frame)


def _suggestions(run: Run, codes: Array, skipped: tuple[int, ...]) -> list[views.Suggestion]:
    """Return the images to label next.

    Each image is chosen as if the images before it were labeled.

    Each step is cached by its labeled rows: after the first suggestion is labeled, only one step is left to compute.
    """
    suggestions: list[views.Suggestion] = []
    for _ in range(SUGGESTIONS):
        labeled = np.append(np.flatnonzero(codes >= 0), [suggestion.row for suggestion in suggestions]).astype(int)
        suggestions += _next_suggestion(run, tuple(np.sort(labeled).tolist()), skipped)
    return suggestions


@st.cache_data(max_entries=256, show_spinner=False, hash_funcs=RUN_HASH)
def _next_suggestion(run: Run, labeled: tuple[int, ...], skipped: tuple[int, ...]) -> list[views.Suggestion]:
    """Return the image to label next, or an empty list.

    The list is empty if all other images are labeled or skipped.

    Args:
        run: The run.
        labeled: Rows of the labeled images.
        skipped: Indices of the images to leave out.
    """
    images, neighbors = graph_of_run(run)
    return views.suggestions(neighbors, np.isin(np.arange(len(images)), labeled), SUGGESTING, 1,
                             np.flatnonzero(np.isin(images, skipped)).tolist())
