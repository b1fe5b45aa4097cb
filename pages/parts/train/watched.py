"""The images of a run that trains, their embedding after every epoch, and their colors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array, Integers
from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset
from udml_core.data.splits import fixed_sample
from udml_core.exploration.live import LiveMap, clusters_of
from udml_core.numerics.explanations import Clusters
from udml_core.runs import Run
from udml_core.runs.baselines import JUDGED

from ..maps.content import Color
from ..shell.cached import dataset_of, load_split
from ..shell.epochs import load_record
from ..shell.run_hash import RUN_HASH


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

    def sample(self, epoch: int) -> Array:
        """Read the embedding (s, d) after an epoch."""
        stored = self.run.epoch_trained(epoch) if self.trained else self.run.epoch_sample(epoch)
        if stored is None:
            raise UserError(f"The embedding of the training images after epoch {epoch} is missing. Start a new run.")
        return stored[self.rows]


def color_of(watched: Watched, epoch: int) -> Color:
    """Return the classes, or without classes the clusters of the method after the epoch."""
    if watched.labels is not None:
        return Color("class", watched.labels, watched.dataset.class_names)
    found = [_clusters(watched.run, number) for number in dict.fromkeys((epoch, *watched.run.epoch_numbers()[1:2]))]
    clusters = next((assignment for assignment in found if assignment is not None), None)
    if clusters is None:
        return Color("image", np.zeros(len(watched.images), dtype=np.int64), ("image",))
    names = tuple(f"cluster {number}" for number in range(int(clusters.max()) + 1))
    assignment = clusters_of(clusters, load_split(watched.run).train, watched.images)
    return Color("cluster", assignment, names, none="singleton")


@st.cache_data(max_entries=64, show_spinner=False, hash_funcs=RUN_HASH)
def _clusters(run: Run, epoch: int) -> Integers | None:
    """Return the clusters (t,) of an epoch; a method that forms them once has them in its first epoch only."""
    record = load_record(run, epoch, Clusters)
    return None if record is None else np.asarray(record.labels, dtype=np.int64)


@st.cache_data(max_entries=8, show_spinner=False, hash_funcs=RUN_HASH)
def _placed(run: Run) -> tuple[Integers, Integers, bool]:
    """Return the images, their rows in the stored sample, and whether they are images of the training half."""
    split, first = load_split(run), run.epoch_numbers()[0]
    trained = run.epoch_trained(first)
    if dataset_of(run).labels is None and "epsilon" in run.spec().fields and trained is not None:
        return fixed_sample(split.train, len(trained)), np.arange(len(trained)), True
    sample = run.sample_indices()
    rows = np.flatnonzero(np.isin(sample, fixed_sample(split.test, JUDGED)))
    return sample[rows], rows, False


def watch_images(run: Run) -> Watched:
    """Return the images of a run that has an epoch."""
    return Watched(run, dataset_of(run), *_placed(run))


@st.cache_resource(max_entries=8, show_spinner=False)
def live_map(run_id: str) -> LiveMap:  # noqa: ARG001 (the key)
    """Return the layouts of a run, which all sessions share."""
    return LiveMap()
