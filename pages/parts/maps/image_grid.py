"""An image grid as a map: its layout and colors, and the seams between adjacent images."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from udml_core.base.arrays import rows_of
from udml_core.base.components import Message
from udml_core.exploration.map_content import Color, Layout
from udml_core.runs.analyses import ImageGrid

from .frame import MapFrame


def grid_layout(grid: ImageGrid, name: str) -> Layout:
    """Return the layout of an image grid: columns to the right, rows downward."""
    rows, columns = np.divmod(grid.cells, grid.columns)
    return Layout(grid.indices, np.stack([columns, -rows], axis=1), name)


def grid_color(grid: ImageGrid, shown: MapFrame, color: Color) -> Color:
    """Return the colors of a map in the order of the images of its grid."""
    return replace(color, values=np.asarray(color.values)[rows_of(shown.projection.indices, grid.indices)])


def seam_range(grid: ImageGrid) -> tuple[float, float] | None:
    """Return the range of the distances between adjacent images.

    Returns:
        The 2nd and the 98th percentile; None if no images are adjacent.
    """
    distances = np.concatenate([grid.right[np.isfinite(grid.right)], grid.down[np.isfinite(grid.down)]])
    if not len(distances):
        return None
    low, high = np.percentile(distances, [2, 98]).tolist()
    return low, high


def seams(message: Message, grid: ImageGrid) -> dict[str, Any]:
    """Describe the distances between adjacent images for the browser."""
    low, high = seam_range(grid) or (0.0, 1.0)
    return {"right": message.once(grid.right), "down": message.once(grid.down), "rows": grid.rows,
            "columns": grid.columns, "low": low, "high": high}
