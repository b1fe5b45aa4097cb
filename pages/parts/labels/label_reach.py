"""How far a label reaches: the share of random walks that end at the label.

The share is shown on the map, and by the number of steps.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from udml_core.base.arrays import Array, rows_of
from udml_core.exploration import label_spread as spreading
from udml_core.exploration.map_content import Color

from ..draw.figures import lines
from ..draw.gallery import gallery, tile_of
from ..draw.tables import table_behind
from ..maps.frame import UNITS, covering_map, link_to_map, show_distortion
from ..maps.scatter import Ring, draw_map
from ..shell.address import number_from_address, write_address
from .graph_view import GraphView

MOST_LABELS = 60
LOWEST_LOG_SHARE = -2


def label_reach(view: GraphView, gamma: float) -> int | None:
    """Show how far one label reaches.

    Returns:
        The index of the image that was just clicked on the map, or None.
    """
    labeled = spreading.labels_by_distance(view.graph.neighbors, view.graph.codes, view.row)
    if not len(labeled):
        st.caption("No image of this graph has a label.")
        return None
    row = _pick_label(view, labeled)
    shares = spreading.label_share(view.graph.neighbors, view.graph.codes, row, gamma)
    left, right = st.columns([3, 2], gap="medium")
    with right:
        _shares_by_steps(view, row, shares)
    with left:
        return _reach_map(view, shares, row)


def _pick_label(view: GraphView, labeled: Array) -> int:
    """Choose a labeled image; the address parameter `label` holds it.

    Args:
        view: The graph.
        labeled: Rows of the labeled images, nearest to the current image first.

    Returns:
        The row of the current label.
    """
    images = view.graph.images[labeled].tolist()
    wanted = int(number_from_address("label", images[0]))
    current = wanted if wanted in images else images[0]
    row = int(labeled[images.index(current)])
    listed = list(dict.fromkeys([*labeled[:MOST_LABELS].tolist(), row]))
    count = f"All {len(labeled):,}" if len(listed) == len(labeled) else f"{len(listed)} of {len(labeled):,}"
    st.caption(f"{count} labels, the fewest steps from the image first. Click a label to see from which images walks "
               "end there.", help="The share of the walks from an image that end at the current label, among its walks "
                                  "that end at any label.")
    tiles = [tile_of(view.dataset, int(view.graph.images[other]), badge=view.label_name(other)) for other in listed]
    clicked = gallery(view.dataset, tiles, "Images with a label", "affinity-labels", 60, chosen=current, height=150)
    if clicked is not None:
        write_address("label", str(clicked))
        st.rerun(scope="fragment")
    return row


def _shares_by_steps(view: GraphView, row: int, shares: Array) -> None:
    groups = spreading.mean_share_by_hops(spreading.hop_counts(view.graph.neighbors, row), shares)
    lines([group.hops for group in groups], [100 * group.share for group in groups],
          "walks that end at this label, %", "steps to the label", "affinity-hops")
    table_behind("Share by steps as a table", pd.DataFrame({
        "Steps": [group.hops for group in groups], "Images": [group.images for group in groups],
        "Mean share of walks to labels, %": [round(100 * group.share, 1) for group in groups]}))


def _reach_map(view: GraphView, shares: Array, row: int) -> int | None:
    """Show the map colored by the share of each image's walks that end at one label."""
    shown = covering_map(view.run, view.graph.images)
    if shown is None:
        link_to_map(view.run, "Compute a map of all images to see the label's reach")
        return None
    rows = rows_of(view.graph.images, shown.layout.indices)
    # Most shares are tiny, so that only a logarithmic color scale distinguishes them.
    orders = np.log10(np.maximum(100 * shares[rows], 10.0**LOWEST_LOG_SHARE))
    color = Color("share in %, log₁₀", np.where(rows >= 0, orders, np.nan), low=LOWEST_LOG_SHARE, high=2,
                  none="not reached")
    images = view.graph.images
    marks = [Ring(images[row], "label"), Ring(images[view.row], "image", images[view.graph.neighbors[view.row]])]
    clicked = draw_map(view.dataset, shown.layout, color, "Map colored by the share of walks that end at the label",
                       "affinity-map", marks=marks, height=430)
    show_distortion(shown)
    st.caption("No label reaches the gray images, which include all images outside the graph. Click a point to make "
               f"its image the current image. {UNITS}")
    return clicked
