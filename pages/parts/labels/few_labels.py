"""The neighbor graph of a run, the assigned labels, and how far labels spread."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.base.declaration import describe_field
from udml_core.data.dataset import Dataset
from udml_core.data.given.labels import assigned_labels, labels_by_index
from udml_core.exploration import label_spread as views
from udml_core.methods.ssdml import SSDML
from udml_core.runs import Run

from ..draw.field_slider import field_slider
from ..shell.cached import dataset_of, load_split
from ..shell.run_hash import RUN_HASH

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


def ends_of(run: Run, codes: Array, classes: int, gamma: float) -> views.WalkEnds:
    """Return the classes that random walks on a run's graph end at.

    Args:
        run: The run.
        codes: Class number of each training image, −1 without a label, (p,).
        classes: The number of classes.
        gamma: Probability γ that a walk continues at each step.
    """
    return views.walk_ends_by_class(codes, classes, lambda labeled: _ends_among(
        run, tuple(np.flatnonzero(labeled).tolist()), gamma))


@st.cache_data(max_entries=64, show_spinner=False, hash_funcs=RUN_HASH)
def _ends_among(run: Run, labeled: tuple[int, ...], gamma: float) -> Array:
    neighbors = graph_of_run(run)[1]
    return views.end_probability(neighbors, np.isin(np.arange(len(neighbors)), labeled), gamma)


def gamma_slider(key: str, run_gamma: float | None = None) -> float:
    """Show a slider for γ, whose value the address holds.

    Args:
        key: The widget's key.
        run_gamma: The run's own γ, which is the default; SSDML's default if None.
    """
    field = describe_field(SSDML, "gamma")
    default = float(field.default if run_gamma is None else run_gamma)
    # Labels reach much farther at 0.999 than at 0.99, so a run's γ with more decimals gets a step as fine as its last.
    decimals = len(f"{default:f}".rstrip("0").partition(".")[2])
    finer = replace(field, shown=replace(field.shown, step=min(field.slider[2], 10.0**-decimals)))
    mark = "SSDML's default" if run_gamma is None else "this run"
    return field_slider(finer, key, default, "how far a label reaches", marks={default: mark})
