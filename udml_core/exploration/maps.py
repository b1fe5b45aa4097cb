"""What a map's points are coloured by, and what differs between two embeddings of the same images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udml_core.arrays import Array
from udml_core.explanations import Clusters, Triplets
from udml_core.graph import AuthorityGraph


def neighbor_purity(neighbors: Array, labels: Array) -> Array:
    """The share of each point's neighbors (n, k), row numbers, that carry its own label, (n,)."""
    return (labels[neighbors] == labels[:, None]).mean(axis=1)


def neighbors_kept(before: Array, after: Array) -> Array:
    """The share of each point's neighbors (n, k) that are the same in two embeddings of the same points, (n,)."""
    return (before[:, :, None] == after[:, None, :]).any(axis=2).mean(axis=1)


@dataclass(frozen=True)
class Change:
    """indices (m,): images that both maps show, ascending. kept (m,): the share of their neighbors that is the same."""

    indices: Array
    kept: Array

    def most(self, count: int) -> Array:
        """Places, in `indices`, of the images whose neighborhoods changed most, at most `count`."""
        return np.argsort(self.kept, kind="stable")[:count]


def neighborhood_change(first: tuple[Array, Array], second: tuple[Array, Array]) -> Change:
    """What became of each image's neighbors between two maps.

    Args:
        first, second: indices (n,) of the images, ascending, and their neighbors (n, k) as row numbers. Where the maps
            show different images, those that both show are compared, by their neighbors of any kind.
    """
    (ids, near), (other_ids, other_near) = first, second
    shared, rows, other_rows = np.intersect1d(ids, other_ids, assume_unique=True, return_indices=True)
    width = min(near.shape[1], other_near.shape[1])
    kept = neighbors_kept(ids[near[rows, :width]], other_ids[other_near[other_rows, :width]])
    return Change(shared, kept)


def anchor_weights(triplets: Triplets, count: int) -> Array:
    """The mean weight of the triplets that each of `count` training images anchors, (count,); NaN where it has none."""
    anchors = np.asarray(triplets.anchor)
    times = np.bincount(anchors, minlength=count).astype(np.float64)
    sums = np.bincount(anchors, np.asarray(triplets.weight, dtype=np.float64), count)
    return np.divide(sums, times, out=np.full(count, np.nan), where=times > 0)


def bounds(positions: Array) -> tuple[float, float, float, float]:
    """x0, y0, x1, y1 of all layouts (f, n, 2)."""
    low, high = positions.reshape(-1, 2).min(axis=0), positions.reshape(-1, 2).max(axis=0)
    return float(low[0]), float(low[1]), float(high[0]), float(high[1])


def ascent(points: Array, n_neighbors: int, epsilon: float, gamma: float) -> Clusters:
    """The clusters that authority ascent finds among some thousand points (n, d)."""
    return AuthorityGraph.build(points, min(n_neighbors, len(points) - 1)).clusters(epsilon, gamma)
