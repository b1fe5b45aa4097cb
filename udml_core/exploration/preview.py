"""What α and ε mean on a data set before training: clusters and angles of sample triplets in the frozen features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from udml_core.base.arrays import Array, Integers
from udml_core.data.splits import fixed_sample
from udml_core.exploration.clusters import Summary, cluster_summary
from udml_core.exploration.triplets import Shape, shape_in
from udml_core.numerics.graph import AuthorityGraph
from udml_core.numerics.neighbors import graph_neighbors
from udml_core.numerics.refinement.linear import unit_rows
from udml_core.numerics.sampling import cluster_triplets, generator

SAMPLE = 1500
"""Images of the training half that a preview uses, so that every step is fast."""
MOST_TRIPLETS = 3000
MOST_NEIGHBORS = 500
"""Largest k of a graph, as the methods declare it; the neighbors of smaller k are among them."""


@dataclass(frozen=True)
class Sample:
    """A sample of the training half with the nearest neighbors of each image.

    Attributes:
        indices: Data set indices (m,), ascending.
        rows: Unit features (m, d).
        squared: Squared distances (m, k) to the nearest neighbors, ascending.
        neighbors: Their rows (m, k).
    """

    indices: Integers
    rows: Array
    squared: Array
    neighbors: Integers

    def graph(self, n_neighbors: int) -> AuthorityGraph:
        """Return the graph that clusters are formed from, of k neighbors; of fewer if the sample is small."""
        return AuthorityGraph.of_neighbors(self.squared[:, :n_neighbors], self.neighbors[:, :n_neighbors])


@dataclass(frozen=True)
class Preview:
    """Pseudo-labels and triplets at an ε.

    Attributes:
        clusters: Statistics of the clusters.
        shape: The triangles of sample triplets; None if there are no triplets.
        example: Data set indices of the median-sized cluster of several images; empty if every cluster is a singleton.
        assignment: Cluster of each image of the sample, (m,); −1 for a singleton.
    """

    clusters: Summary
    shape: Shape | None
    example: Integers
    assignment: Integers

    def violations(self, alpha: float) -> float:
        """Return the share of the triplets whose angle exceeds α in degrees."""
        return 0.0 if self.shape is None else float((self.shape.angle > alpha).mean())


def draw_sample(features: Callable[[Integers], Array], train: Integers) -> Sample:
    """Draw the fixed sample of training images, which holds every smaller sample, and find their neighbors.

    Args:
        features: Returns the features (m, d) of images, by their indices (m,).
        train: Indices of the training half.
    """
    indices = fixed_sample(train, SAMPLE)
    rows = unit_features(features, indices)
    return Sample(indices, rows, *graph_neighbors(rows, min(MOST_NEIGHBORS, len(rows) - 1)))


def unit_features(features: Callable[[Integers], Array], indices: Integers) -> Array:
    """Return the features (m, d) of images at unit length; see `draw_sample`."""
    return unit_rows(features(indices))


def assignment_at(graph: AuthorityGraph, epsilon: float, gamma: float) -> Integers:
    """Return the cluster of each image of a sample's graph (m,) at an ε; −1 for an image alone."""
    labels = np.asarray(graph.clusters(epsilon, gamma).labels, dtype=np.int64)
    return np.where(np.bincount(labels)[labels] > 1, labels, -1)


def preview(sample: Sample, n_neighbors: int, epsilon: float, gamma: float, seed: int = 0) -> Preview:
    """Form clusters at k and ε, and draw triplets from them: two images of a cluster and one of another."""
    clusters = sample.graph(n_neighbors).clusters(epsilon, gamma)
    statistics = cluster_summary(clusters)
    assignment, several = np.asarray(clusters.labels, dtype=np.int64), np.flatnonzero(statistics.sizes > 1)
    example: Integers = np.zeros(0, dtype=np.int64)
    if len(several):
        middle = several[np.argsort(statistics.sizes[several], kind="stable")[len(several) // 2]]
        example = sample.indices[np.flatnonzero(assignment == middle)]
    shape = None
    if len(several) and statistics.count > 1:
        labels = torch.from_numpy(assignment)
        triplets = cluster_triplets(labels, 2, MOST_TRIPLETS, generator(seed, 0)).numpy()
        shape = shape_in(sample.rows, *triplets.T)
    return Preview(statistics, shape, example, np.where(statistics.sizes[assignment] > 1, assignment, -1))
