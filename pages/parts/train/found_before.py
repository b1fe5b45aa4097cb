"""What the search finds before training: a few queries of the map with their nearest images."""

from __future__ import annotations

import numpy as np
import streamlit as st

from udml_core.base.arrays import evenly_spaced
from udml_core.data.dataset import Dataset
from udml_core.exploration.neighborhoods import nearest_rows
from udml_core.runs.search.asked import asked_images

from ..draw.gallery import gallery, mark_of
from .start_map import Drawn
from .tiles import small_tile

QUERIES, NEAR = 5, 4
"""Queries, and nearest images of each."""


def found_rows(drawn: Drawn) -> list[tuple[int, list[int]]]:
    """Return evenly spaced queries and the images nearest to each by the features, as data set indices.

    Images that the audit lists under Quality, such as black ones, are no queries.
    """
    rows = np.flatnonzero(asked_images(drawn.dataset)[drawn.images])
    rows = rows if len(rows) else np.arange(len(drawn.images))
    return [(int(drawn.images[row]), [int(image) for image in drawn.images[nearest_rows(drawn.rows, int(row), NEAR)]])
            for row in rows[evenly_spaced(len(rows), QUERIES)]]


def show_found(dataset: Dataset, drawn: Drawn, words: str) -> None:
    """Show the queries and their nearest images, each row led by its query.

    Args:
        dataset: The data set.
        drawn: The images of the map and their features.
        words: Name of the features.
    """
    rows = found_rows(drawn)
    marks = [mark_of(dataset, image, query) for query, near in rows for image in near]
    hits = "" if dataset.labels is None else f": {marks.count('hit')} of {len(marks)} have the query's class"
    st.caption(f"**Found before training**, by {words}{hits}. Each row begins with its query.")
    tiles = []
    for query, near in rows:
        tiles += [small_tile(dataset, query, "query"),
                  *(small_tile(dataset, image, mark_of(dataset, image, query)) for image in near)]
    gallery(dataset, tiles, "Queries and their nearest images before training", "lab-found", 40, columns=NEAR + 1)
