"""Values that color a map, and differences between two embeddings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udml_core.base.arrays import Array
from udml_core.numerics.explanations import Clusters, Triplets
from udml_core.numerics.graph import AuthorityGraph
from udml_core.numerics.neighbors.centers import sample_rows


def neighbor_purity(neighbors: Array, labels: Array) -> Array:
    """Return the share of each point's neighbors (n, k) that have its label, (n,)."""
    return (labels[neighbors] == labels[:, None]).mean(axis=1)


def neighbors_kept(before: Array, after: Array) -> Array:
    """Return the share of each point's neighbors equal in two embeddings, (n,).

    Both sets of neighbors are (n, k).
    """
    return (before[:, :, None] == after[:, None, :]).any(axis=2).mean(axis=1)


def keep_neighbors(neighbors: Array, kept: Array) -> Array:
    """Renumber neighbors after points are left out.

    Args:
        neighbors: Rows (n, k).
        kept: Mask (n,) of the m points that stay.

    Returns:
        Rows (m, k) among the points that stay; −1 for a neighbor that is left out.
    """
    numbers = np.where(kept, np.cumsum(kept) - 1, -1)
    return numbers[neighbors[kept]]


def hide_rest(indices: Array, hidden: Array, most: int) -> Array:
    """Return the images to hide (h,), so that a random sample of the others is left if they are too many to draw.

    Args:
        indices: Indices (n,) of a map's images, ascending.
        hidden: Indices of the images that are hidden anyway.
        most: Largest number of images that are drawn.
    """
    if len(indices) <= most:
        return hidden
    left = np.setdiff1d(indices, hidden)
    return np.union1d(hidden, np.delete(left, sample_rows(len(left), most)))


@dataclass(frozen=True)
class Change:
    """Change of neighborhoods between two maps.

    Attributes:
        indices: (m,) data set indices of the images on both maps, ascending.
        kept: (m,) share of each image's neighbors that are the same on both maps.
    """

    indices: Array
    kept: Array

    def most_changed(self, count: int) -> Array:
        """Return the images that kept the fewest neighbors, at most `count`.

        The result has positions in `indices`.
        """
        return np.argsort(self.kept, kind="stable")[:count]


def neighborhood_change(first: tuple[Array, Array], second: tuple[Array, Array]) -> Change:
    """Compare each image's neighbors on two maps.

    Only images on both maps are compared; their neighbors may be on one map only.

    Args:
        first: Data set indices (n,) of the first map's images, ascending, and their neighbors (n, k) as rows.
        second: The same for the second map.
    """
    (ids, neighbors), (other_ids, other_neighbors) = first, second
    shared, rows, other_rows = np.intersect1d(ids, other_ids, assume_unique=True, return_indices=True)
    width = min(neighbors.shape[1], other_neighbors.shape[1])
    kept = neighbors_kept(ids[neighbors[rows, :width]], other_ids[other_neighbors[other_rows, :width]])
    return Change(shared, kept)


def anchor_weights(triplets: Triplets, count: int) -> Array:
    """Return the mean weight of each training image's triplets as an anchor.

    Args:
        triplets: Stored triplets.
        count: Number of training images.

    Returns:
        (count,) mean weights; NaN for an image that anchors no triplet.
    """
    anchors = np.asarray(triplets.anchor)
    uses = np.bincount(anchors, minlength=count).astype(np.float64)
    sums = np.bincount(anchors, np.asarray(triplets.weight, dtype=np.float64), count)
    return np.divide(sums, uses, out=np.full(count, np.nan), where=uses > 0)


def bounds(positions: Array) -> tuple[float, float, float, float]:
    """Return the bounding box (x0, y0, x1, y1) of several layouts (f, n, 2)."""
    low, high = positions.reshape(-1, 2).min(axis=0), positions.reshape(-1, 2).max(axis=0)
    return float(low[0]), float(low[1]), float(high[0]), float(high[1])


def ascent(points: Array, n_neighbors: int, epsilon: float, gamma: float) -> Clusters:
    """Cluster up to a few thousand points (n, d) by authority ascent."""
    return AuthorityGraph.build(points, min(n_neighbors, len(points) - 1)).clusters(epsilon, gamma)
