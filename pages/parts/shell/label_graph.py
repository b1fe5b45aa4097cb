"""The neighbor graph of a run, the few labels on it, and how far they spread."""

from __future__ import annotations

import numpy as np
import streamlit as st
from scipy import sparse

from udml_core.base.arrays import Array
from udml_core.base.declaration import describe_field
from udml_core.data.dataset import Dataset
from udml_core.data.given.labels import assigned_labels, labels_by_index
from udml_core.exploration import label_spread as views
from udml_core.exploration.naming import NEIGHBORS, reach_of, symmetric_walk
from udml_core.methods.ssdml import SSDML
from udml_core.runs import Run
from udml_core.runs.search.naming import Reach

from .cached import dataset_of, load_retrieval, load_split
from .run_hash import RUN_HASH

N_NEIGHBORS = int(describe_field(SSDML, "n_neighbors").default)


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
    images = np.sort(load_split(run).train)
    return images, views.neighbor_rows(run.embeddings("final"), images, N_NEIGHBORS)


def assigned_now(dataset: Dataset) -> dict[int, str]:
    """Return the class assigned to each image, by index, in order of assignment."""
    return labels_by_index(dataset, assigned_labels(dataset))


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


def reach_in(run: Run, frame: str, gamma: float) -> Reach:
    """Return the function that computes how often walks of names end at some training images of an embedding."""
    return lambda labeled: _reach(run, frame, tuple(np.flatnonzero(labeled).tolist()), gamma)


@st.cache_resource(max_entries=4, show_spinner="Searching the nearest neighbors …", hash_funcs=RUN_HASH)
def _walk(run: Run, frame: str) -> sparse.csr_array:
    images = graph_of_run(run)[0]
    points = load_retrieval(run).frame(frame).take(images)
    return symmetric_walk(views.neighbor_rows(points, np.arange(len(images)), NEIGHBORS))


@st.cache_data(max_entries=1024, show_spinner=False, hash_funcs=RUN_HASH)
def _reach(run: Run, frame: str, labeled: tuple[int, ...], gamma: float) -> Array:
    walk = _walk(run, frame)
    return reach_of(walk, np.isin(np.arange(walk.shape[0]), labeled), gamma)
