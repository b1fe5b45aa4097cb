"""The neighbor graph of a run, the few labels on it, and how far they spread."""

from __future__ import annotations

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.base.declaration import describe_field
from udml_core.data.dataset import Dataset
from udml_core.exploration import label_spread as views
from udml_core.exploration.naming import NEIGHBORS, KeptReach, Walk, reach_of, symmetric_walk
from udml_core.methods.ssdml import SSDML
from udml_core.runs import Run
from udml_core.runs.analyses.kinds.groups import Grouping
from udml_core.runs.search.naming import groups_analysis, stored_grouping

from .cached import dataset_of, load_retrieval, load_split
from .run_hash import RUN_HASH

N_NEIGHBORS = int(describe_field(SSDML, "n_neighbors").default)
MOST_BYTES = 500_000_000
"""Bytes of walks from labels that are kept."""
MOST_AT_ONCE = 20_000
"""Most images whose neighbors Label searches while the user waits; it takes the neighbors of more from their groups."""


def graph_of_run(run: Run) -> tuple[Array, Array]:
    """Return the neighbor graph of the training images, as SSDML would build it.

    The neighbors are nearest in the final embedding.

    Returns:
        The indices of the training images, ascending, (p,), and the rows of their k nearest neighbors, (p, k).

    Raises:
        UserError: The data set is missing or has changed since the run.
    """
    dataset_of(run)
    return _graph(run)


@st.cache_resource(max_entries=4, show_spinner="Searching the nearest neighbors …", hash_funcs=RUN_HASH)
def _graph(run: Run) -> tuple[Array, Array]:
    images = training_images(run)
    return images, _neighbors(run, "final", images, N_NEIGHBORS)


def training_images(run: Run) -> Array:
    """Return the indices of a run's training images, ascending."""
    return np.sort(load_split(run).train)


def are_neighbors_near(run: Run, frame: str) -> bool:
    """Return whether the images are few, or their groups are formed, which have the neighbors if all images train."""
    return len(training_images(run)) <= MOST_AT_ONCE or groups_analysis(run, frame) is not None


def _stored_neighbors(run: Run, frame: str, images: Array) -> Array | None:
    """Return the neighbors that the groups of these images have stored; None without."""
    if groups_analysis(run, frame) is None:
        return None
    stored = _read_grouping(run, frame)
    return stored.neighbors if np.array_equal(stored.indices, images) else None


@st.cache_resource(max_entries=4, show_spinner=False, hash_funcs=RUN_HASH)
def _read_grouping(run: Run, frame: str) -> Grouping:
    stored = stored_grouping(run, frame)
    assert stored is not None
    return stored


def _neighbors(run: Run, frame: str, images: Array, count: int) -> Array:
    """Return the rows (p, count) of the nearest images of each image: stored, or searched now."""
    stored = _stored_neighbors(run, frame, images)
    if stored is not None:
        return stored[:, :count]
    points = load_retrieval(run).frame(frame).take(images)
    return views.neighbor_rows(points, np.arange(len(images)), count)


def training_labels(run: Run, dataset: Dataset) -> tuple[Array, tuple[str, ...]] | None:
    """Return the labels that a run's method received.

    Returns:
        The labels, (n,), and their classes; None if the method used all labels or none.
    """
    spec = run.spec()
    codes = spec.few_labels(dataset, load_split(run).train)
    if codes is None:
        return None
    return codes, (dataset.class_names if spec.labels == "drawn" else tuple(sorted(set(spec.given_labels.values()))))


@st.cache_resource(max_entries=4, show_spinner="Searching the nearest neighbors …", hash_funcs=RUN_HASH)
def _walk(run: Run, frame: str) -> Walk:
    dataset_of(run)
    return symmetric_walk(_neighbors(run, frame, training_images(run), NEIGHBORS))


@st.cache_resource(max_entries=4, show_spinner=False, hash_funcs=RUN_HASH)
def reach_in(run: Run, frame: str, gamma: float) -> KeptReach:
    """Return the function that computes how often walks of names end at some training images of an embedding."""
    return KeptReach(lambda labeled: reach_of(_walk(run, frame), labeled, gamma),
                     max(64, MOST_BYTES // (8 * len(training_images(run)))))
