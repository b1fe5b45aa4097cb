"""Hubs: how often each image is a neighbor of others, as an example of an analysis."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from udml_core.runs.analyses.kind import Arrays, Material, OfOneFrame


class Hubs(OfOneFrame):
    """The number of images that have an image among their nearest neighbors."""

    name = "hubs"
    title = "Hubs"
    noun = "count of neighbors"
    text = "hubs counts how often each image is a neighbor"
    arrays: ClassVar = {"indices": "int n", "counts": "int n"}

    counted: Annotated[int, Field(ge=1, le=100)] = 10
    """Number of nearest images of each image that are counted."""

    def compute(self, material: Material) -> Arrays:
        """Count the occurrences in the lists of the nearest neighbors."""
        from udml_core.numerics.neighbors import nearest  # loaded by the worker, not by pages and commands

        indices = material.indices(self.scope)
        neighbors = nearest(material.vectors(self.frames[0], indices), self.counted)[1]
        return {"indices": indices, "counts": np.bincount(neighbors.ravel(), minlength=len(indices))}

    def result(self, arrays: Arrays) -> Arrays:
        """Return the counts as they are stored."""
        return arrays
