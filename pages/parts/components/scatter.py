"""The map: points drawn on the GPU, linked with every other view of the page."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from pages.parts.base.cached import load_dataset
from pages.parts.base.run_picker import open_search
from pages.parts.base.selection import Selection, select
from pages.parts.components.thumbnails import all_sheets
from pages.parts.components.transport import Message, component, pack_mask, script_and_style, unpack_mask
from udml_core.analyses import ImageGrid
from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.paths import ASSETS

HTML = """<div class="scatter" role="group"><div class="layout">
<div class="stage"><canvas class="points" role="img"></canvas>
<canvas class="overlay" tabindex="0" role="application" aria-roledescription="map"
  aria-label="Map. Arrow keys move, plus and minus zoom, 0 shows all points, Enter picks the image in the middle, Q
  searches with it.">
</canvas>
<div class="tools" role="toolbar" aria-label="Map tools"></div>
<div class="tip" hidden><canvas width="112" height="112"></canvas><div></div></div></div>
<div class="side"><div class="summary" role="status" aria-live="polite"></div>
<div class="legend" role="group" aria-label="Legend"></div></div>
</div></div>
"""


@dataclass(frozen=True)
class Color:
    """The colors of a map's points.

    Attributes:
        label: The name of the coloring.
        values: (n,) indices into `names`, −1 for a missing value; numbers if `names` is empty, NaN for a missing value.
        names: The names of the categories; empty for numbers.
        unit: The unit of numbers.
        none: The name of missing values in the legend.
        low: Number at the lower end of the scale; the least value if None.
        high: Number at the upper end of the scale; the largest value if None.
    """

    label: str
    values: Array
    names: tuple[str, ...] = ()
    unit: str = ""
    none: str = "none"
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Layout:
    """The positions of a map's points.

    Attributes:
        indices: Data set indices, (n,).
        positions: Coordinates, (n, 2).
        name: The name of the map; layouts of the same name keep the view.
        bounds: x0, y0, x1, y1 of all layouts of the map; the layout's own if None.
        neighbors: Rows of the nearest neighbors in the embedding, (n, k), drawn for the point under the pointer.
    """

    indices: Array
    positions: Array
    name: str = ""
    bounds: tuple[float, float, float, float] | None = None
    neighbors: Array | None = None


def scatter(dataset: Dataset, layout: Layout, color: Color, selected: Selection, label: str, key: str, *,
            segments: Array | None = None, marks: Sequence[Mapping[str, Any]] = (),
            placed: Sequence[Mapping[str, Any]] = (), height: int = 560, linked: bool = False,
            images: bool = True, grid: ImageGrid | None = None) -> int | None:
    """Show a map.

    Points selected on it become the data set's selection (see `pages.parts.base.selection`). A right-click, a long
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

    Returns:
        The data set index of the image that was clicked just now, or None.
    """
    message = Message()
    header = _header(message, dataset, layout, color, selected, images) | {
        "label": label, "height": height, "segments": message.once(_rows(segments)), "marks": list(marks),
        "placed": list(placed), "linked": linked, "group": dataset.fingerprint[:8], "camera": _camera(key),
        "cameraKey": f"camera-{key}", "grid": None if grid is None else _seams(message, grid)}
    count = len(layout.indices)
    result = component("scatter", HTML)(
        data=message.pack(header), key=key, on_picked_change=lambda: None, on_searched_change=lambda: None,
        on_selection_change=lambda: _update_selection(key, dataset.fingerprint, layout.indices, count))
    if result.searched is not None:
        open_search(dataset, int(layout.indices[int(result.searched)]))
    return None if result.picked is None else int(layout.indices[int(result.picked)])


def map_file(dataset: Dataset, layout: Layout, color: Color, selected: Selection, title: str, caption: str) -> bytes:
    """Export a map as one HTML file whose images, hover, zoom, lasso and legend work offline."""
    message = Message(self_contained=True)
    header = _header(message, dataset, layout, color, selected, True) | {
        "label": title, "height": 760, "segments": None, "marks": [], "placed": [], "linked": False, "group": "",
        "camera": None, "cameraKey": "", "grid": None}
    data = base64.b64encode(message.pack(header)).decode()
    script, style = script_and_style("scatter")
    parts = {"TITLE": html.escape(title), "CAPTION": html.escape(caption), "MAP": HTML, "STYLE": style, "DATA": data,
             "SCRIPT": script.replace("export default function", "function")}
    page = (ASSETS / "map.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], page).encode()


def grid_layout(grid: ImageGrid, name: str) -> Layout:
    """Return the layout of an image grid: columns to the right, rows downward."""
    rows, columns = np.divmod(grid.cells, grid.columns)
    return Layout(grid.indices, np.stack([columns, -rows], axis=1), name)


def seam_range(grid: ImageGrid) -> tuple[float, float] | None:
    """Return the 2nd and 98th percentile of the distances between adjacent images, None without adjacent images."""
    distances = np.concatenate([grid.right[np.isfinite(grid.right)], grid.down[np.isfinite(grid.down)]])
    if not len(distances):
        return None
    low, high = np.percentile(distances, [2, 98]).tolist()
    return low, high


def _seams(message: Message, grid: ImageGrid) -> dict[str, Any]:
    low, high = seam_range(grid) or (0.0, 1.0)
    return {"right": message.once(grid.right), "down": message.once(grid.down), "rows": grid.rows,
            "columns": grid.columns, "low": low, "high": high}


def _header(message: Message, dataset: Dataset, layout: Layout, color: Color, selected: Selection,
            images: bool) -> dict[str, Any]:
    whole = np.array_equal(layout.indices, np.arange(len(dataset)))
    labels = dataset.labels
    rows = np.flatnonzero(np.isin(layout.indices, selected.ids)) if len(selected.ids) else selected.ids
    return {
        "count": len(layout.indices), "fitKey": layout.name, "bounds": layout.bounds,
        "positions": message.once(layout.positions.astype(np.float32)),
        "ids": None if whole else message.once(layout.indices.astype(np.int32)),
        "color": _coloring(message, color), "classLabel": "class",
        "classes": None if labels is None else message.once(labels[layout.indices].astype(np.int32)),
        "classNames": [] if labels is None else list(dataset.class_names),
        "names": message.url(_names(dataset.name, dataset.fingerprint), "application/json") if images else None,
        "sheets": all_sheets(message, dataset) if images else None, "neighbors": message.once(_rows(layout.neighbors)),
        "width": 0 if layout.neighbors is None else layout.neighbors.shape[1],
        "selection": {"mask": message.inside(pack_mask(rows, len(layout.indices))), "revision": selected.revision},
    }


def _coloring(message: Message, color: Color) -> dict[str, Any]:
    values = np.asarray(color.values, dtype=np.float32)
    token = hashlib.sha1(repr(color.names).encode() + values.tobytes(), usedforsecurity=False).hexdigest()[:12]
    coloring: dict[str, Any] = {"label": color.label, "values": message.inside(values), "none": color.none,
                                "token": f"{color.label} {token}"}
    if color.names:
        return coloring | {"kind": "category", "names": list(color.names)}
    finite = values[np.isfinite(values)]
    smallest, largest = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    low = smallest if color.low is None else color.low
    high = largest if color.high is None else color.high
    return coloring | {"kind": "number", "low": low, "high": high, "unit": color.unit}


def _rows(array: Array | None) -> Array | None:
    return None if array is None else np.asarray(array, dtype=np.int32)


def _update_selection(key: str, fingerprint: str, indices: Array, count: int) -> None:
    answer: dict[str, Any] | None = st.session_state[key].selection
    if answer and answer["count"] == count:
        select(fingerprint, indices[unpack_mask(answer["mask"], count)], int(answer["revision"]))


def _camera(key: str) -> list[float] | None:
    """Return the center x, y and the zoom in the address, which the browser writes; None without a valid camera."""
    try:
        camera = [float(part) for part in st.query_params.get(f"camera-{key}", "").split(",")]
    except ValueError:
        return None
    return camera if len(camera) == 3 and camera[2] > 0 and np.isfinite(camera).all() else None


@st.cache_resource(max_entries=4, show_spinner=False)
def _names(name: str, fingerprint: str) -> bytes:  # noqa: ARG001 (the names depend on the data set's state)
    return json.dumps(load_dataset(name).names).encode()
