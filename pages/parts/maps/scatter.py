"""The one function that draws a map: points on the GPU, linked with every other view of the page.

The same map can be saved as one HTML file that works offline.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array, rows_of
from udml_core.base.components import MAP_HTML, plain_script, script_and_style, unpack_mask
from udml_core.base.offline import offline_page
from udml_core.base.paths import ASSETS
from udml_core.data.dataset import Dataset
from udml_core.exploration.map_content import ALONE, Color, Followed, Layout, coloring, moving_parts, row_array
from udml_core.runs.analyses import ImageGrid

from ..draw.transport import Message, component
from ..shell.run_picker import open_search
from ..shell.selection import Selection, select, selection
from .content import map_header
from .excluding import NONE, visible_images, visible_layout, without_excluded
from .frame import MapFrame
from .image_grid import grid_color, grid_layout, seams

Tiles = Literal["some", "all"]
HEIGHT = 600
"""Pixels of a map or grid, and of the panel beside it: both end above the fold of a laptop screen."""


@dataclass(frozen=True)
class Ring:
    """A ring around an image on a map, if the map shows the image.

    Attributes:
        image: The data set index of the image.
        word: A word beside the ring.
        ends: Data set indices of the images that lines join it with.
        color: Color of the ring, which is then filled, and of the lines; the page's ink if empty.
        radius: Radius of the ring in pixels.
    """

    image: int
    word: str = ""
    ends: Sequence[int] | Array = ()
    color: str = ""
    radius: float = 11.0


def current_ring(layout: Layout, image: int | None, most: int | None = None) -> list[Ring]:
    """Return the ring around the current image, joined with its nearest neighbors.

    Args:
        layout: The positions of all points of the map.
        image: Data set index of the current image; None or −1 for none.
        most: Largest number of neighbors; all if None.
    """
    if image is None or image not in layout.indices:
        return []
    if layout.neighbors is None:
        return [Ring(image, "current")]
    row = int(rows_of(layout.indices, np.array([image]))[0])
    return [Ring(image, "current", layout.indices[layout.neighbors[row][:most]])]


def draw_map(dataset: Dataset, layout: Layout, color: Color, label: str, key: str, *, marks: Sequence[Ring] = (),
             hidden: Array = NONE, segments: Array | None = None, placed: Sequence[Mapping[str, Any]] = (),
             height: int | str = 560, linked: bool = False, images: bool = True, grid: ImageGrid | None = None,
             legend_below: bool = False, tiles: Tiles = "some", plain: bool = False, fills: bool = False,
             followed: Sequence[Followed] = (), ahead: Layout | None = None, near: int | None = None) -> int | None:
    """Draw a map or an image grid with the data set's selection.

    Points selected on it become the selection (see `shell.selection`). A right-click, a long press or the key Q opens
    the page Search with that image as the query.

    Args:
        dataset: The data set.
        layout: The positions of the points.
        color: The colors of the points.
        label: What the map shows, for screen readers.
        key: The widget's key.
        marks: Images that rings mark above the points.
        hidden: Data set indices of the images that are not drawn.
        segments: Pairs of rows to join by a line, (s, 2), such as an ascent forest.
        placed: {at: [x, y], word} for new images, which are not points.
        height: Height in pixels, or a CSS length.
        linked: Whether another map on the page shows the same selection.
        images: Whether the points have images to show.
        grid: The image grid to draw; `layout` must then come from `grid_layout`.
        legend_below: Whether the legend lies below the map, which then has the whole width.
        tiles: "all" draws images in place of points if they fit; "some" draws images above the points wherever they do
            not overlap.
        plain: Whether tools and legend are hidden, as on a small map among several.
        fills: Whether the map is stretched to the shape of its frame, within bounds; its axes carry no units.
        followed: Colors while each of some sliders moves, of all points; no point may be hidden.
        ahead: The positions that are likely next, which the browser fetches now, so that they appear without delay.
        near: The image whose marks the map shows from near, until the user moves it; None shows all points.

    Returns:
        The data set index of the image that was clicked just now, or None.
    """
    layout, color = without_excluded(layout, color, hidden)
    message = Message()
    header = map_header(message, dataset, layout, color, selection(dataset), images) | {
        "label": label, "height": height, "segments": message.once(row_array(segments)),
        "marks": _marks(marks, layout), "placed": list(placed), "linked": linked, "below": legend_below,
        "tiles": tiles, "plain": plain, "fills": fills,
        "follow": [{"slider": of.slider, "label": of.label, "at": list(of.at), "values": message.once(of.values),
                    "color": coloring(message, of.color)}
                   for of in followed],
        "group": dataset.fingerprint[:8], "camera": _camera(key), "cameraKey": f"camera-{key}", "near": near,
        "grid": None if grid is None else seams(message, grid)}
    if ahead is not None:
        header["ahead"] = moving_parts(message, visible_layout(ahead, hidden))
    count = len(layout.indices)
    result = component("scatter", MAP_HTML)(
        data=message.pack(header), key=key, on_picked_change=lambda: None, on_searched_change=lambda: None,
        on_selection_change=lambda: _update_selection(key, dataset.fingerprint, layout.indices, count))
    if result.searched is not None:
        open_search(dataset, int(result.searched))
    return None if result.picked is None else int(result.picked)


def show_map(shown: MapFrame, color: Color, title: str, key: str, hidden: Array, *, layout: Layout | None = None,
             grid: ImageGrid | None = None, current: int | None = None, marks: Sequence[Ring] | None = None,
             most: int | None = None, placed: Sequence[Mapping[str, Any]] = (), linked: bool = False,
             legend_below: bool = False, ahead: Layout | None = None, fills: bool = False) -> int | None:
    """Draw a map of a run or the grid of it, with the current image marked.

    Args:
        shown: The map.
        color: The colors of the map's points.
        title: What the map shows, for screen readers; the number of drawn images follows.
        key: The widget's key.
        hidden: Data set indices of the images that are not drawn.
        layout: The points to draw; by default the map's own.
        grid: The map's grid, which is drawn in place of the map.
        current: Data set index of the current image.
        marks: Images that rings mark; the current image and its neighbors if None.
        most: Largest number of neighbors that lines join with the current image; all if None.
        placed: New images; see `draw_map`.
        linked: Whether another map on the page shows the same selection.
        legend_below: Whether the legend lies below the map.
        ahead: The positions that are likely next; see `draw_map`.
        fills: Whether the map is stretched to the shape of its frame; see `draw_map`.

    Returns:
        The data set index of the image that was clicked just now, or None.
    """
    layout = layout or shown.layout
    if grid is not None:
        layout, color = grid_layout(grid, f"grid of {layout.name} {shown.name}"), grid_color(grid, shown, color)
    count = len(visible_images(layout.indices, hidden))
    return draw_map(shown.dataset, layout, color, f"{title}, {count:,} images", key, hidden=hidden, grid=grid,
                    marks=current_ring(layout, current, most) if marks is None else marks, placed=placed,
                    linked=linked, height=HEIGHT, legend_below=legend_below, ahead=ahead,
                    tiles="all" if layout.is_roomy else "some", fills=fills)


def map_file(dataset: Dataset, layout: Layout, color: Color, selected: Selection, title: str, caption: str) -> bytes:
    """Export a map as one HTML file that works offline.

    Images, hover, zoom, lasso and legend are part of the file.
    """
    message = Message(self_contained=True)
    header = ALONE | map_header(message, dataset, layout, color, selected, True) | {"label": title, "height": 760}
    data = base64.b64encode(message.pack(header)).decode()
    script, style = script_and_style("scatter")
    return offline_page(ASSETS / "map.html", TITLE=html.escape(title), CAPTION=html.escape(caption), MAP=MAP_HTML,
                        STYLE=style, DATA=data, SCRIPT=plain_script(script))


def _marks(marks: Sequence[Ring], layout: Layout) -> list[dict[str, Any]]:
    """Return the rings as the browser reads them, with their rows and the rows of their ends."""
    def rows(images: Sequence[int] | Array) -> list[int]:
        found = rows_of(layout.indices, np.asarray(images, dtype=np.int64))
        return [row for row in found.tolist() if row >= 0]

    return [{"row": row, "word": mark.word, "lines": rows(mark.ends), "color": mark.color, "radius": mark.radius}
            for mark in marks for row in rows([mark.image])]


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
