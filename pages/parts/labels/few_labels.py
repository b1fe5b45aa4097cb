"""Few labels: the graph that they spread on, which of them a method is told, and what was given so far."""

from __future__ import annotations

from typing import get_args

import numpy as np
import streamlit as st

from pages.parts.base.cached import dataset_of, opened_split
from pages.parts.base.run_picker import in_address, into_address, number_in_address
from pages.parts.components.slider import live_slider
from pages.parts.kit.form import label_of, slider_range
from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.data.given.labels import by_position, given
from udml_core.data.label_budget import LabelSource
from udml_core.exploration import label_spread as views
from udml_core.methods import SSDML, Method, describe
from udml_core.runs import Run, find_run, runs_folder

N_NEIGHBORS = 10
MOST_PER_CLASS = 1000
SOURCES: tuple[LabelSource, ...] = get_args(LabelSource)
SOURCE_WORDS: dict[LabelSource, str] = {"drawn": "drawn from the data set's", "given": "those I gave"}


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
    images = np.sort(opened_split(run).train)
    return images, views.neighbor_rows(run.embeddings("final"), images, N_NEIGHBORS)


def given_now(dataset: Dataset) -> dict[int, str]:
    """The labels that people gave, by image position, in the order in which they were given."""
    return by_position(dataset, given(dataset))


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
    field = next(one for one in describe(SSDML) if one.name == "gamma")
    step = min(slider_range(field)[2], 10.0 ** -len(f"{usual:f}".rstrip("0").partition(".")[2]))
    low, high = step, 1 - step
    gamma = live_slider(f"{label_of(field)}: how far a label reaches", low, high,
                        number_in_address("gamma", usual, low, high), step, key, marks={usual: marked})
    into_address("gamma", f"{gamma:g}", f"{usual:g}")
    return gamma


def few_labels(method: type[Method], dataset: Dataset) -> tuple[LabelSource, int | None]:
    """Which labels a method that learns from few is told: drawn, and how many a class, or given; kept in the
    address."""
    if method.supervision != "few":
        return "drawn", None
    known = given_now(dataset)
    usual: LabelSource = "drawn" if dataset.labels is not None else "given"
    with st.container(border=True):
        source = st.segmented_control("Labels", SOURCES, default=in_address("labels", SOURCES, usual), required=True,
                                      format_func=SOURCE_WORDS.__getitem__, key=f"labels-source-{usual}") or usual
        into_address("labels", source, usual)
        if source == "drawn":
            count = st.number_input("Labels of each class", 1, MOST_PER_CLASS, None, 1, key="labels-per-class",
                                    placeholder="10, or 5 where classes have fewer than 100 images")
            return source, count
        st.caption(f"{len(known)} images have a label so far, in {len(set(known.values()))} classes. Those of the "
                   "training half are told to the method, and tell which epoch to keep; no other label is.")
        st.page_link("pages/labels.py", label="Give labels", icon=":material/new_label:")
    return source, None
