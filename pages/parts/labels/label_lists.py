"""Galleries of the images to label next and of the assigned labels."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from ..draw.gallery import selectable_gallery
from ..draw.tables import table_behind
from ..shell.selection import selection
from .board import MOST_TILES, Board, tile_to_label

COLUMNS = 3


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
