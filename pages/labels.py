"""Labels: assign classes to a few images and see the labels spread."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from pages.parts.draw.downloads import Download, share, table_file
from pages.parts.draw.gallery import selectable_gallery
from pages.parts.draw.palette import percent
from pages.parts.draw.run_header import run_header
from pages.parts.draw.sections import Section, show_sections
from pages.parts.draw.tables import table_behind
from pages.parts.labels.assignment import assignment_panel
from pages.parts.labels.board import MOST_TILES, Board, board_of, tile_to_label
from pages.parts.labels.graph_view import gamma_slider
from pages.parts.labels.spread_map import spread_map
from pages.parts.shell.cached import dataset_of
from pages.parts.shell.run_picker import pick_run
from pages.parts.shell.selection import selection
from pages.parts.shell.user_errors import show_user_errors
from udml_core.exploration import label_spread as views
from udml_core.runs import Run

COLUMNS = 3  # classes in a row of the assigned labels


def show_numbers(board: Board) -> None:
    """Show the number of labels and how far they spread."""
    trained = int((board.codes >= 0).sum())
    metrics = [("Labels", f"{len(board.labels):,}", "Images with a label."),
               ("Classes", f"{len(board.classes):,}", "Classes with at least one labeled image.")]
    if trained:
        metrics.append(("Reached", percent(100 * float((board.ends.best >= 0).mean())),
                        "Share of training images from which a random walk can end at a label."))
        metrics.append(("Certainty", percent(100 * float(np.nanmean(board.ends.certainty))),
                        "Mean share of the most probable class among the walks that end at a label."))
        share_correct = accuracy(board)
        if share_correct is not None:
            metrics.append(("Accuracy", percent(100 * share_correct),
                            "Unlabeled images whose most probable class is their class in the data set."))
    with st.container(horizontal=True):
        for label, value, meaning in metrics:
            st.metric(label, value, help=meaning, width="content")
    outside = len(board.labels) - trained
    if outside:
        st.caption(f"Labels of images outside this run's training half: {outside}. They are saved, but they do not "
                   "spread and are not used in training.")


def accuracy(board: Board) -> float | None:
    """Return the share of unlabeled images whose most probable class is correct.

    Returns:
        The share; None without classes.
    """
    if board.dataset.labels is None:
        return None
    return views.agreement(board.ends, board.codes, board.names, board.dataset.labels[board.images],
                           board.dataset.class_names)


def suggestion_list(board: Board) -> None:
    """Show the images to label next."""
    st.caption("Random walks that reach no label visit these images most often; the badge is rank and visits. Click an "
               "image to select it.", help="Each image is chosen as if the images before it were labeled, so that the "
                                           "suggestions lie apart.")
    tiles = [tile_to_label(board, image, f"{rank} · {suggestion.visits:,.0f}")
             for rank, (image, suggestion) in enumerate(zip(board.suggested_images, board.suggestions, strict=True), 1)]
    selectable_gallery(board.dataset, tiles, "Images to label next", "labels-next", selection(board.dataset), 96, 300)


def assigned_labels(board: Board) -> None:
    """Show the labeled images by class."""
    if not board.labels:
        st.caption("There are no labels yet. Label the suggested image, or select images on the map and label them "
                   "together.")
        return
    numbered = list(board.classes.items())
    for start in range(0, len(numbered), COLUMNS):
        for column, (name, number) in zip(st.columns(COLUMNS), numbered[start : start + COLUMNS], strict=False):
            images = [image for image, label in board.labels.items() if label == name]
            with column:
                st.markdown(f"**{number}. {name}** · {len(images):,}")
                selectable_gallery(board.dataset, [tile_to_label(board, image) for image in images[:MOST_TILES]],
                                   f"Images of the class {name}", f"labels-given-{number}", selection(board.dataset),
                                   60, 150)
    sizes = pd.Series(list(board.labels.values())).value_counts(sort=False)
    table_behind("Labels as a table", pd.DataFrame({"Class": sizes.index, "Labels": sizes.to_numpy()}))


def next_steps(board: Board) -> None:
    """Show the link that trains on the labels, and the download."""
    spec = board.run.spec()
    with st.container(horizontal=True, vertical_alignment="center"):
        if board.labels:
            st.page_link("pages/train.py", label=f"Train SSDML with the assigned labels ({len(board.labels):,})",
                         icon=":material/model_training:", query_params={
                             "dataset": spec.dataset, "method": "ssdml", "labels": "given",
                             "backbone": spec.encoder.backbone, "split": spec.split})
        images = np.array(list(board.labels), dtype=np.int64)
        share([Download("Labels as a table", "labels.csv", "text/csv", lambda: table_file(
            board.dataset, images, {"given": np.array(list(board.labels.values()), dtype=object)}))], "labels")


@st.fragment
@show_user_errors()
def explore(run: Run) -> None:
    """Show everything that changes with a label or γ."""
    dataset = dataset_of(run)
    left, right = st.columns([2, 3], gap="medium")
    with right:
        gamma = gamma_slider("labels-gamma")
    board = board_of(run, dataset, gamma)
    with left:
        assignment_panel(board, selection(dataset))
        show_numbers(board)
    with right:
        spread_map(board)
    show_sections([Section("next", "Images to label next", lambda: suggestion_list(board)),
                   Section("labels", "Assigned labels", lambda: assigned_labels(board))], "labels-section")
    next_steps(board)


st.title("Labels", help="Assign classes to a few images. The labels spread along the neighbor graph of an embedding, "
                        "and methods that learn from few labels can train on them. Each label is saved immediately.")
with show_user_errors():
    run = pick_run("Run whose embedding defines the neighbors")
    if run is not None:
        run_header(run)
        explore(run)
