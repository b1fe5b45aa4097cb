"""What propagated affinities make of an image's neighbors, live on the part of the graph around it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from udml_core.arrays import Array
from udml_core.evaluation import effective_rank
from udml_core.explanations import Affinities
from udml_core.graph import propagate
from udml_core.sampling import affinity_triplets


@dataclass(frozen=True)
class LabelGraph:
    """A neighbor graph of some images with few labels.

    images (p,): positions in the data set, ascending. neighbors (p, k): rows. codes (p,): classes, −1 without a label.
    """

    images: Array
    neighbors: Array
    codes: Array

    def row_of(self, image: int) -> int | None:
        """Where an image stands; None of one that is not in the graph."""
        row = int(np.searchsorted(self.images, image))
        return row if row < len(self.images) and self.images[row] == image else None

    @property
    def telling(self) -> int:
        """The row with the most classes among its neighbors' labels and its own, then the most labels."""
        codes = np.sort(np.column_stack([self.codes, self.codes[self.neighbors]]), axis=1)
        classes = ((codes >= 0) & (np.diff(codes, axis=1, prepend=-1) > 0)).sum(axis=1)
        return int(np.lexsort(((codes >= 0).sum(axis=1), classes))[-1])

    def part(self, row: int, most: int) -> Array:
        """The rows (m,) around one, itself first, then step by step, at most `most`."""
        seen, ring = [row], np.array([row])
        while len(ring) and len(seen) < most:
            ring = np.setdiff1d(self.neighbors[ring], seen)
            seen.extend(ring[:most - len(seen)].tolist())
        return np.array(seen)


def graph_of(record: Affinities, train: Array) -> LabelGraph:
    """The graph that training used, in positions of the data set; `train` (t,) are those of the training half."""
    order = np.argsort(record.points, kind="stable")
    rows = order[np.searchsorted(record.points, record.neighbors, sorter=order)]
    return LabelGraph(train[record.points], rows, record.labels)


@dataclass(frozen=True)
class Part:
    """A part of a graph with its affinities: rows (m,) of the whole, neighbors (m, k) as places in `rows`, and W0 and W
    at these, (m, k) each. whole (m,): whether all of a row's neighbors are in the part."""

    rows: Array
    neighbors: Array
    before: Array
    after: Array
    whole: Array

    def sorted_neighbors(self, place: int) -> tuple[Array, Array]:
        """The rows (k,) of one's neighbors by affinity, the largest first, and these affinities; the first half are
        its positives."""
        order = np.argsort(-self.after[place], kind="stable")
        return self.rows[self.neighbors[place, order]], self.after[place, order]


def propagated(graph: LabelGraph, rows: Array, gamma: float) -> Part:
    """Affinities on a part (m,) of a graph. A walk that would leave the part waits instead."""
    place = np.full(len(graph.images), -1)
    place[rows] = np.arange(len(rows))
    inside = place[graph.neighbors[rows]]
    stays = inside < 0
    neighbors = np.where(stays, np.arange(len(rows))[:, None], inside)
    found = propagate(neighbors, graph.codes[rows], gamma)
    return Part(rows, neighbors, found.before, found.after, np.asarray(~stays.any(axis=1)))


@dataclass(frozen=True)
class Truth:
    """How many triplets there are, how many of them can be judged, and of these the shares of true positives, true
    negatives and true triplets."""

    triplets: int
    judged: int
    positives: float
    negatives: float
    both: float


def triplet_truth(neighbors: Array, after: Array, classes: Array) -> Truth:
    """What sorting neighbors (p, k) by affinity (p, k) makes of them, against the true classes (c,) of all rows that
    `neighbors` names, −1 of those that are not known: triplets with such a one are not judged. Row i anchors. NaN where
    none is judged."""
    return _truth(neighbors, after, classes, np.arange(len(neighbors)))


def part_truth(part: Part, classes: Array) -> Truth:
    """The same of a part's anchors that have all their neighbors; classes (p,) of the whole graph."""
    anchors = np.flatnonzero(part.whole)
    return _truth(part.neighbors[anchors], part.after[anchors], classes[part.rows], anchors)


def _truth(neighbors: Array, after: Array, classes: Array, anchors: Array) -> Truth:
    found = affinity_triplets(*(torch.from_numpy(np.ascontiguousarray(one)) for one in (neighbors, after, anchors)))
    known = classes[found.numpy()]
    known = known[(known >= 0).all(axis=1)]
    if not len(known):
        return Truth(len(found), 0, np.nan, np.nan, np.nan)
    own, positive, negative = known.T
    return Truth(len(found), len(known), float((own == positive).mean()), float((own != negative).mean()),
                 float(((own == positive) & (own != negative)).mean()))


@dataclass(frozen=True)
class Spectrum:
    """The singular values (l,) of a centred embedding as shares of their sum, and its effective rank."""

    values: Array
    rank: float


def spectrum(embedding: Array) -> Spectrum:
    """How many directions an embedding (n, l) uses; collapse leaves one."""
    values = np.linalg.svd(embedding - embedding.mean(axis=0), compute_uv=False)
    return Spectrum(values / max(float(values.sum()), 1e-12), effective_rank(embedding))


@dataclass(frozen=True)
class Ego:
    """The two steps around a part's first row, as places in the part.

    inner (k,): its neighbors. outer (m,): theirs, and parents (m,) who leads there, as places in `inner`.
    edges (e, 2): who is a neighbor of whom among all these, each pair once; before, after (e,): their affinities.
    """

    inner: Array
    outer: Array
    parents: Array
    edges: Array
    before: Array
    after: Array


def ego(part: Part) -> Ego:
    """What is drawn of the graph around an image."""
    inner = part.neighbors[0]
    onward = part.neighbors[inner]
    outer, first = np.unique(onward, return_index=True)
    new = ~np.isin(outer, np.append(inner, 0))
    starts = np.append(0, inner)
    ends = part.neighbors[starts]
    pairs = np.sort(np.stack([np.repeat(starts, ends.shape[1]), ends.ravel()], axis=1), axis=1)
    edges, places = np.unique(pairs, axis=0, return_index=True)
    apart = edges[:, 0] != edges[:, 1]
    edges, places = edges[apart], places[apart]
    return Ego(inner, outer[new], first[new] // ends.shape[1], edges, part.before[starts].ravel()[places],
               part.after[starts].ravel()[places])
