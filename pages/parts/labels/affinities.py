"""Affinities between an image and its neighbors, and the resulting triplets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from udml_core.exploration import affinity as views
from udml_core.exploration.gallery_content import Mark

from ..draw.gallery import clicked_tile, gallery, tile_of
from ..draw.palette import CLASSES, color_legend
from ..draw.tables import data_table, plain_table
from .ego_graph import show_ego
from .graph_view import GraphView


def ego_graphs(view: GraphView, part: views.Subgraph) -> None:
    """Show the graph around the current image before and after propagation.

    The affinities are drawn as the edges' colors and widths.
    """
    dataset, ego = view.dataset, views.ego_graph(part)
    rows = part.rows[np.append(0, ego.inner)]
    pictures = [dataset.images[int(image)] for image in view.graph.images[rows]]
    names = [view.label_name(row) for row in rows.tolist()]
    labeled = view.graph.codes[part.rows] >= 0
    for column, values, title, key in zip(st.columns(2), (ego.before, ego.after),
                                          ("Before propagation: W0, from labels alone", "After propagation: W"),
                                          ("affinity-before", "affinity-after"), strict=True):
        with column:
            show_ego(ego, values, pictures, names, labeled, title, key)
    st.caption("The image is in the center. Blue solid edges: similar, affinity above 0. Orange dashed edges: "
               "dissimilar, below 0. Green frames and squares: labeled images.", help=(
                   "The image's neighbors are around it, and their neighbors are farther out. Gray edges: affinity 0. "
                   "The width shows the magnitude, scaled in each drawing separately."))


def affinity_table(view: GraphView, part: views.Subgraph) -> None:
    """Show the affinities between the current image and its neighbors."""
    dataset = view.dataset
    captions = [dataset.caption(int(image)) for image in view.graph.images[part.rows[part.neighbors[0]]]]
    table = pd.DataFrame({"Neighbor, nearest first": captions, "W0": part.before[0], "W": part.after[0]})
    if view.trained is not None:
        table["W in training, on the whole graph"] = view.trained[view.row]
    data_table(table, hide_index=True, width="stretch")


def sorted_halves(view: GraphView, part: views.Subgraph) -> int | None:
    """Show the neighbors sorted by affinity: half positives, half negatives.

    Returns:
        The index of the image that was just clicked, or None.
    """
    rows, values = part.sorted_neighbors(0)
    half = len(rows) // 2
    st.caption("The neighbors with the larger affinity W, the badge, are positives, the other half negatives. "
               f"{_meaning_of_marks(view)}",
               help="The first positive and the first negative form a triplet with the image, then the second of both, "
                    "and so on. Click an image to make it the current image.")
    clicks = []
    halves: tuple[tuple[str, Mark, slice], ...] = (("Positives", "positive", slice(0, half)),
                                                   ("Negatives", "negative", slice(half, 2 * half)))
    for column, (word, role, of_half) in zip(st.columns(2), halves, strict=True):
        with column:
            st.markdown(f"**{word}**{view.agreement_words(role, rows[of_half])}")
            tiles = [tile_of(view.dataset, int(view.graph.images[row]), view.mark(row), f"{value:.4f}")
                     for row, value in zip(rows[of_half].tolist(), values[of_half].tolist(), strict=True)]
            clicks.append(gallery(view.dataset, tiles, f"{word} by affinity", f"affinity-{word.lower()}", 76))
    if view.classes[view.row] >= 0:
        color_legend(*CLASSES)
    _correct_triplets(view, part)
    return clicked_tile(clicks)


def _meaning_of_marks(view: GraphView) -> str:
    if view.dataset.labels is None and not view.label_name(view.row):
        return f"The image has none of the {view.label_words}, so no neighbor is marked ✓ or ✕."
    meaning = "Positives should have the image's class, negatives another."
    return meaning if view.dataset.labels is not None else f"{meaning} Here the {view.label_words} decide."


def _correct_triplets(view: GraphView, part: views.Subgraph) -> None:
    """Show how many triplets agree with the classes, or else with the labels.

    The same neighbors sorted by distance show what the labels add.
    """
    around = replace(part, after=views.by_distance(part.neighbors))
    truths = {f"Slider's γ, {len(part.rows):,} images around this image": views.subgraph_truth(part, view.classes),
              "Distance, the same images": views.subgraph_truth(around, view.classes)}
    if view.trained is not None:
        whole = view.graph.neighbors
        truths["Affinity in training, whole graph"] = views.triplet_truth(whole, view.trained, view.classes)
        truths["Distance, whole graph"] = views.triplet_truth(whole, views.by_distance(whole), view.classes)
    table = pd.DataFrame([(source, truth.triplets, truth.judged, *(round(100 * share, 1) for share in (
        truth.both, truth.positives, truth.false_negatives))) for source, truth in truths.items() if truth.triplets],
        columns=["Neighbors sorted by", "Triplets", "Judged", "Correct, %", "Positives of the anchor's class, %",
                 "Negatives of the anchor's class, %"])
    judged = "" if view.dataset.labels is not None else (
        f" These images have no classes, so only triplets whose three images have {view.label_words} are judged.")
    st.markdown("**How many triplets are correct?** In a correct triplet the positive has the anchor's class and the "
                f"negative has another class.{judged}")
    plain_table(table)
    st.caption("Half of the neighbors always become negatives. If all neighbors have the anchor's class, every triplet "
               "is wrong, and training pushes true neighbors apart. If affinity and distance give nearly the same "
               "shares, the triplets contain almost no information from the labels.")
