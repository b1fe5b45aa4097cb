"""UMAP: a map of the neighbor graph."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from udml_core.base.arrays import Array
from udml_core.base.declaration import Shown
from udml_core.runs.analyses.fields import Neighbors, Seed
from udml_core.runs.analyses.map_kind import Map, ShareReport

COMPILER, BYTES_A_NEIGHBOR = 300e6, 270
"""Memory of the compiled loops, and of each neighbor in a graph."""


class UMAP(Map):
    """A map by UMAP."""

    name = "umap"
    title = "UMAP"
    order = 3
    preference = 3
    settings = "{n_neighbors} neighbors, minimum distance {min_dist:g}"
    differences: ClassVar = {"n_neighbors": "{:g} neighbors", "min_dist": "distance {:g}", "seed": "seed {}"}

    n_neighbors: Neighbors = 15

    min_dist: Annotated[float, Field(ge=0, le=1), Shown(label="Minimum distance", high=0.99)] = 0.1
    """Smallest distance of UMAP. Small values pack similar images tightly."""

    seed: Seed = 0

    def expected_bytes(self, images: int, width: int, largest: int) -> float:
        """Add the compiler of its loops, and the graph of the images that are laid out."""
        return (super().expected_bytes(images, width, largest) + COMPILER
                + BYTES_A_NEIGHBOR * len(self.frames) * self.laid_out(images) * self.n_neighbors)

    def layouts(self, vectors: list[Array], report: ShareReport) -> list[Array]:
        """Lay out all frames together."""
        from udml_core.numerics.projection.umap import umap_layouts

        return umap_layouts(vectors, self.n_neighbors, self.min_dist, self.seed, report)

    def place(self, vectors: Array, layout: Array, new: Array) -> Array:
        """Place new embeddings as UMAP transforms new points."""
        from udml_core.numerics.projection import umap

        return umap.place(vectors, layout, self.n_neighbors, self.min_dist, self.seed, new)
