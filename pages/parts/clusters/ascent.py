"""How images reach their clusters: ascent paths, and moves between clusters."""

from __future__ import annotations

import streamlit as st

from udml_core.base.arrays import rows_of
from udml_core.base.errors import counted
from udml_core.exploration import clusters as views

from ..draw.gallery import gallery, tile_of
from ..shell.run_status import escaped
from ..shell.views import view_link
from .clustering import Clustering

MOST_MOVED = 60


def show_path(clustering: Clustering, current: int) -> int | None:
    """Show the ascent path from the current image to its mode.

    Args:
        clustering: The clusters.
        current: Data set index of the current image.

    Returns:
        The data set index of the image that was clicked just now, or None.
    """
    dataset, indices = clustering.dataset, clustering.indices
    row = int(rows_of(indices, current))
    if row < 0:
        st.caption("The current image is not in the graph, which holds the training half only.")
        return None
    path = views.ascent_path(clustering.clusters, row)
    steps = ("is itself the image where the ascent ends" if len(path) == 1 else
             f"reaches the image where its ascent ends in {counted(len(path) - 1, 'step')}")
    st.markdown(f"**{escaped(dataset.caption(current))}** {steps}, the mode of its cluster. Badge: authority ω, "
                "how often random walks visit the image, as a multiple of the average.")
    tiles = [tile_of(dataset, indices[point], "query" if step == 0 else "",
                     f"ω {len(indices) * clustering.graph.authority[point]:.2f}") for step, point in enumerate(path)]
    clicked = gallery(dataset, tiles, "The ascent path, from the image to its mode", "clusters-path", 88)
    view_link("retrieval", label="Search with this image", icon=":material/image_search:",
                 query_params={"run": clustering.run.id, "add": str(current)})
    return clicked


def show_moved_count(clustering: Clustering) -> None:
    """Show how many images changed their cluster when the sliders moved last."""
    before = _clustering_before(clustering)
    if before is not None:
        moved = views.moved_points(before.clusters.labels, clustering.clusters.labels)
        st.caption(f"**{len(moved):,} images moved** to another cluster since ε = {before.epsilon:g}, "
                   f"γ = {before.gamma:g}.")


def show_moved(clustering: Clustering) -> int | None:
    """Show the images that changed their cluster when the sliders moved last.

    Returns:
        The data set index of the image that was clicked just now, or None.
    """
    before = _clustering_before(clustering)
    moved = None if before is None else views.moved_points(before.clusters.labels, clustering.clusters.labels)
    if moved is None or not len(moved):
        st.caption("Move ε to see which images change their cluster.")
        return None
    tiles = [tile_of(clustering.dataset, clustering.indices[row]) for row in moved[:MOST_MOVED]]
    return gallery(clustering.dataset, tiles, "Images that moved since the last slider values", "clusters-moved", 64,
                   height=190)


def _clustering_before(clustering: Clustering) -> Clustering | None:
    """Return the same graph's clusters at the previous slider values.

    Returns:
        The clusters; None before the first move.
    """
    now, before = st.session_state.get("clusters-moves", (None, None))
    if now is None or (now.run, now.graph_id, now.rescaled) != (
            clustering.run, clustering.graph_id, clustering.rescaled):
        now, before = clustering, None
    elif now != clustering:
        now, before = clustering, now
    st.session_state["clusters-moves"] = (now, before)
    return before
