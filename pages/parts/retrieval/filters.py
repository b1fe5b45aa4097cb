"""Among which images the page Retrieval searches: a half, classes, clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np
import streamlit as st

from pages.parts.base.address import (
    choice_from_address,
    indices_from_address,
    join_indices,
    number_from_address,
    write_address,
)
from pages.parts.base.analyses import load_indices, load_result, rows_of
from pages.parts.base.cached import load_split
from pages.parts.map.shown_map import training_clusters
from udml_core.analyses import list_analyses
from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.explanations import Clusters
from udml_core.exploration.clusters import Graph, cluster_purity
from udml_core.retrieval import Gallery, Retrieval

GALLERIES: tuple[Gallery, ...] = get_args(Gallery)
GALLERY_WORDS: dict[Gallery, str] = {"test": "test half", "all": "all images"}
OFFERED = 300
EPSILON, GAMMA = 0.65, 100.0
"""RPML's defaults, for runs of a method without clusters of its own."""


def pick_filter(opened: Retrieval, asked: Sequence[int]) -> tuple[int, Gallery, Array | None]:
    """How many to find, the gallery, and which of its images may be found, (n,) bool or None; kept in the address.

    Args:
        asked: the query's images in the data set; their clusters are offered first.
    """
    dataset = opened.dataset
    masks = []
    columns = st.columns([4, 5, 6, 6], gap="medium", vertical_alignment="bottom")
    with columns[0]:
        k = st.slider("How many", 5, 50, round(number_from_address("k", 10, 5, 50)), key="how-many")
        write_address("k", str(k), "10")
    with columns[2]:
        classes = _chosen_classes(dataset)
    with columns[3]:
        clusters = _chosen_clusters(opened, asked)
    with columns[1]:
        gallery: Gallery = st.segmented_control(
            "Search in", GALLERIES, default=choice_from_address("gallery", GALLERIES, "test"), required=True, key="search-in",
            format_func=GALLERY_WORDS.__getitem__) or "test"
        write_address("gallery", gallery, "test")
    if clusters is not None and gallery == "test":
        st.caption("Clusters group training images only, so all images are searched, not the test half.")
    if classes and dataset.labels is not None:
        masks.append(np.isin(dataset.labels, classes))
    if clusters is not None:
        masks.append(clusters)
    return k, "all" if clusters is not None else gallery, np.all(masks, axis=0) if masks else None


def _chosen_classes(dataset: Dataset) -> list[int]:
    if dataset.labels is None:
        return []
    wanted = indices_from_address("classes", len(dataset.class_names))
    chosen = st.multiselect("Only these classes", range(len(dataset.class_names)), wanted, placeholder="every class",
                            format_func=dataset.class_names.__getitem__, key=f"classes-{dataset.fingerprint[:8]}")
    write_address("classes", join_indices(chosen))
    return chosen


def _chosen_clusters(opened: Retrieval, asked: Sequence[int]) -> Array | None:
    """Which images lie in the chosen clusters, (n,) bool; None where none is chosen."""
    found = clusters_of(opened)
    if found is None:
        return None
    indices, clusters = found
    labels, dataset = np.asarray(clusters.labels), opened.dataset
    sizes = np.bincount(labels)
    summits = indices[np.asarray(clusters.modes)]
    words = [f"{size:,} images" for size in sizes]
    if dataset.labels is not None:
        best, shares = cluster_purity(clusters, dataset.labels[indices])
        words = [f"{word}, {100 * share:.0f} % {dataset.class_names[label]}"
                 for word, share, label in zip(words, shares, best, strict=True)]
    own = _clusters_at(indices, labels, asked)
    wanted = _clusters_at(indices, labels, indices_from_address("clusters", len(dataset)))
    largest = np.argsort(-sizes, kind="stable")[:OFFERED].tolist()
    chosen = st.multiselect(
        "Only these clusters", list(dict.fromkeys([*own, *wanted, *largest])), wanted, placeholder="every image",
        format_func=lambda one: f"{'of the query: ' if one in own else ''}{words[one]} (summit {summits[one]})",
        key=f"clusters-{opened.run.id}", help="Pseudo-labels group training images only: with a cluster chosen, all "
        "images are searched instead of the test half.")
    write_address("clusters", join_indices(summits[chosen].tolist()))
    if not chosen:
        return None
    mask = np.zeros(len(dataset), dtype=bool)
    mask[indices[np.isin(labels, chosen)]] = True
    return mask


def _clusters_at(indices: Array, labels: Array, images: Sequence[int]) -> list[int]:
    """The clusters that images lie in, of those that lie in one."""
    rows = rows_of(indices, np.array(images, dtype=np.int64))
    return list(dict.fromkeys(labels[rows[rows >= 0]].tolist()))


def clusters_of(opened: Retrieval) -> tuple[Array, Clusters] | None:
    """The clusters that training ended with, else those of the run's neighbor graph; and of which images they are."""
    trained = training_clusters(opened.run)
    if trained is not None:
        return load_split(opened.run).train, trained
    graph = next((one for one in list_analyses(opened.run, "graph") if one.is_done()), None)
    if graph is None:
        return None
    result = load_result(opened.run, graph.id)
    assert isinstance(result, Graph)
    return load_indices(opened.run, graph.id), result.clusters(EPSILON, GAMMA)
