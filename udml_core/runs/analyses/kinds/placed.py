"""New images on a map, which does not change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from udml_core.base.arrays import Array
from udml_core.runs.analyses.kind import Arrays, Material, OnMap
from udml_core.runs.analyses.map_kind import NEIGHBORS, Map


@dataclass(frozen=True)
class Placed:
    """New images on a map.

    Attributes:
        indices: Indices (m,) int64 of the map's images.
        names: Names of the new images.
        positions: Positions of the new images (q, 2) float32.
        nearest: Indices (q, k) int64 of the nearest images of the map, nearest first.
    """

    indices: Array
    names: tuple[str, ...]
    positions: Array
    nearest: Array


class NewImages(OnMap):
    """A user's images placed on a map."""

    name = "placed"
    title = "New images"
    noun = "placement"
    order = 6
    arrays: ClassVar = {"indices": "int m", "positions": "float q 2", "nearest": "int q k"}

    names: tuple[str, ...] = ()
    """Names of the placed images."""

    content: str = ""
    """Digest of the placed images."""

    def compute(self, material: Material) -> Arrays:
        """Embed the new images, and place each on the map."""
        from udml_core.data.dataset import UserImage
        from udml_core.numerics.neighbors import nearest

        source, indices, layout, vectors = material.source(self)
        assert isinstance(source, Map)
        model, paths = material.model(self.frame), material.images_to_place
        new = np.stack([model.embed(UserImage(path, name)) for path, name in zip(paths, self.names, strict=True)])
        material.report(0.5, "placing")
        neighbors = nearest(vectors, min(NEIGHBORS, len(vectors)), new)[1]
        return {"indices": indices, "positions": source.place(vectors, layout, new), "nearest": indices[neighbors]}

    def result(self, arrays: Arrays) -> Placed:
        """Return the positions with the names."""
        return Placed(names=self.names, **arrays)
