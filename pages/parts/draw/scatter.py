"""The map: points drawn on the GPU, linked with every other view of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.runs.analyses import ImageGrid

from ..shell.run_picker import open_search
from ..shell.selection import Selection, select
from .image_grid import seams
from .map_content import Color, Layout, map_header, row_array
from .transport import Message, component, unpack_mask

HTML = """<div class="scatter" role="group"><div class="layout">
<div class="stage"><canvas class="points" role="img"></canvas>
<canvas class="overlay" tabindex="0" role="application" aria-roledescription="map"
  aria-label="Map. Arrow keys move, plus and minus zoom, 0 shows all points, Enter opens the image in the middle, Q
  searches with it.">
</canvas>
<div class="tools" role="toolbar" aria-label="Map tools"></div>
<div class="tip" hidden><canvas width="112" height="112"></canvas><div></div></div></div>
<div class="side"><div class="summary" role="status" aria-live="polite"></div>
<div class="legend" role="group" aria-label="Legend"></div></div>
</div></div>
"""


def scatter(dataset: Dataset, layout: Layout, color: Color, selected: Selection, label: str, key: str, *,
            segments: Array | None = None, marks: Sequence[Mapping[str, Any]] = (),
            placed: Sequence[Mapping[str, Any]] = (), height: int = 560, linked: bool = False,
            images: bool = True, grid: ImageGrid | None = None, legend_below: bool = False) -> int | None:
    """Show a map.

    Points selected on it become the data set's selection (see `shell.selection`). A right-click, a long
    press or the key Q opens the page Retrieval with that image as the query.

    Args:
        dataset: The data set.
        layout: The positions of the points.
        color: The colors of the points.
        selected: The data set's selection.
        label: What the map shows, for screen readers.
        key: The widget's key.
        segments: Pairs of rows to join by a line, (s, 2), such as an ascent forest.
        marks: {row, word, lines: rows} drawn above the points.
        placed: {at: [x, y], word} for new images, which are not points.
        height: Height in pixels.
        linked: Whether another map on the page shows the same selection.
        images: Whether the points have images to show.
        grid: The image grid to draw; `layout` must then come from `grid_layout`.
        legend_below: Whether the legend lies below the map, which then has the whole width.

    Returns:
        The data set index of the image that was clicked just now, or None.
    """
    message = Message()
    header = map_header(message, dataset, layout, color, selected, images) | {
        "label": label, "height": height, "segments": message.once(row_array(segments)), "marks": list(marks),
        "placed": list(placed), "linked": linked, "below": legend_below, "group": dataset.fingerprint[:8],
        "camera": _camera(key), "cameraKey": f"camera-{key}", "grid": None if grid is None else seams(message, grid)}
    count = len(layout.indices)
    result = component("scatter", HTML)(
        data=message.pack(header), key=key, on_picked_change=lambda: None, on_searched_change=lambda: None,
        on_selection_change=lambda: _update_selection(key, dataset.fingerprint, layout.indices, count))
    if result.searched is not None:
        open_search(dataset, int(layout.indices[int(result.searched)]))
    return None if result.picked is None else int(layout.indices[int(result.picked)])


def _update_selection(key: str, fingerprint: str, indices: Array, count: int) -> None:
    answer: dict[str, Any] | None = st.session_state[key].selection
    if answer and answer["count"] == count:
        select(fingerprint, indices[unpack_mask(answer["mask"], count)], int(answer["revision"]))


def _camera(key: str) -> list[float] | None:
    """Return the camera in the address, which the browser writes.

    Returns:
        The center x, y and the zoom; None without a valid camera.
    """
    try:
        camera = [float(part) for part in st.query_params.get(f"camera-{key}", "").split(",")]
    except ValueError:
        return None
    return camera if len(camera) == 3 and camera[2] > 0 and np.isfinite(camera).all() else None
