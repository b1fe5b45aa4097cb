"""The map: points on the GPU, linked with every other view of the page."""

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
from pages.parts.components.transport import Message, component, packed_mask, script_and_style, unpacked
from udml_core.analyses import ImageGrid
from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.paths import ASSETS

HTML = """<div class="scatter" role="group"><div class="layout">
<div class="stage"><canvas class="points" role="img"></canvas>
<canvas class="overlay" tabindex="0" role="application" aria-roledescription="map"
  aria-label="Map. Arrow keys move, plus and minus zoom, 0 shows everything, Enter picks the image in the middle, Q
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
    """What colours the points.

    values (n,): codes into `names` (−1: none), or numbers where `names` is empty (NaN: none). none: what to call those.
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
    """Where points lie: indices (n,) into the data set, positions (n, 2).

    bounds (x0, y0, x1, y1): of all layouts that belong together, so that the view stays. name: what they belong to.
    neighbors (n, k): rows of the nearest in the original space, drawn for the point under the pointer.
    """

    indices: Array
    positions: Array
    name: str = ""
    bounds: tuple[float, float, float, float] | None = None
    neighbors: Array | None = None


def scatter(dataset: Dataset, layout: Layout, color: Color, held: Selection, label: str, key: str, *,
            segments: Array | None = None, marks: Sequence[Mapping[str, Any]] = (),
            placed: Sequence[Mapping[str, Any]] = (), height: int = 560, linked: bool = False,
            images: bool = True, grid: ImageGrid | None = None) -> int | None:
    """Draw a map; the position in the data set of the image that was just picked, or None.

    A right-click, a long press or Q makes a point's image the query of the page Retrieval.
    What is selected on it becomes the data set's one selection (see `pages.parts.base.selection`).

    Args:
        segments: (s, 2) rows of points to join, for example an ascent forest.
        marks: {row, word, lines: rows} drawn above the points.
        placed: {at: [x, y], word} of images that are not points.
        linked: whether another map on the page shows the same selection.
        images: whether there are any to show for the points.
        grid: draw images in cells, with seams, where `layout` is made by `grid_layout`.
    """
    message = Message()
    header = _header(message, dataset, layout, color, held, images) | {
        "label": label, "height": height, "segments": message.once(_rows(segments)), "marks": list(marks),
        "placed": list(placed), "linked": linked, "group": dataset.fingerprint[:8], "camera": _camera(key),
        "cameraKey": f"camera-{key}", "grid": None if grid is None else _seams(message, grid)}
    count = len(layout.indices)
    result = component("scatter", HTML)(
        data=message.packed(header), key=key, on_picked_change=lambda: None, on_asked_change=lambda: None,
        on_selection_change=lambda: _selected(key, dataset.fingerprint, layout.indices, count))
    if result.asked is not None:
        open_search(dataset, int(layout.indices[int(result.asked)]))
    return None if result.picked is None else int(layout.indices[int(result.picked)])


def map_file(dataset: Dataset, layout: Layout, color: Color, held: Selection, title: str, caption: str) -> bytes:
    """A map as one HTML file that needs nothing else: images, hover, zoom, lasso and legend work offline."""
    message = Message(alone=True)
    header = _header(message, dataset, layout, color, held, True) | {
        "label": title, "height": 760, "segments": None, "marks": [], "placed": [], "linked": False, "group": "",
        "camera": None, "cameraKey": "", "grid": None}
    data = base64.b64encode(message.packed(header)).decode()
    script, style = script_and_style("scatter")
    words = {"TITLE": html.escape(title), "CAPTION": html.escape(caption), "MAP": HTML, "STYLE": style, "DATA": data,
             "SCRIPT": script.replace("export default function", "function")}
    page = (ASSETS / "map.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: words[found[1]], page).encode()


def grid_layout(grid: ImageGrid, name: str) -> Layout:
    """A grid's cells as positions: column to the right, row downwards."""
    rows, columns = np.divmod(grid.cells, grid.columns)
    return Layout(grid.indices, np.stack([columns, -rows], axis=1), name)


def _seams(message: Message, grid: ImageGrid) -> dict[str, Any]:
    known = np.concatenate([grid.right[np.isfinite(grid.right)], grid.down[np.isfinite(grid.down)]])
    low, high = np.percentile(known, [2, 98]).tolist() if len(known) else (0.0, 1.0)
    return {"right": message.once(grid.right), "down": message.once(grid.down), "rows": grid.rows,
            "columns": grid.columns, "low": low, "high": high}


def _header(message: Message, dataset: Dataset, layout: Layout, color: Color, held: Selection,
            images: bool) -> dict[str, Any]:
    whole = np.array_equal(layout.indices, np.arange(len(dataset)))
    labels = dataset.labels
    chosen = np.flatnonzero(np.isin(layout.indices, held.ids)) if len(held.ids) else held.ids
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
        "selection": {"mask": message.inside(packed_mask(chosen, len(layout.indices))), "revision": held.revision},
    }


def _coloring(message: Message, color: Color) -> dict[str, Any]:
    values = np.asarray(color.values, dtype=np.float32)
    token = hashlib.sha1(repr(color.names).encode() + values.tobytes(), usedforsecurity=False).hexdigest()[:12]
    shown: dict[str, Any] = {"label": color.label, "values": message.inside(values), "none": color.none,
                             "token": f"{color.label} {token}"}
    if color.names:
        return shown | {"kind": "category", "names": list(color.names)}
    finite = values[np.isfinite(values)]
    least, most = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    low = least if color.low is None else color.low
    high = most if color.high is None else color.high
    return shown | {"kind": "number", "low": low, "high": high, "unit": color.unit}


def _rows(array: Array | None) -> Array | None:
    return None if array is None else np.asarray(array, dtype=np.int32)


def _selected(key: str, fingerprint: str, indices: Array, count: int) -> None:
    answer: dict[str, Any] | None = st.session_state[key].selection
    if answer and answer["count"] == count:
        select(fingerprint, indices[unpacked(answer["mask"], count)], int(answer["revision"]))


def _camera(key: str) -> list[float] | None:
    """Where the link's map looks: the browser writes x, y and zoom into the address by itself."""
    try:
        camera = [float(part) for part in st.query_params.get(f"camera-{key}", "").split(",")]
    except ValueError:
        return None
    return camera if len(camera) == 3 and camera[2] > 0 and np.isfinite(camera).all() else None


@st.cache_resource(max_entries=4, show_spinner=False)
def _names(name: str, fingerprint: str) -> bytes:  # noqa: ARG001 (another state of the data set has other names)
    return json.dumps(load_dataset(name).names).encode()
