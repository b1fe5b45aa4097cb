"""The images of a run that trains, their embedding after every epoch, and their colors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array, Integers
from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset
from udml_core.data.features import features_at_hand
from udml_core.data.splits import fixed_sample
from udml_core.exploration.identity import number_clusters
from udml_core.exploration.live import LiveMap, clusters_of
from udml_core.exploration.map_content import Color
from udml_core.numerics.explanations import Clusters
from udml_core.numerics.refinement.linear import unit_rows
from udml_core.runs import Run
from udml_core.runs.baselines import JUDGED
from udml_core.runs.live_steps import step_embedding, step_rows
from udml_core.runs.search import FROZEN

from ..maps.numbering import numbered_color
from ..shell.cached import dataset_of, load_split
from ..shell.epochs import load_record
from ..shell.run_hash import RUN_HASH
from .start_map import (
    ALONE,
    AT_EPSILON,
    Drawn,
    class_color,
    cluster_color,
    clusters_before,
    has_clusters,
    settled_map,
    shows_clusters,
)


@dataclass(frozen=True)
class Watched:
    """The images whose embedding is stored after every epoch, as the page shows them.

    Attributes:
        run: The run.
        dataset: Its data set.
        images: Data set indices (s,), ascending.
        rows: Their rows in the stored sample, (s,).
        trained: Whether they are images of the training half, which have clusters; else of the test half.
    """

    run: Run
    dataset: Dataset
    images: Integers
    rows: Integers
    trained: bool

    @property
    def labels(self) -> Array | None:
        """Classes (s,); None without classes."""
        return None if self.dataset.labels is None else self.dataset.labels[self.images]

    def sample(self, epoch: float) -> Array:
        """Read the embedding (s, d) after an epoch, or after a step within one."""
        is_sample = not self.trained or load_split(self.run).name == "all"
        if epoch % 1:
            return step_embedding(self.run, epoch, not is_sample)
        epoch = int(epoch)
        stored = self.run.epoch_sample(epoch) if is_sample else self.run.epoch_trained(epoch)
        if stored is None:
            raise UserError(f"The embedding of the training images after epoch {epoch} is missing. Start a new run.")
        return stored[self.rows]


def moments_of(run: Run) -> list[float]:
    """Return the numbers of finished epochs at which the embedding is stored: epochs, and steps within them."""
    return sorted({*map(float, run.epoch_numbers()), *(float(row["epoch"]) for row in step_rows(run))})


def rows_of_moments(run: Run) -> list[dict[str, Any]]:
    """Return the curves by epoch with the measures of the steps within epochs, ascending."""
    return sorted([*run.metrics()[0], *step_rows(run)], key=lambda row: float(row["epoch"]))


def color_of(watched: Watched, epoch: float) -> Color:
    """Return the colors of the map before training: clusters or classes.

    Without the map before training, the clusters are the method's own after the epoch.
    """
    spec, dataset = watched.run.spec(), watched.dataset
    if not (watched.trained and shows_clusters(spec, dataset)):
        return class_color(dataset, watched.images, first_frame(watched))
    before = first_frame(watched)
    clusters = None if before is None else clusters_before(before, spec)
    if before is not None and clusters is not None:
        return cluster_color(before, spec, before.of_images(clusters.assignment))
    numbers = dict.fromkeys((int(epoch), *watched.run.epoch_numbers()[1:2]))
    found = [_clusters(watched.run, number) for number in numbers]
    assignment = next((known for known in found if known is not None), None)
    if assignment is None:
        return class_color(dataset, watched.images, before)
    numbered = number_clusters(clusters_of(assignment, load_split(watched.run).train, watched.images)).numbers
    return numbered_color(f"{AT_EPSILON}{spec.fields['epsilon']:g}", numbered, ALONE)


def first_frame(watched: Watched) -> Drawn | None:
    """Return the map before training if it shows the same images."""
    drawn = settled_map(watched.run.spec(), watched.dataset)
    return drawn if drawn is not None and np.array_equal(drawn.images, watched.images) else None


def untrained(watched: Watched) -> Array | None:
    """Return the frozen features (s, d) of the images; None if they are not at hand, or if nothing is trained."""
    return None if watched.run.spec().method == FROZEN else _frozen(watched.run, watched.trained, watched)


@st.cache_resource(max_entries=4, show_spinner=False, hash_funcs=RUN_HASH)
def _frozen(run: Run, trained: bool, _watched: Watched) -> Array | None:  # noqa: ARG001 (the key)
    try:
        return unit_rows(features_at_hand(_watched.dataset, run.spec().encoder)[_watched.images])
    except UserError:
        return None


@st.cache_data(max_entries=64, show_spinner=False, hash_funcs=RUN_HASH)
def _clusters(run: Run, epoch: int) -> Integers | None:
    """Return the clusters (t,) of an epoch; a method that forms them once has them in its first epoch only."""
    record = load_record(run, epoch, Clusters)
    return None if record is None else np.asarray(record.labels, dtype=np.int64)


@st.cache_data(max_entries=16, show_spinner=False, hash_funcs=RUN_HASH)
def _placed(run: Run, trained: bool) -> tuple[Integers, Integers, bool]:
    """Return the images, their rows in the stored sample, and whether they are images of the training half."""
    split, first = load_split(run), run.epoch_numbers()[0]
    stored = run.epoch_trained(first) if trained else None
    if stored is not None:
        return fixed_sample(split.train, len(stored)), np.arange(len(stored)), True
    sample = run.sample_indices()
    rows = np.flatnonzero(np.isin(sample, fixed_sample(split.test, JUDGED)))
    return sample[rows], rows, trained and split.name == "all"


def watch_images(run: Run, compares: bool = False) -> Watched:
    """Return the images of a run that has an epoch.

    Args:
        run: The run.
        compares: Whether runs are compared, by test images if there are classes; else the images are the same as
            before training.
    """
    dataset = dataset_of(run)
    trained = has_clusters(run.spec()) and not (compares and dataset.labels is not None)
    return Watched(run, dataset, *_placed(run, trained))


@st.cache_resource(max_entries=8, show_spinner=False)
def live_map(run_id: str, place: str = "") -> LiveMap:  # noqa: ARG001 (the key)
    """Return the layouts of a run at a place of the app, which all sessions share."""
    return LiveMap()
