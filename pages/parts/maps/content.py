"""The content of a map of a data set, with its classes and images."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import streamlit as st

from udml_core.base.components import Message
from udml_core.data.dataset import Dataset
from udml_core.exploration.map_content import Color, Layout, codes_array, points_header

from ..draw.thumbnails import all_sheets
from ..shell.cached import load_version
from ..shell.selection import Selection


def map_header(message: Message, dataset: Dataset, layout: Layout, color: Color, selected: Selection,
               images: bool) -> dict[str, Any]:
    """Describe the points of a map for the browser.

    Args:
        message: The message that carries or refers to the arrays.
        dataset: The data set.
        layout: The positions of the points.
        color: The colors of the points.
        selected: The data set's selection.
        images: Whether the points have images to show.
    """
    whole = np.array_equal(layout.indices, np.arange(len(dataset)))
    labels = dataset.labels
    rows = np.flatnonzero(np.isin(layout.indices, selected.ids)) if len(selected.ids) else selected.ids
    classes = None if labels is None else codes_array(labels[layout.indices], len(dataset.class_names))
    return points_header(message, layout, color, rows, selected.revision, whole) | {
        "classLabel": "class", "classes": message.once(classes),
        "classNames": [] if labels is None else list(dataset.class_names),
        "names": message.url(_names(dataset.name, dataset.fingerprint), "application/json")
        if images and not dataset.is_large else None,
        "sheets": all_sheets(message, dataset) if images and not dataset.is_large else None,
    }


@st.cache_resource(max_entries=4, show_spinner=False)
def _names(name: str, fingerprint: str) -> bytes:
    return json.dumps(load_version(name, fingerprint).names).encode()
