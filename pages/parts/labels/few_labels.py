"""Few labels: the graph that they spread on, which of them a method is told, and what was given so far."""

from __future__ import annotations

import numpy as np
import streamlit as st

from pages.parts.base.address import number_from_address, write_address
from pages.parts.base.cached import dataset_of, load_split
from pages.parts.components.slider import live_slider
from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.data.given.labels import given, labels_by_index
from udml_core.declaration import describe_field
from udml_core.exploration import label_spread as views
from udml_core.methods import SSDML
from udml_core.runs import Run, find_run, runs_folder

N_NEIGHBORS = 10


def graph_of_run(run: Run) -> tuple[Array, Array]:
    """The images that train (p,), and the nearest of each among them in the embedding after training (p, k) as rows:
    the graph that SSDML would begin with there.

    Raises:
        UserError: the data set is not there, or has changed since.
    """
    dataset_of(run)
    return _graph(str(run.folder))


@st.cache_resource(max_entries=4, show_spinner="Searching each image's nearest …")
def _graph(folder: str) -> tuple[Array, Array]:
    run = find_run(folder, runs_folder())
    images = np.sort(load_split(run).train)
    return images, views.neighbor_rows(run.embeddings("final"), images, N_NEIGHBORS)


def assigned_now(dataset: Dataset) -> dict[int, str]:
    """The labels that people gave, by image position, in the order in which they were given."""
    return labels_by_index(dataset, given(dataset))


def ends_of(folder: str, codes: Array, classes: int, gamma: float) -> views.Ends:
    """Where walks on a run's graph end, for labels as codes of its images."""
    return views.ends_by_class(codes, classes, lambda labeled: _ends_among(
        folder, tuple(np.flatnonzero(labeled).tolist()), gamma))


@st.cache_data(max_entries=64, show_spinner=False)
def _ends_among(folder: str, labeled: tuple[int, ...], gamma: float) -> Array:
    neighbors = graph_of_run(find_run(folder, runs_folder()))[1]
    return views.ends_among(neighbors, np.isin(np.arange(len(neighbors)), labeled), gamma)


def gamma_slider(usual: float, key: str, marked: str) -> float:
    """γ, kept in the address, in steps as fine as the usual one needs: between 0.99 and 0.999 lies much."""
    field = describe_field(SSDML, "gamma")
    step = min(field.slider[2], 10.0 ** -len(f"{usual:f}".rstrip("0").partition(".")[2]))
    low, high = step, 1 - step
    gamma = live_slider(f"{field.label}: how far a label reaches", low, high,
                        number_from_address("gamma", usual, low, high), step, key, marks={usual: marked})
    write_address("gamma", f"{gamma:g}", f"{usual:g}")
    return gamma
