"""The map, colored by cluster, below the numbers that describe the clusters."""

from __future__ import annotations

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array, Integers, rows_of
from udml_core.base.errors import counted
from udml_core.exploration.map_content import Color, Layout
from udml_core.runs.analyses import find_analysis
from udml_core.runs.search import SCOPE_WORDS, frame_words

from ..draw.palette import percent
from ..maps.frame import UNITS, MapFrame, distortion_words, link_to_map
from ..maps.numbering import keep_numbers, numbered_color
from ..maps.scatter import Ring, draw_map
from .ascent import show_moved_count
from .clustering import Clustering

MAP_KEY = "clusters-map"
HEIGHT = "max(430px, 100vh - 270px)"
"""Height of the map as a CSS length: to the end of the screen, as app.css has it, too."""


def show_numbers(clustering: Clustering) -> None:
    """Show the numbers that describe the clusters."""
    summary = clustering.summary
    metrics = [("Clusters", f"{summary.count - summary.singletons:,}",
                "Images whose ascents end at one image, the mode, are a cluster. Images alone are counted beside it."),
               ("Coverage", percent(100 * summary.coverage),
                "Share of the graph's images that are in clusters of two or more images."),
               ("Alone", counted(summary.singletons, "image"), "Images at which only their own ascent ends."),
               ("Largest", f"{int(summary.sizes.max()):,}",
                f"Images in the largest cluster, of the graph's {len(clustering.indices):,} images.")]
    if summary.purity is not None and summary.nmi is not None:
        metrics += [("Purity", percent(100 * summary.purity),
                     "Share of images that have the most frequent class of their cluster."),
                    ("NMI", percent(100 * summary.nmi),
                     "Normalized mutual information of clusters and classes.")]
    with st.container(horizontal=True, gap="small", key="clusters-numbers"):
        for label, value, description in metrics:
            st.metric(label, value, help=description, width="content")


def cluster_color(clustering: Clustering, indices: Array) -> Color:
    """Return the colors of images by cluster, which a cluster keeps on every map and while ε moves.

    Args:
        clustering: The clusters.
        indices: Data set indices (n,) of the images.
    """
    rows = rows_of(clustering.indices, indices)
    numbers = np.where(rows < 0, -1, cluster_numbers(clustering)[rows])
    return numbered_color("cluster", numbers, "alone or not clustered")


def cluster_numbers(clustering: Clustering) -> Integers:
    """Return the number (n,) of each image's cluster from 0, as the map colors it; −1 for an image alone."""
    labels = np.asarray(clustering.clusters.labels)
    assignment = np.where(clustering.summary.sizes[labels] > 1, labels, -1)
    return keep_numbers(f"{clustering.run.id} {clustering.graph_id} {clustering.rescaled}", assignment)


def _draw_clusters(clustering: Clustering, layout: Layout, current: int) -> None:
    """Draw the map, colored by cluster, with the edges that the ascents follow.

    Args:
        clustering: The clusters.
        layout: The positions of the images.
        current: Data set index of the current image, which is marked; −1 for none.
    """
    clusters, summary = clustering.clusters, clustering.summary
    points = rows_of(layout.indices, clustering.indices)
    ascending = np.flatnonzero(clusters.parents != np.arange(len(clustering.indices)))
    forest = np.stack([points[ascending], points[clusters.parents[ascending]]], axis=1)
    draw_map(clustering.dataset, layout, cluster_color(clustering, layout.indices),
             f"Map colored by the {summary.count} clusters at ε {clustering.epsilon:g}", MAP_KEY,
             segments=forest, marks=[Ring(current, "current")], height=HEIGHT)


def show_clusters(clustering: Clustering, shown: MapFrame | None, current: int, embedding: str) -> None:
    """Show the numbers in a row and the map below them, or how to get a map.

    Args:
        clustering: The clusters.
        shown: The map; None if the run has none of these images.
        current: Data set index of the current image; −1 for none.
        embedding: The embedding whose neighbor graph is clustered, in words.
    """
    show_numbers(clustering)
    if shown is not None:
        _draw_clusters(clustering, shown.layout, current)
        st.caption("Lines lead from each image to denser places, up to the peak of its cluster. "
                   f"{_gray(clustering, shown)}",
                   help=f"{_origin(clustering, shown, embedding)} {distortion_words(shown)} {UNITS}")
    else:
        st.info("This run has no map of its training images yet. Compute one on the page Explore to see the clusters "
                "on it.", icon=":material/lightbulb:")
        link_to_map(clustering.run, "Compute a map")
    st.caption(counted_words(clustering, embedding))
    show_moved_count(clustering)


def counted_words(clustering: Clustering, embedding: str) -> str:
    """Say which images are clustered by which embedding, and how many clusters are groups, which Lab counts.

    Args:
        clustering: The clusters.
        embedding: The embedding whose neighbor graph is clustered, in words.
    """
    summary = clustering.summary
    scope = SCOPE_WORDS[find_analysis(clustering.run, clustering.graph_id).spec().scope]
    return (f"{counted(summary.count - summary.singletons, 'group')} of two or more images, and "
            f"{counted(summary.singletons, 'image')} alone, of the {len(clustering.indices):,} images of the {scope}. "
            f"Clustered by: {embedding}. Lab counts the groups on its map of a sample.")


def _gray(clustering: Clustering, shown: MapFrame) -> str:
    """Say which images are gray, and how many of each kind."""
    single = clustering.summary.singletons
    outside = int((rows_of(clustering.indices, shown.projection.indices) < 0).sum())
    scope = SCOPE_WORDS[find_analysis(clustering.run, clustering.graph_id).spec().scope]
    parts = [f"{single:,} alone in their cluster"] * bool(single)
    parts += [f"{outside:,} outside the {scope}, which alone is clustered"] * bool(outside)
    return f"Gray images: {' and '.join(parts)}." if parts else ""


def _origin(clustering: Clustering, shown: MapFrame, embedding: str) -> str:
    """Say where the positions and the clusters come from, and of how many images."""
    scope = SCOPE_WORDS[find_analysis(clustering.run, clustering.graph_id).spec().scope]
    return (f"Positions: map ({frame_words(shown.name, clustering.run)}, {len(shown.projection.indices):,} images). "
            f"Colors: clusters of the neighbor graph ({embedding}, {scope}, {len(clustering.indices):,} images).")
