"""The images of a map, each in its own cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from udml_core.base.arrays import Array
from udml_core.runs.analyses.kind import Arrays, Material, OnMap


@dataclass(frozen=True)
class ImageGrid:
    """The images of a map, each in its own cell.

    Attributes:
        indices: Image indices (m,) int64.
        cells: Cell of each image (m,) int64, row · columns + column; no cell occurs twice.
        right: Distances (rows, columns − 1) float32, in the embedding and not on the map, from the image in each cell
            to its right neighbor; NaN beside an empty cell.
        down: Distances (rows − 1, columns) float32 to the neighbor below.
    """

    indices: Array
    cells: Array
    right: Array
    down: Array

    @property
    def rows(self) -> int:
        return len(self.right)

    @property
    def columns(self) -> int:
        return int(self.down.shape[1])


class Grid(OnMap):
    """A grid of a map's images, with seams between neighboring cells."""

    name = "grid"
    title = "Image grid"
    noun = "grid"
    text = "a grid arranges a map's images"
    order = 5
    arrays: ClassVar = {"indices": "int m", "cells": "int m", "right": "float rows steps",
                        "down": "float drops columns"}

    def compute(self, material: Material) -> Arrays:
        """Assign each image of a map to a cell, and measure distances between cells.

        The distances are measured in the embedding, between neighboring cells.
        """
        from udml_core.numerics.projection.grid import seams, snap_to_grid

        _, indices, layout, vectors = material.source(self)
        cells, rows, columns = snap_to_grid(layout, lambda share: material.report(share, "grid"))
        right, down = seams(vectors, cells, rows, columns)
        return {"indices": indices, "cells": cells, "right": right, "down": down}

    def result(self, arrays: Arrays) -> ImageGrid:
        """Return the grid."""
        return ImageGrid(**arrays)
