"""t-SNE: a map that keeps each image close to its neighbors."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from udml_core.base.arrays import Array
from udml_core.base.declaration import Shown
from udml_core.runs.analyses.fields import Seed
from udml_core.runs.analyses.map_kind import Map, ShareReport, lay_out_in_turn

BYTES_A_NEIGHBOR = 40
"""Memory of each neighbor in the affinities."""


class TSNE(Map):
    """A map by t-SNE."""

    name = "tsne"
    title = "t-SNE"
    order = 2
    preference = 2
    settings = "perplexity {perplexity:g}"
    differences: ClassVar = {"perplexity": "perplexity {:g}", "seed": "seed {}"}

    perplexity: Annotated[float, Field(ge=2, le=500), Shown(low=5, high=100, step=1)] = 30.0
    """Perplexity of t-SNE: the effective number of neighbors that each image is kept close to."""

    seed: Seed = 0

    def expected_bytes(self, images: int, width: int, largest: int) -> float:
        """Add the affinities of the images that are laid out, three neighbors for each unit of perplexity."""
        neighbors = self.laid_out(images) * 3 * self.perplexity
        return super().expected_bytes(images, width, largest) + BYTES_A_NEIGHBOR * neighbors

    def layouts(self, vectors: list[Array], report: ShareReport) -> list[Array]:
        """Lay out each frame, starting from the previous."""
        from udml_core.numerics.projection.tsne import tsne_layout

        return lay_out_in_turn(vectors, lambda points, previous, report_frame: tsne_layout(
            points, self.perplexity, self.seed, previous, report_frame), report)

    def place(self, vectors: Array, layout: Array, new: Array) -> Array:
        """Place new embeddings near their neighbors."""
        from udml_core.numerics.projection import tsne

        return tsne.place(vectors, layout, self.perplexity, self.seed, new).astype(np.float32)
