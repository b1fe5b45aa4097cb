"""Labels: assign classes to a few images and see the labels spread."""

from __future__ import annotations

import numpy as np
import streamlit as st

from pages.parts.draw.downloads import Download, share, table_file
from pages.parts.draw.palette import percent
from pages.parts.draw.run_header import run_header
from pages.parts.draw.sections import Section, show_sections
from pages.parts.labels.assignment import assignment_panel
from pages.parts.labels.board import Board, board_of
from pages.parts.labels.graph_view import gamma_slider
from pages.parts.labels.label_lists import assigned_labels, suggestion_list
from pages.parts.labels.spread_map import spread_map
from pages.parts.shell.cached import dataset_of
from pages.parts.shell.run_picker import pick_run
from pages.parts.shell.selection import selection
from pages.parts.shell.user_errors import show_user_errors
from udml_core.exploration import label_spread as views
from udml_core.runs import Run


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
