"""The colors of a map's points: classes, spread labels, clusters, distortion, weights, columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import cast

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array, rows_of
from udml_core.data.dataset import Dataset
from udml_core.exploration import map_values as views
from udml_core.exploration.density import density, neighbor_distances, outlier_score
from udml_core.exploration.grouping import from_center, similar_groups
from udml_core.exploration.map_content import Color
from udml_core.methods.rpml import RPML
from udml_core.methods.shared.authority_method import AuthorityMethod
from udml_core.numerics.explanations import Clusters, Triplets, Uncertainty
from udml_core.runs import Run
from udml_core.runs.search.names import FROZEN, TRAINED
from udml_core.runs.search.words import reads_words

from ..shell.address import choose_in_box
from ..shell.cached import load_retrieval, load_split
from ..shell.epochs import has_record, load_record
from ..shell.run_hash import RUN_HASH
from .columns import column_color, uploaded_columns
from .frame import MapFrame, load_map
from .spreading import SPREAD, has_few_labels, spread_color
from .uncertainty import LABEL, noise, noise_epoch
from .word_axis import AXIS, ask_for_axis, axis_values

KEPT, GROUP = "neighbors kept", "group"
GROUPS = 10
"""Number of groups of similar images, which the first colors of a palette tell apart."""
LONGEST = 24
"""Most letters of an image's name in a legend."""
COLOR_WORDS = {
    "class": "Class", "purity": "Purity: neighbors of the same class", "cluster": "Cluster of authority ascent",
    SPREAD: "Spread labels",
    GROUP: "Groups", "density": "Density", "outlier score": "Outlier score",
    "trustworthiness": "Trustworthiness", "continuity": "Continuity",
    KEPT: "Neighbors kept since the first embedding", "half": "Training or test half",
    "weight": "Mean triplet weight", LABEL: "Uncertainty σ",
    AXIS: "Text axis: between two texts",
}
NEEDS_NEIGHBORS = ("purity", "density", "outlier score", "trustworthiness", "continuity", KEPT)
"""Colorings that a map without stored neighbors does not have."""


def pick_color(shown: MapFrame, label: str, width: int, key: str = "choose-color") -> Color:
    """Choose the colors of the points; the address holds the choice.

    Args:
        shown: The map.
        label: The label, for screen readers.
        width: Width in pixels.
        key: The widget's key.
    """
    choices = colorings(shown)
    chosen = choose_in_box(label, "color", choices, next(iter(choices)), key=key, width=width,
                           label_visibility="collapsed", icon=":material/palette:",
                           format_func=lambda name: COLOR_WORDS.get(name, name))
    if chosen == AXIS:
        ask_for_axis()
    return choices[chosen]()


def default_color(shown: MapFrame) -> Color:
    """Return the colors that a map has at first."""
    return next(iter(colorings(shown).values()))()


def colorings(shown: MapFrame) -> dict[str, Callable[[], Color]]:
    """List the ways to color a layout, the default first.

    Returns:
        By name, functions that compute the colors when they are called.
    """
    if shown.is_quick:  # its images are not the fixed sample, which epochs stand for
        frames = ("final",) * len(shown.projection.frames)
        shown = replace(shown, projection=replace(shown.projection, frames=frames))
    dataset, indices, frame, projection = shown.dataset, shown.projection.indices, shown.frame, shown.projection
    choices: dict[str, Callable[[], Color]] = {}
    if dataset.labels is not None:
        labels = dataset.labels[indices]
        choices["class"] = lambda: Color("class", labels, dataset.class_names)
        choices["purity"] = lambda: _percent("purity", views.neighbor_purity(shown.neighbors, labels), 0)
    if has_few_labels(shown.run, dataset):
        choices[SPREAD] = lambda: spread_color(shown)
    is_trained = shown.run.spec().method != FROZEN or shown.name not in TRAINED  # else all neighbors are kept
    if len(projection.frames) > 1 and dataset.labels is None and is_trained:
        choices[KEPT] = lambda: _kept_color(shown)  # before clusters, whose colors change with the epoch
    if dataset.labels is None and not shown.is_large:  # so many embeddings take long to read
        choices[GROUP] = lambda: group_color(shown)
    if shown.epoch is not None or has_record(shown.run, Clusters):
        choices["cluster"] = lambda: _cluster_color(shown)
    if shown.epoch is not None or shown.name in ("initial", "final"):  # of other embeddings none is stored
        choices["density"] = lambda: _without_extremes("density", density(_distances(shown.run, shown.map_id, frame)))
        choices["outlier score"] = lambda: _without_extremes("outlier score", outlier_score(
            _distances(shown.run, shown.map_id, frame), shown.neighbors))
    if np.isfinite(projection.continuity[frame]).all():
        choices["trustworthiness"] = lambda: _percent("trustworthiness", projection.trustworthiness[frame])
        choices["continuity"] = lambda: _percent("continuity", projection.continuity[frame])
    if len(projection.frames) > 1 and is_trained:
        choices.setdefault(KEPT, lambda: _kept_color(shown))
    choices["half"] = lambda: _half_color(shown)
    if load_record(shown.run, _last_epoch(shown.run), Triplets) is not None:
        choices["weight"] = lambda: _weight_color(shown)
    if has_record(shown.run, Uncertainty):
        choices[LABEL] = lambda: _noise_color(shown)
    if reads_words(shown.run):
        choices[AXIS] = lambda: _axis_color(shown)
    for name in dataset.columns:
        choices[f"column: {name}"] = partial(_dataset_column, dataset, name, indices)
    for name, values in uploaded_columns(dataset).items():
        choices[name] = partial(column_color, name, values, indices)
    if shown.is_large or shown.is_quick:
        return {name: make for name, make in choices.items() if name not in NEEDS_NEIGHBORS}
    return choices


def _dataset_column(dataset: Dataset, name: str, indices: Array) -> Color:
    return column_color(f"column: {name}", dataset.columns[name], indices)


def _percent(label: str, shares: Array, low: float | None = None) -> Color:
    return Color(label, 100 * shares, unit=" %", low=low, high=100)


def _kept_color(shown: MapFrame) -> Color:
    return _percent(KEPT, views.neighbors_kept(shown.projection.neighbors[0], shown.neighbors), 0)


def _last_epoch(run: Run) -> int:
    return max(run.epoch_numbers(), default=0)


def _cluster_color(shown: MapFrame) -> Color:
    """Color by the clusters of an epoch's embedding, or else by the pseudo-labels."""
    if shown.epoch is not None:
        clusters = sample_clusters(shown.run, shown.epoch)
        return Color("cluster", clusters.labels, _cluster_names(clusters))
    pseudo_labels = training_clusters(shown.run)
    if pseudo_labels is None:
        return Color("cluster", np.full(len(shown.projection.indices), -1), ("",), none="no pseudo-labels")
    rows = rows_of(load_split(shown.run).train, shown.projection.indices)
    codes = np.where(rows >= 0, np.asarray(pseudo_labels.labels)[rows], -1)
    return Color("cluster", codes, _cluster_names(pseudo_labels), none="not in the training half")


def group_color(shown: MapFrame) -> Color:
    """Color by groups of similar images, the largest first."""
    return _group_color(shown.run, shown.name, shown.projection.indices, shown.dataset)


@st.cache_data(max_entries=16, show_spinner=False, hash_funcs=RUN_HASH)
def _group_color(run: Run, name: str, indices: Array, _dataset: Dataset) -> Color:
    return similar_color(load_retrieval(run).frames.vectors(name, indices), indices, _dataset)


def similar_color(rows: Array, images: Array, dataset: Dataset) -> Color:
    """Return groups of similar images as colors, the largest first, with their most typical image as name and picture.

    Only the groups of Label, which a user forms and names, have numbers.

    Args:
        rows: The embedding (n, d) of the images.
        images: Their indices (n,).
        dataset: The data set.
    """
    groups = similar_groups(rows, min(GROUPS, len(rows)))
    members = [np.flatnonzero(groups == number) for number in range(groups.max() + 1)]
    typical = [int(images[own[from_center(rows[own])[0]]]) for own in members]
    files = [dataset.names[image].rsplit("/", 1)[-1] for image in typical]
    return Color(GROUP, groups, tuple(f"like {name if len(name) <= LONGEST else f'{name[:LONGEST]}…'}"
                                      for name in files), pictures=tuple(typical))


@st.cache_data(max_size="128MB", show_spinner=False, hash_funcs=RUN_HASH)
def _distances(run: Run, map_id: str, frame: int) -> Array:
    """Return the distances (m, k) from each image of a layout to its nearest neighbors."""
    shown = load_map(run, map_id, frame)
    vectors = load_retrieval(run).frames.vectors(shown.name, shown.projection.indices)
    return neighbor_distances(vectors, shown.neighbors)


def _without_extremes(label: str, values: Array) -> Color:
    """Color numbers from the 2nd to the 98th percentile, so that few extremes do not take the whole scale."""
    low, high = np.percentile(values, [2, 98]).tolist()
    return Color(label, values, low=low, high=high)


def _axis_color(shown: MapFrame) -> Color:
    """Color by the difference of the cosines with two texts."""
    found = axis_values(shown)
    return Color(AXIS, np.full(len(shown.projection.indices), np.nan), none="type two texts") if found is None else (
        _without_extremes(*found))


def _cluster_names(clusters: Clusters) -> tuple[str, ...]:
    return tuple(f"cluster {number}" for number in range(len(clusters.modes)))


@st.cache_data(max_entries=8, show_spinner=False, hash_funcs=RUN_HASH)
def training_clusters(run: Run) -> Clusters | None:
    """Load the newest pseudo-labels of the training half; None without pseudo-labels."""
    records = (record for number in reversed(run.epoch_numbers()) for record in run.explanations(number))
    return next((record for record in records if isinstance(record, Clusters)), None)


@st.cache_data(max_entries=64, show_spinner=False, hash_funcs=RUN_HASH)
def sample_clusters(run: Run, epoch: int) -> Clusters:
    """Cluster the fixed sample's embedding of an epoch by authority ascent.

    `ascent_settings` provides ε and γ.
    """
    points = run.epoch_sample(epoch)
    settings = ascent_settings(run)
    return views.ascent(points, run.spec().build_method().graph_neighbors(len(points)), settings.epsilon,
                        settings.gamma)


def ascent_settings(run: Run) -> AuthorityMethod:
    """Return the run's method if it clusters by authority ascent, else RPML."""
    method = run.spec().build_method()
    return cast(AuthorityMethod, method) if method.clusters_by_ascent else RPML()


def _half_color(shown: MapFrame) -> Color:
    split = load_split(shown.run)
    trains = np.isin(shown.projection.indices, split.train)
    tests = np.isin(shown.projection.indices, split.test)
    codes = np.select([trains & tests, trains, tests], [2, 0, 1], -1)
    return Color("half", codes, ("training", "test", "both"), none="validation")


def _weight_color(shown: MapFrame) -> Color:
    record = load_record(shown.run, _last_epoch(shown.run), Triplets)
    assert record is not None
    train = load_split(shown.run).train
    weights = views.anchor_weights(record, len(train))
    rows = rows_of(train, shown.projection.indices)
    return Color("weight", np.where(rows >= 0, weights[rows], np.nan), none="no stored triplet")


def _noise_color(shown: MapFrame) -> Color:
    """Color by σ of the layout's epoch, or else of the epoch in the address."""
    sigma = noise(shown.run, noise_epoch(shown.run) if shown.epoch is None else shown.epoch)
    rows = rows_of(load_split(shown.run).train, shown.projection.indices)
    values = np.full(len(rows), np.nan) if sigma is None else np.where(rows >= 0, sigma[rows], np.nan)
    return Color(LABEL, values, none="no σ before training" if sigma is None else "not in the training half")
