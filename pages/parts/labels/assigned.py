"""The assigned labels: the labeled images by class, what they say of the embedding, and which may be wrong."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import streamlit as st

from udml_core.exploration.assigned import AssignedMeasures, assigned_measures, assigned_words, doubtful_labels
from udml_core.runs import Run

from ..draw.downloads import Download, share, table_file
from ..draw.gallery import pair_gallery, selectable_gallery
from ..draw.tables import table_behind
from ..shell.cached import load_retrieval
from ..shell.run_hash import RUN_HASH
from ..shell.run_status import escaped
from ..shell.selection import selection
from ..shell.views import view_link
from .board import MOST_TILES, Board, tile_to_label

COLUMNS = 2
"""Classes in a row."""
MOST_DOUBTFUL, MOST_CONFUSED = 60, 5


def show_assigned_labels(board: Board) -> None:
    """Show the labeled images by class, the measures among them, and labels that may be wrong."""
    if not board.labels:
        st.caption("There are no labels yet. Open a group or select images on the map, and name them.")
        return
    _next_steps(board)
    _show_measures(board)
    numbered = list(board.classes.items())
    for start in range(0, len(numbered), COLUMNS):
        for column, (name, number) in zip(st.columns(COLUMNS), numbered[start : start + COLUMNS], strict=False):
            images = [image for image, label in board.labels.items() if label == name]
            with column:
                st.markdown(f"**{number}. {escaped(name)}** · {len(images):,}")
                selectable_gallery(board.dataset, [tile_to_label(board, image) for image in images[:MOST_TILES]],
                                   f"Images of the class {name}", f"labels-given-{number}", selection(board.dataset),
                                   60, 150)
    sizes = pd.Series(list(board.labels.values())).value_counts(sort=False)
    table_behind("Labels as a table", pd.DataFrame({"Class": sizes.index, "Labels": sizes.to_numpy()}))


def _next_steps(board: Board) -> None:
    """Show the link that trains on the labels, and the download."""
    spec = board.run.spec()
    images = np.array(list(board.labels), dtype=np.int64)
    with st.container(horizontal=True, vertical_alignment="center"):
        if board.spreads:
            view_link("train", label=f"Train with {len(images):,} label{'s' if len(images) != 1 else ''}",
                      icon=":material/model_training:", query_params={
                          "dataset": spec.dataset, "method": "ssdml", "labels": "given",
                          "backbone": spec.encoder.backbone, "split": spec.split})
        share([Download("Labels as a table", "labels.csv", "text/csv", lambda: table_file(
            board.dataset, images, {"given": np.array(list(board.labels.values()), dtype=object)}))], "labels")


def _show_measures(board: Board) -> None:
    """Show R@1 and MAP@R among the labeled images, and the labeled images nearest to another class."""
    labels = tuple(sorted(board.labels.items()))
    measures, doubtful = _measured(board.run, board.frame, labels)
    if measures is None:
        return
    st.markdown(f":material/sell: {assigned_words(measures, board.run.spec().labels == 'given')}")
    if not len(doubtful):
        return
    with st.expander(f"Labels to check ({len(doubtful):,})", icon=":material/rule:"):
        confused = Counter(tuple(sorted(board.labels[image] for image in pair)) for pair in doubtful.tolist())
        st.caption("Most often: " + " · ".join(
            f"*{escaped(first)}* and *{escaped(second)}* {count:,} ×"
            for (first, second), count in confused.most_common(MOST_CONFUSED)))
        shown = doubtful[:MOST_DOUBTFUL]
        badges = [f"{board.labels[int(left)]} | {board.labels[int(right)]}" for left, right in shown]
        pair_gallery(board.dataset, shown, np.zeros(len(shown), bool), badges, "Labels to check", "labels-doubtful",
                     height=320)
        st.caption("A labeled image and the most similar labeled image, whose class differs; the most similar pair "
                   "first. One of the two labels may be wrong, or the embedding confuses the classes.")


@st.cache_data(max_entries=64, show_spinner=False, hash_funcs=RUN_HASH)
def _measured(run: Run, frame: str, labels: tuple[tuple[int, str], ...]) -> tuple[AssignedMeasures | None, np.ndarray]:
    embedding, known = load_retrieval(run).frame(frame), dict(labels)
    images = np.intersect1d(np.array(sorted(known)), embedding.indices)
    rows, names = embedding.take(images), {row: known[int(image)] for row, image in enumerate(images)}
    measures = assigned_measures(rows, names)
    return measures, images[doubtful_labels(rows, [names[row] for row in range(len(images))])]

