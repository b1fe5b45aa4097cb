"""Filters of the search: the number of hits, the gallery, classes and clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array, rows_of
from udml_core.base.declaration import describe_field
from udml_core.data.dataset import Dataset
from udml_core.exploration.clusters import Graph, cluster_purity
from udml_core.methods.rpml import RPML
from udml_core.numerics.explanations import Clusters
from udml_core.runs import Run, runs_folder
from udml_core.runs.aims import kept_aim
from udml_core.runs.analyses import REFINED, finished_analyses
from udml_core.runs.analyses.kinds.graph import NeighborGraph
from udml_core.runs.search import FINAL, Gallery, Retrieval
from udml_core.runs.search.copies import known_copies
from udml_core.work.jobs.raced import group_size_of

from ..data.columns import value_widgets
from ..data.copies import counted_copies
from ..maps.coloring import training_clusters
from ..shell.address import choose_segment, indices_from_address, join_indices, write_address
from ..shell.analyses import load_indices, load_result
from ..shell.cached import load_split

GALLERIES: tuple[Gallery, ...] = get_args(Gallery)[::-1]
GALLERY_WORDS: dict[Gallery, str] = {"test": "test half", "all": "all images"}
COUNT = "k"
"""Key of the number of results, and its parameter in the address."""
COPIES = "copies"
"""Address parameter that shows copies."""
FIRST = 20
"""Results at first, which fill two rows; half as many with classes, whose hits are counted."""
MORE = (50, 100, 200)
"""Numbers of results that a button below the results offers one after the other."""
MOST_OFFERED = 300
"""Most clusters in the list; the largest are offered."""


@dataclass(frozen=True)
class Filter:
    """What a search returns.

    Attributes:
        k: The number of hits.
        gallery: The images that are searched.
        allowed: (n,) bool: the images that may be returned; None for all.
        copies: Number of copies that are not shown beside the first of them.
    """

    k: int
    gallery: Gallery
    allowed: Array | None
    copies: int = 0

    @property
    def words(self) -> str:
        """How many copies are not shown, in a sentence; empty if all are."""
        shown = "is" if self.copies == 1 else "are"
        return f"{counted_copies(self.copies)} {shown} not shown: see Filters." if self.copies else ""


def filter_widgets(retrieval: Retrieval) -> list[str]:
    """Return the keys of the filters' widgets."""
    return [COUNT, "search-in", _classes_key(retrieval.dataset), _clusters_key(retrieval), _copies_key(retrieval)]


def _classes_key(dataset: Dataset) -> str:
    return f"classes-{dataset.fingerprint[:8]}"


def _clusters_key(retrieval: Retrieval) -> str:
    return f"clusters-{retrieval.run.id}"


def _copies_key(retrieval: Retrieval) -> str:
    return f"copies-{retrieval.dataset.fingerprint[:8]}"


def choose_filter(retrieval: Retrieval, query_images: Sequence[int]) -> Filter:
    """Choose number of hits, gallery, classes and clusters; the address holds them.

    Args:
        retrieval: The search of a run.
        query_images: Indices of the query's data set images; their clusters are offered first.
    """
    first = FIRST if retrieval.dataset.labels is None else FIRST // 2
    k = st.slider("Number of results", 5, MORE[-1], first, key=COUNT, bind="query-params")
    gallery: Gallery = "all"
    if retrieval.split.name != "all":
        gallery = choose_segment("Search in", "gallery", GALLERIES, "all", key="search-in",
                                 format_func=GALLERY_WORDS.__getitem__,
                                 help="Evaluation always uses the test half alone, whatever is searched here.")
    classes = _choose_classes(retrieval.dataset)
    in_clusters = _choose_clusters(retrieval, query_images)
    if in_clusters is not None and gallery == "test":
        st.caption("Clusters contain training images only, so all images are searched instead of the test half.")
    masks = []
    if classes and retrieval.dataset.labels is not None:
        masks.append(np.isin(retrieval.dataset.labels, classes))
    if in_clusters is not None:
        masks.append(in_clusters)
    if (with_values := value_widgets(retrieval.dataset)) is not None:
        masks.append(with_values)
    copies = _choose_copies(retrieval)
    if copies.any():
        masks.append(~copies)
    return Filter(k, "all" if in_clusters is not None else gallery, np.all(masks, axis=0) if masks else None,
                  int(copies.sum()))


def _choose_copies(retrieval: Retrieval) -> Array:
    """Choose whether known copies are shown beside the first of them, where no classes are; the address holds it.

    Returns:
        (n,) bool: which images are not shown.
    """
    copies, hidden = later_copies(retrieval), np.zeros(len(retrieval.dataset), dtype=bool)
    if not copies.any():
        return hidden
    shown = st.toggle(f"Show copies ({copies.sum():,})", st.query_params.get(COPIES) == "all",
                      key=_copies_key(retrieval),
                      help="The audit on Data found them: images of equal content, and near-duplicates.")
    write_address(COPIES, "all" if shown else "")
    return hidden if shown else copies


def later_copies(retrieval: Retrieval) -> Array:
    """Return which searched images (n,) bool are known copies of an earlier searched image; none with classes."""
    later = np.zeros(len(retrieval.dataset), dtype=bool)
    if retrieval.dataset.labels is None and not retrieval.dataset.is_large:
        searched = np.flatnonzero(retrieval.searched(FINAL, "all"))
        first = np.unique(known_copies(retrieval.dataset, runs_folder())[searched], return_index=True)[1]
        later[np.delete(searched, first)] = True
    return later


def offer_more(run: Run, search_filter: Filter, shown: int) -> None:
    """Show the buttons that add results, unless there are no more.

    Args:
        run: The run that is searched.
        search_filter: What the search returns.
        shown: The largest number of results of a ranking.
    """
    more = next((count for count in MORE if count > search_filter.k), None)
    if more is None or shown < search_filter.k:
        return
    group = 0 if kept_aim(run.root, run.spec().dataset) == "first" else group_size_of(run)
    if search_filter.k < group <= MORE[-1]:
        st.button(f"Show a group (a guess: {group})", key="results-of-group", icon=":material/select_all:",
                  on_click=_set_count, args=(group,),
                  help=f"A typical image has about {group} images near it. A kind can have more: go on while the last "
                       "results are right.")
    st.button("Show more", key="retrieval-more", icon=":material/expand_more:", on_click=_set_count, args=(more,),
              help=f"Shows the {more} nearest images.")


def _set_count(count: int) -> None:
    st.session_state[COUNT] = count


def _choose_classes(dataset: Dataset) -> list[int]:
    if dataset.labels is None:
        return []
    wanted = indices_from_address("classes", len(dataset.class_names))
    chosen = st.multiselect("Only these classes", range(len(dataset.class_names)), wanted, placeholder="every class",
                            format_func=dataset.class_names.__getitem__, key=_classes_key(dataset))
    write_address("classes", join_indices(chosen))
    return chosen


def _choose_clusters(retrieval: Retrieval, query_images: Sequence[int]) -> Array | None:
    """Choose clusters; the address holds a mode of each.

    Returns:
        (n,) bool: which images are in the chosen clusters; None if no cluster is chosen.
    """
    known = clusters_of(retrieval)
    if known is None:
        return None
    indices, clusters = known
    labels, count = np.asarray(clusters.labels), len(retrieval.dataset)
    sizes = np.bincount(labels)
    modes = indices[np.asarray(clusters.modes)]
    words = _cluster_words(retrieval.dataset, indices, clusters, sizes)
    of_query = _clusters_of_images(indices, labels, query_images)
    wanted = _clusters_of_images(indices, labels, indices_from_address("clusters", count))
    largest = np.argsort(-sizes, kind="stable")[:MOST_OFFERED].tolist()
    chosen = st.multiselect(
        "Only these clusters", list(dict.fromkeys([*of_query, *wanted, *largest])), wanted, placeholder="every image",
        format_func=lambda cluster: (f"{'of the query: ' if cluster in of_query else ''}{words[cluster]} "
                                     f"(mode {modes[cluster]})"),
        key=_clusters_key(retrieval), help="Clusters contain training images only: with a cluster, all "
        "images are searched instead of the test half.")
    write_address("clusters", join_indices(modes[chosen].tolist()))
    if not chosen:
        return None
    mask = np.zeros(count, dtype=bool)
    mask[indices[np.isin(labels, chosen)]] = True
    return mask


def _cluster_words(dataset: Dataset, indices: Array, clusters: Clusters, sizes: Array) -> list[str]:
    """Return each cluster's size and, with classes, its purity."""
    words = [f"{size:,} images" for size in sizes]
    if dataset.labels is None:
        return words
    majority, purity = cluster_purity(clusters, dataset.labels[indices])
    return [f"{word}, {100 * share:.1f} % of class {dataset.class_names[label]}"
            for word, share, label in zip(words, purity, majority, strict=True)]


def _clusters_of_images(indices: Array, labels: Array, images: Sequence[int]) -> list[int]:
    """Return the clusters of images; an image without a cluster is ignored."""
    rows = rows_of(indices, np.array(images, dtype=np.int64))
    return list(dict.fromkeys(labels[rows[rows >= 0]].tolist()))


def clusters_of(retrieval: Retrieval) -> tuple[Array, Clusters] | None:
    """Return the indices of clustered images and their clusters.

    Training's last clusters, else the clusters of a finished neighbor graph of an embedding that is not refined, at
    RPML's default ε and γ.
    """
    trained = training_clusters(retrieval.run)
    if trained is not None:
        return load_split(retrieval.run).train, trained
    graph = next((analysis for analysis in finished_analyses(retrieval.run, NeighborGraph)
                  if not analysis.spec().frames[0].startswith(REFINED)), None)
    if graph is None:
        return None
    result = load_result(retrieval.run, graph.id)
    assert isinstance(result, Graph)
    epsilon, gamma = (describe_field(RPML, name).default for name in ("epsilon", "gamma"))
    return load_indices(retrieval.run, graph.id), result.clusters(epsilon, gamma)
