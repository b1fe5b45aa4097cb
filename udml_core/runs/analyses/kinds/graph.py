"""The neighbor graph whose affinities the sliders for clusters need."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from udml_core.base.errors import UserError
from udml_core.runs.analyses.fields import Frames, Neighbors
from udml_core.runs.analyses.kind import Arrays, Material, OfOneFrame

if TYPE_CHECKING:
    from udml_core.numerics.graph import AuthorityGraph

BYTES_AN_EDGE = 80
"""Memory of each edge while the affinities are computed."""


class NeighborGraph(OfOneFrame):
    """A graph of mutual affinities with the authority of each image."""

    name = "graph"
    title = "Neighbor graph"
    noun = "graph"
    order = 4
    arrays: ClassVar = {"indices": "int n", "authority": "float n", "rows": "int e", "columns": "int e",
                        "affinity": "float e"}
    settings = "{n_neighbors} neighbors"
    differences: ClassVar = {"n_neighbors": "{:g} neighbors"}

    frames: Frames = ("frozen",)
    n_neighbors: Neighbors = 50

    def expected_bytes(self, images: int, width: int, largest: int) -> float:
        """Add the edges, their affinities and the authority of the images."""
        return super().expected_bytes(images, width, largest) + BYTES_AN_EDGE * images * self.n_neighbors

    def compute(self, material: Material) -> Arrays:
        """Build the graph of one embedding."""
        from udml_core.numerics.graph import AuthorityGraph

        indices = material.indices(self.scope)
        if self.n_neighbors >= len(indices):
            raise UserError(f"A graph with {self.n_neighbors} neighbors needs more than {self.n_neighbors} images, and "
                            f"the scope '{self.scope}' has {len(indices)}. Lower n_neighbors to at most "
                            f"{len(indices) - 1}.")
        points = material.vectors(self.frames[0], indices)
        material.report(0.5, "graph")
        graph = AuthorityGraph.build(points, self.n_neighbors, report=material.report)
        return {"indices": indices, "authority": graph.authority, "rows": graph.rows, "columns": graph.columns,
                "affinity": graph.affinity}

    def result(self, arrays: Arrays) -> AuthorityGraph:
        """Return the graph."""
        from udml_core.numerics.graph import AuthorityGraph

        return AuthorityGraph(arrays["authority"], arrays["rows"], arrays["columns"], arrays["affinity"])
