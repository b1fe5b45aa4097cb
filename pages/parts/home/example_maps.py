"""Small pictures of the examples: the map before and after training, side by side."""

from __future__ import annotations

import numpy as np
import streamlit as st
from PIL import Image, ImageDraw

from udml_core.base.errors import UserError
from udml_core.runs import Run
from udml_core.runs.analyses import finished_maps

from ..draw.palette import BEFORE
from ..draw.pictures import points_picture
from ..shell.analyses import load_projection
from ..shell.cached import dataset_of, load_split
from ..shell.run_hash import RUN_HASH

ENDS = ("initial", "final")
SIDE, GAP = 150, 64
"""Half the pixels of a map's side, and pixels between two maps."""
MOST_POINTS = 600


@st.cache_data(max_entries=16, show_spinner=False, hash_funcs=RUN_HASH)
def maps_of(run: Run) -> Image.Image | None:
    """Draw test images as points in the color of their class, before and after training; None without such a map."""
    found = next((map_.id for map_ in finished_maps(run) if map_.spec().frames == ENDS), None)
    try:
        labels = dataset_of(run).labels
        if found is None or labels is None:
            return None
        projection = load_projection(run, found)
    except UserError:
        return None
    rows = np.flatnonzero(np.isin(projection.indices, load_split(run).test))[:MOST_POINTS]
    pictures = [points_picture(positions[rows], labels[projection.indices[rows]], SIDE, 3.0)
                for positions in projection.positions]
    both = Image.new("RGBA", (4 * SIDE + GAP, 2 * SIDE), (0, 0, 0, 0))
    for place, picture in enumerate(pictures):
        both.paste(picture, (place * (2 * SIDE + GAP), 0))
    _draw_arrow(both)
    return both


def _draw_arrow(picture: Image.Image) -> None:
    """Draw an arrow in the gap between both maps."""
    pen, y, left, right = ImageDraw.Draw(picture), SIDE, 2 * SIDE + 14, 2 * SIDE + GAP - 14
    pen.line([(left, y), (right, y)], BEFORE, 4)
    pen.line([(right - 12, y - 12), (right, y), (right - 12, y + 12)], BEFORE, 4, joint="curve")
