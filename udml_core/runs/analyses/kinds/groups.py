"""What naming many images needs once: a tree of groups, and the neighbors along which names spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from udml_core.base.arrays import Array, Integers
from udml_core.base.errors import UserError
from udml_core.runs.analyses.fields import Frames
from udml_core.runs.analyses.kind import Arrays, Material, OfOneFrame

if TYPE_CHECKING:
    from udml_core.data.dataset import Report
    from udml_core.exploration.grouping import GroupTree

FEWEST = 3
"""Smallest number of images that can be grouped."""


@dataclass(frozen=True)
class Grouping:
    """The groups of images at any number, and the neighbors of each image.

    Attributes:
        indices: Image indices (n,), ascending.
        tree: The tree of groups.
        neighbors: Rows (n, k) of the nearest images.
    """

    indices: Integers
    tree: GroupTree
    neighbors: Integers


class Groups(OfOneFrame):
    """A tree of groups of the images of one embedding."""

    name = "groups"
    title = "Groups"
    noun = "tree of groups"
    text = "groups forms groups of similar images that can be named"
    order = 5
    arrays: ClassVar = {"indices": "int n", "leaves": "int n", "merges": "float m 4", "neighbors": "int n k"}

    frames: Frames = ("final",)

    def compute(self, material: Material) -> Arrays:
        """Build the tree and search the neighbors."""
        indices = material.indices(self.scope)
        found = group_images(indices, material.vectors(self.frames[0], indices), material.report)
        return {"indices": indices, "leaves": found.tree.leaves, "merges": found.tree.merges,
                "neighbors": found.neighbors.astype(np.int32)}

    def result(self, arrays: Arrays) -> Grouping:
        """Return the tree and the neighbors."""
        from udml_core.exploration.grouping import GroupTree

        return Grouping(arrays["indices"], GroupTree(arrays["leaves"], arrays["merges"]),
                        arrays["neighbors"].astype(np.int64))


def group_images(indices: Integers, points: Array, report: Report) -> Grouping:
    """Build the tree of groups of images, and search their neighbors.

    Args:
        indices: Image indices (n,).
        points: Their embeddings (n, d).
        report: Receives the progress.

    Raises:
        UserError: There are too few images.
    """
    from udml_core.exploration.grouping import build_tree
    from udml_core.exploration.naming import NEIGHBORS
    from udml_core.numerics.neighbors import graph_neighbors

    if len(indices) < FEWEST:
        raise UserError(f"Groups need at least {FEWEST} images; got {len(indices)}. Add images.")
    tree = build_tree(points, lambda share, step: report(share / 2, step))
    rows = np.ascontiguousarray(points, np.float32)
    neighbors = graph_neighbors(rows, min(NEIGHBORS, len(rows) - 1),
                                report=lambda share, step: report(0.5 + share / 2, step))[1]
    return Grouping(indices, tree, neighbors.astype(np.int64))
