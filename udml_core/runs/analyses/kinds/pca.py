"""PCA: the two directions of largest variance."""

from __future__ import annotations

import numpy as np

from udml_core.base.arrays import Array
from udml_core.runs.analyses.map_kind import Map, ShareReport, lay_out_in_turn


class PCA(Map):
    """A map by principal components."""

    name = "pca"
    title = "PCA"
    order = 1
    preference = 1
    is_linear = True

    def layouts(self, vectors: list[Array], report: ShareReport) -> list[Array]:
        """Project each frame, turned onto the previous."""
        from udml_core.numerics.projection.pca import pca_layout

        return lay_out_in_turn(vectors, lambda points, previous, _report: pca_layout(points, previous), report)

    def place(self, vectors: Array, layout: Array, new: Array) -> Array:
        """Project new embeddings."""
        from udml_core.numerics.projection import pca

        return pca.place(vectors, layout, new).astype(np.float32)
