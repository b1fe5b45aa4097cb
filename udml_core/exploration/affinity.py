"""SSDML's propagated affinities around an image, on a part of the graph.

They are recomputed live.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from udml_core.base.arrays import Array, rows_of
from udml_core.numerics.evaluation import effective_rank
from udml_core.numerics.explanations import Affinities
from udml_core.numerics.graph import propagate
from udml_core.numerics.sampling import affinity_triplets


@dataclass(frozen=True)
class LabelGraph:
    """A k-nearest-neighbor graph of some images, a few of them labeled.

    Attributes:
        images: (p,) indices in the data set, ascending.
        neighbors: (p, k) neighbors of each image, as rows of this graph.
        codes: (p,) class codes; −1 marks an unlabeled image.
    """

    images: Array
    neighbors: Array
    codes: Array

    def row_of(self, image: int) -> int | None:
        """Return the row of an image, or None if the graph does not contain it."""
        row = int(rows_of(self.images, image))
        return None if row < 0 else row

    @property
    def most_informative_row(self) -> int:
        """The row with the most labeled classes in its neighborhood.

        The number of labels breaks ties.
        """
        codes = np.sort(np.column_stack([self.codes, self.codes[self.neighbors]]), axis=1)
        classes = ((codes >= 0) & (np.diff(codes, axis=1, prepend=-1) > 0)).sum(axis=1)
        return int(np.lexsort(((codes >= 0).sum(axis=1), classes))[-1])

    def rows_around(self, row: int, limit: int) -> Array:
        """Return the rows around a row by breadth-first search.

        Args:
            row: The row to start from.
            limit: Maximum number of rows.

        Returns:
            (m,) rows: `row` first, then its neighbors, then their neighbors, and so on.
        """
        visited, frontier = [row], np.array([row])
        while len(frontier) and len(visited) < limit:
            frontier = np.setdiff1d(self.neighbors[frontier], visited)
            visited.extend(frontier[:limit - len(visited)].tolist())
        return np.array(visited)


def training_graph(record: Affinities, train: Array) -> LabelGraph:
    """Return the graph that training used, with images as indices in the data set.

    Args:
        record: Affinities stored by training.
        train: (t,) data set indices of the training half.
    """
    order = np.argsort(record.points, kind="stable")
    rows = order[rows_of(record.points[order], record.neighbors)]
    return LabelGraph(train[record.points], rows, record.labels)


@dataclass(frozen=True)
class Subgraph:
    """A subgraph with its affinities.

    Attributes:
        rows: (m,) rows of the full graph.
        neighbors: (m, k) neighbors as positions in `rows`.
        before: (m, k) affinities W0 of the labels alone.
        after: (m, k) propagated affinities W.
        complete: (m,) bool, whether the subgraph contains all neighbors of a row.
    """

    rows: Array
    neighbors: Array
    before: Array
    after: Array
    complete: Array

    def sorted_neighbors(self, position: int) -> tuple[Array, Array]:
        """Return the neighbors of a row by descending affinity.

        The first half of the neighbors are its positives.

        Args:
            position: Position of the row in `rows`.

        Returns:
            (k,) neighbors as rows of the full graph, and their affinities (k,).
        """
        order = np.argsort(-self.after[position], kind="stable")
        return self.rows[self.neighbors[position, order]], self.after[position, order]


def propagate_subgraph(graph: LabelGraph, rows: Array, gamma: float) -> Subgraph:
    """Propagate the labels on a subgraph.

    Args:
        graph: The full graph.
        rows: (m,) rows of the subgraph.
        gamma: Probability γ that a walk continues.
    """
    positions = np.full(len(graph.images), -1)
    positions[rows] = np.arange(len(rows))
    inside = positions[graph.neighbors[rows]]
    # A step that would leave the subgraph stays in place, so that every row of Q still sums to 1.
    leaves = inside < 0
    neighbors = np.where(leaves, np.arange(len(rows))[:, None], inside)
    affinities = propagate(neighbors, graph.codes[rows], gamma)
    return Subgraph(rows, neighbors, affinities.before, affinities.after, np.asarray(~leaves.any(axis=1)))


@dataclass(frozen=True)
class Truth:
    """Agreement of triplets with the true classes.

    Shares are NaN if no triplet can be judged.

    Attributes:
        triplets: Number of triplets.
        judged: Number of triplets whose three classes are known.
        positives: Share of judged triplets whose positive has the anchor's class.
        negatives: Share of judged triplets whose negative has another class.
        both: Share of judged triplets with a true positive and a true negative.
    """

    triplets: int
    judged: int
    positives: float
    negatives: float
    both: float

    @property
    def false_negatives(self) -> float:
        """Share of judged triplets whose negative has the anchor's class."""
        return 1 - self.negatives


def triplet_truth(neighbors: Array, after: Array, classes: Array) -> Truth:
    """Judge the triplets of a graph's sorted neighbors; every row is an anchor.

    Args:
        neighbors: (p, k) neighbors as rows.
        after: (p, k) affinities that sort them.
        classes: (c,) true classes of all rows that `neighbors` refers to; −1 where unknown.
    """
    return _triplet_truth(neighbors, after, classes, np.arange(len(neighbors)))


def by_distance(neighbors: Array) -> Array:
    """Return values (p, k) that sort neighbors by distance, nearest first.

    In place of affinities they show what the labels add to the triplets.

    Args:
        neighbors: (p, k) neighbors, nearest first.
    """
    return np.tile(-np.arange(neighbors.shape[1], dtype=np.float32), (len(neighbors), 1))


def subgraph_truth(part: Subgraph, classes: Array) -> Truth:
    """Judge triplets whose anchors have all their neighbors in the subgraph.

    Args:
        part: The subgraph.
        classes: (p,) true classes of the full graph's rows; −1 where unknown.
    """
    anchors = np.flatnonzero(part.complete)
    return _triplet_truth(part.neighbors[anchors], part.after[anchors], classes[part.rows], anchors)


def _triplet_truth(neighbors: Array, after: Array, classes: Array, anchors: Array) -> Truth:
    triplets = affinity_triplets(*(torch.from_numpy(np.ascontiguousarray(values))
                                   for values in (neighbors, after, anchors))).numpy()
    known = classes[triplets]
    known = known[(known >= 0).all(axis=1)]
    if not len(known):
        return Truth(len(triplets), 0, np.nan, np.nan, np.nan)
    anchor, positive, negative = known.T
    return Truth(len(triplets), len(known), float((anchor == positive).mean()), float((anchor != negative).mean()),
                 float(((anchor == positive) & (anchor != negative)).mean()))


@dataclass(frozen=True)
class Spectrum:
    """The singular values of a centered embedding.

    Attributes:
        values: (l,) singular values divided by their sum, descending.
        rank: Effective rank.
    """

    values: Array
    rank: float


def spectrum(embedding: Array) -> Spectrum:
    """Return the singular values of an embedding (n, l) and its effective rank."""
    values = np.linalg.svd(embedding - embedding.mean(axis=0), compute_uv=False)
    return Spectrum(values / max(float(values.sum()), 1e-12), effective_rank(embedding))


@dataclass(frozen=True)
class EgoGraph:
    """The ego graph of a subgraph's first row, as positions in the subgraph.

    It contains the neighbors of the row and their neighbors.

    Attributes:
        inner: (k,) neighbors of the first row.
        outer: (m,) neighbors of neighbors.
        parents: (m,) position in `inner` of a neighbor that leads to each outer row.
        edges: (e, 2) neighbor pairs among these rows, each pair once.
        before: (e,) affinities W0 of the edges.
        after: (e,) propagated affinities W of the edges.
    """

    inner: Array
    outer: Array
    parents: Array
    edges: Array
    before: Array
    after: Array


def ego_graph(part: Subgraph) -> EgoGraph:
    """Return the ego graph of the subgraph's first row, two steps deep."""
    inner = part.neighbors[0]
    outer, first = np.unique(part.neighbors[inner], return_index=True)
    is_new = ~np.isin(outer, np.append(inner, 0))
    starts = np.append(0, inner)
    ends = part.neighbors[starts]
    pairs = np.sort(np.stack([np.repeat(starts, ends.shape[1]), ends.ravel()], axis=1), axis=1)
    edges, positions = np.unique(pairs, axis=0, return_index=True)
    is_loop = edges[:, 0] == edges[:, 1]
    edges, positions = edges[~is_loop], positions[~is_loop]
    return EgoGraph(inner, outer[is_new], first[is_new] // ends.shape[1], edges, part.before[starts].ravel()[positions],
               part.after[starts].ravel()[positions])
