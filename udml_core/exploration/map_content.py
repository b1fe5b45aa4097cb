"""The content of a map as the browser reads it: positions, colors and selection of its points."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from udml_core.base.arrays import LARGE, Array
from udml_core.base.components import Message, Part, pack_mask

STEPS = np.iinfo(np.uint16).max
ALONE: dict[str, Any] = {"segments": None, "marks": [], "placed": [], "linked": False, "group": "", "camera": None,
                         "cameraKey": "", "grid": None, "tiles": "some"}
"""What the header of a map says about other components, lines and grids if it has none."""


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
        by_size: Whether the largest categories come first, in colors that differ, as many categories always do.
        fixed: Whether the place of a category in `names` alone decides its color, so that it stays while others come
            and go; the largest come first.
        pictures: Index of an image in the data set for each category, which shows better than its name what it holds.
    """

    label: str
    values: Array
    names: tuple[str, ...] = ()
    unit: str = ""
    none: str = "none"
    low: float | None = None
    high: float | None = None
    by_size: bool = False
    fixed: bool = False
    pictures: tuple[int, ...] = ()


@dataclass(frozen=True)
class Followed:
    """Categories of a map's points at each value of a slider, which the browser shows while the slider moves.

    Attributes:
        slider: CSS selector of the value that the slider shows.
        label: Name of the coloring at each value; the value of the slider stands at `{}`.
        at: The values of the slider, (t,), ascending.
        values: (t, n) indices into the names of the colors.
        color: The coloring at the slider's present value, which names the categories of all values.
    """

    slider: str
    label: str
    at: tuple[float, ...]
    values: Array
    color: Color


@dataclass(frozen=True)
class Layout:
    """The positions of a map's points.

    Attributes:
        indices: Data set indices, (n,).
        positions: Coordinates, (n, 2).
        name: The name of the map; layouts of the same name keep the view.
        bounds: x0, y0, x1, y1 of all layouts of the map; the layout's own if None.
        neighbors: Rows of the nearest neighbors in the embedding, (n, k), drawn for the point under the pointer.
        is_roomy: Whether points that lie on each other move apart in the browser, where a button undoes it.
    """

    indices: Array
    positions: Array
    name: str = ""
    bounds: tuple[float, float, float, float] | None = None
    neighbors: Array | None = None
    is_roomy: bool = False


def points_header(message: Message, layout: Layout, color: Color, selected: Array, revision: int, whole: bool
                  ) -> dict[str, Any]:
    """Describe the points of a map for the browser.

    Args:
        message: The message that carries or refers to the arrays.
        layout: The positions of the points.
        color: The colors of the points.
        selected: Rows of the selected points.
        revision: Number of the selection; the browser adopts a selection with a higher one than its own.
        whole: Whether row i of the layout is image i of the data set.
    """
    positions, steps = _positions(layout)
    return {
        "count": len(layout.indices), "fitKey": layout.name, "bounds": layout.bounds,
        "positions": message.once(positions), "steps": steps, "roomy": layout.is_roomy,
        "neighbors": message.once(row_array(layout.neighbors)),
        "ids": None if whole else message.once(layout.indices.astype(np.int32)), "color": coloring(message, color),
        "width": 0 if layout.neighbors is None else layout.neighbors.shape[1],
        "selection": {"mask": message.inside(pack_mask(selected, len(layout.indices))), "revision": revision},
    }


def moving_parts(message: Message, layout: Layout) -> list[Part]:
    """Return the parts of a map that differ between its epochs, as `map_header` names them."""
    return [message.once(_positions(layout)[0]), message.once(row_array(layout.neighbors))]


def _positions(layout: Layout) -> tuple[Array, dict[str, list[float]] | None]:
    """Return positions as the browser reads them, and the origin and width of a step along each axis.

    Positions of many points are counted in 65,535 steps from the least to the largest, which halves the message; others
    are float32, without steps.
    """
    if len(layout.indices) <= LARGE:
        return layout.positions.astype(np.float32), None
    low, high = layout.positions.min(axis=0), layout.positions.max(axis=0)
    width = np.maximum(high - low, np.finfo(np.float32).tiny) / STEPS
    return np.rint((layout.positions - low) / width).astype(np.uint16), {"low": low.tolist(), "width": width.tolist()}


def codes_array(codes: Array, count: int) -> Array:
    """Return codes from −1 to `count` − 1 in the smallest type of integers."""
    return np.asarray(codes).astype(next(kind for kind in (np.int8, np.int16, np.int32) if count <= np.iinfo(kind).max))


def coloring(message: Message, color: Color) -> dict[str, Any]:
    values = codes_array(color.values, len(color.names)) if color.names else np.asarray(color.values, dtype=np.float32)
    token = hashlib.sha1(repr(color.names).encode() + values.tobytes(), usedforsecurity=False).hexdigest()[:12]
    coloring: dict[str, Any] = {"label": color.label, "values": message.part(values), "none": color.none,
                                "token": f"{color.label} {token}"}
    if color.names:
        return coloring | {"kind": "category", "names": list(color.names), "bySize": color.by_size,
                           "fixed": color.fixed} | ({"pictures": list(color.pictures)} if color.pictures else {})
    finite = values[np.isfinite(values)]
    smallest, largest = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    low = smallest if color.low is None else color.low
    high = largest if color.high is None else color.high
    return coloring | {"kind": "number", "low": low, "high": high, "unit": color.unit}


def row_array(array: Array | None) -> Array | None:
    """Return rows as the browser reads them, int32; None stays None."""
    return None if array is None else np.asarray(array, dtype=np.int32)
