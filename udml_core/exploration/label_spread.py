"""Few labels on a neighbor graph, and random walks that end at labels.

The functions compute how far a label reaches and which image to label next. A walk starts at an image. Before each step
it ends with probability 1 − γ; otherwise it moves to one of the k neighbors. SSDML's affinities are defined by the same
walk. `udml_core.numerics.graph.propagate` computes the affinities as well; this module solves only for the end
probabilities, which takes milliseconds and can run after every new label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra
from scipy.sparse.linalg import gmres, spsolve

from udml_core.base.arrays import Array
from udml_core.numerics.neighbors import nearest

TOLERANCE, MOST_STEPS = 1e-6, 1_000


def neighbor_rows(embedding: Array, rows: Array, n_neighbors: int) -> Array:
    """Return the nearest neighbors of some rows among themselves.

    Args:
        embedding: (n, d) embedding.
        rows: (r,) rows of the embedding.
        n_neighbors: Number k of neighbors; at most r − 1 are used.

    Returns:
        (r, k) neighbors as positions in `rows`.
    """
    return nearest(np.asarray(embedding[rows]), min(n_neighbors, len(rows) - 1))[1]


def label_codes(labels: Mapping[int, str], names: Sequence[str], images: Array) -> Array:
    """Convert labels to class codes.

    Args:
        labels: Label of each labeled image, by data set index.
        names: Class names; a code is a position in this list.
        images: (p,) data set indices, ascending.

    Returns:
        (p,) codes; −1 marks an unlabeled image.
    """
    codes = {name: code for code, name in enumerate(names)}
    return np.array([codes[labels[image]] if image in labels else -1 for image in images.tolist()], dtype=int)


@dataclass(frozen=True)
class WalkEnds:
    """Where random walks end.

    Attributes:
        reach: (n, c) probability that a walk from each image ends at a label of each class.
    """

    reach: Array

    @cached_property
    def total(self) -> Array:
        """(n,) probability that a walk ends at any label."""
        return self.reach.sum(axis=1)

    @cached_property
    def best(self) -> Array:
        """(n,) class at which a walk most probably ends; −1 if it reaches no label."""
        if not self.reach.shape[1]:
            return np.full(len(self.reach), -1)
        return np.where(self.total > TOLERANCE / len(self.reach), self.reach.argmax(axis=1), -1)

    @cached_property
    def certainty(self) -> Array:
        """(n,) share of the most probable class among walks that end at a label.

        It is NaN if no walk ends at a label.
        """
        most = self.reach.max(axis=1, initial=0)
        return np.divide(most, self.total, out=np.full(len(most), np.nan), where=self.best >= 0)


def walk_ends(neighbors: Array, codes: Array, classes: int, gamma: float) -> WalkEnds:
    """Compute where walks end.

    Args:
        neighbors: (n, k) neighbors as rows.
        codes: (n,) class codes; −1 marks an unlabeled image.
        classes: Number of classes.
        gamma: Probability γ that a walk continues.
    """
    reach = [end_probability(neighbors, codes == code, gamma) for code in range(classes)]
    return WalkEnds(np.array(reach).reshape(classes, len(codes)).T)


def end_probability(neighbors: Array, labeled: Array, gamma: float) -> Array:
    """Compute the probability that a walk ends at one of some images.

    Args:
        neighbors: (n, k) neighbors as rows.
        labeled: (n,) bool, the images.
        gamma: Probability γ that a walk continues.

    Returns:
        (n,) probability for a walk from each image.
    """
    if not labeled.any():
        return np.zeros(len(labeled))
    system = walk_system(neighbors, np.zeros(len(neighbors), dtype=bool), gamma)
    return (1 - gamma) * solve(system, labeled).clip(0)


def share_correct(named: Array, codes: Array, names: Sequence[str], labels: Array,
                  class_names: Sequence[str]) -> float | None:
    """Compute the share of correct names among the unlabeled images that have a name.

    Args:
        named: (n,) class of each image as a position in `names`; −1 marks an image without a name.
        codes: (n,) assigned labels as positions in `names`; −1 marks an unlabeled image.
        names: Class names of the assigned labels.
        labels: (n,) true labels as positions in `class_names`.
        class_names: Class names of the data set.

    Returns:
        The share, or None if no unlabeled image has a name.
    """
    positions = {name: position for position, name in enumerate(class_names)}
    known = np.array([positions.get(name, -1) for name in names])
    judged = (codes < 0) & (named >= 0)
    return float((known[named[judged]] == labels[judged]).mean()) if judged.any() else None


@dataclass(frozen=True)
class Suggestion:
    """An image worth labeling.

    Attributes:
        row: Row of the image.
        visits: Expected number of visits by walks from all images before they end or reach a label.
    """

    row: int
    visits: float


def suggestions(neighbors: Array, labeled: Array, gamma: float, count: int,
                leave_out: Sequence[int] = ()) -> list[Suggestion]:
    """Suggest which images to label next, the most useful first.

    One walk starts at every image and stops at the first labeled image. The image that is visited most is typical of
    images without a label nearby. Each suggested image counts as labeled for the next suggestion, which spreads the
    suggestions over the graph.

    Args:
        neighbors: (n, k) neighbors as rows.
        labeled: (n,) bool, the labeled images.
        gamma: Probability γ that a walk continues.
        count: Maximum number of suggestions.
        leave_out: Rows that must not be suggested.
    """
    stops, suggested = labeled.copy(), []
    excluded = np.isin(np.arange(len(labeled)), list(leave_out))
    for _ in range(min(count, int((~labeled & ~excluded).sum()))):
        visits = solve(walk_system(neighbors, stops, gamma).T, np.ones(len(stops)))
        row = int(np.where(stops | excluded, -1, visits).argmax())
        suggested.append(Suggestion(row, float(visits[row])))
        stops[row] = True
    return suggested


@dataclass(frozen=True)
class HopShare:
    """Influence of a label on the images at one distance from it.

    Attributes:
        hops: Steps to the label.
        images: Number of images at this distance.
        share: Mean share of their walks to any label that end at this label.
    """

    hops: int
    images: int
    share: float


def label_share(neighbors: Array, codes: Array, row: int, gamma: float) -> Array:
    """Compute the share of walks to any label that end at one labeled image.

    Args:
        neighbors: (n, k) neighbors as rows.
        codes: (n,) class codes; −1 marks an unlabeled image.
        row: The labeled image.
        gamma: Probability γ that a walk continues.

    Returns:
        (n,) share for walks from each image; NaN if they reach no label.
    """
    this_or_other = np.where(np.arange(len(codes)) == row, 1, np.where(codes >= 0, 0, -1))
    walks = walk_ends(neighbors, this_or_other, 2, gamma)
    return np.divide(walks.reach[:, 1], walks.total, out=np.full(len(codes), np.nan), where=walks.best >= 0)


def hop_counts(neighbors: Array, row: int) -> Array:
    """Return the length of the shortest path from each image to a row, (n,).

    The length is −1 without a path.
    """
    steps = dijkstra(neighbor_edges(neighbors).T, unweighted=True, indices=row)
    return np.where(np.isfinite(steps), steps, -1).astype(int)


def labels_by_distance(neighbors: Array, codes: Array, row: int) -> Array:
    """Return the labeled rows by the length of the shortest path from a row.

    Unreachable rows come last.
    """
    steps = dijkstra(neighbor_edges(neighbors), unweighted=True, indices=row)
    labeled = np.flatnonzero(codes >= 0)
    return labeled[np.argsort(steps[labeled], kind="stable")]


def mean_share_by_hops(steps: Array, share: Array) -> list[HopShare]:
    """Average the shares at each distance, nearest first.

    Args:
        steps: (n,) steps from each image to the label; images with −1 are skipped.
        share: (n,) share of each image; NaN counts as 0.
    """
    averages = []
    for distance in range(int(steps.max(initial=0)) + 1):
        values = share[steps == distance]
        if len(values):
            averages.append(HopShare(distance, len(values), float(np.nan_to_num(values).mean())))
    return averages


def neighbor_edges(neighbors: Array) -> sparse.csr_array:
    """Return the adjacency matrix (n, n) of the neighbors (n, k)."""
    count, k = neighbors.shape
    return sparse.csr_array((np.ones(count * k), neighbors.ravel(), np.arange(0, count * k + 1, k)), (count, count))


def walk_system(neighbors: Array, stops: Array, gamma: float) -> sparse.csr_array:
    """Return I − γQ with zero rows of Q at `stops` (n,) bool.

    A walk does not leave these images.
    """
    count, k = neighbors.shape
    steps = np.where(np.repeat(stops, k), 0.0, gamma / k)
    walk = sparse.csr_array((steps, neighbors.ravel(), np.arange(0, count * k + 1, k)), (count, count))
    return sparse.csr_array(sparse.eye_array(count) - walk)


def solve(matrix: sparse.sparray, right: Array) -> Array:
    """Return A⁻¹b.

    GMRES takes tens of milliseconds for a few thousand images, where elimination takes minutes for ten times as many.
    Elimination is the fallback if GMRES does not converge.
    """
    rows = sparse.csr_array(matrix)
    solution, failed = gmres(rows, right.astype(np.float64), rtol=TOLERANCE, restart=40, maxiter=20)
    return spsolve(sparse.csc_array(matrix), right.astype(np.float64)) if failed else solution


def solve_walk(steps: sparse.csr_array, degrees: Array, gamma: float, right: Array) -> Array:
    """Return (I − γP)⁻¹b of a walk P along edges in both directions, by conjugate gradients.

    P is self-adjoint in the inner product that weights each image by its number of edges, so conjugate gradients need a
    product with P and three of vectors a step, where GMRES needs as many as it has steps.

    Several right sides are solved together, which reads P once for all of them.

    Args:
        steps: Transition matrix P (n, n).
        degrees: Number of edges (n,) of each image.
        gamma: Probability γ that a walk continues.
        right: The right side b (n,), or several (n, c).
    """
    def sizes(first: Array, second: Array) -> Array:
        return np.einsum("n...,n,n...->...", first, degrees, second)

    residual = np.array(right, np.float64, order="C")
    solution, direction, size = np.zeros_like(residual), residual.copy(), sizes(residual, residual)
    goal = TOLERANCE ** 2 * size
    for _ in range(MOST_STEPS):
        is_open = size > goal
        if not is_open.any():
            return solution
        image = direction - gamma * (steps @ direction)
        length = np.divide(size, sizes(image, direction), out=np.zeros_like(size), where=is_open)
        solution += length * direction
        residual -= length * image
        before, size = size, np.where(is_open, sizes(residual, residual), size)
        direction *= np.divide(size, before, out=np.ones_like(size), where=is_open)
        direction += residual
    system = sparse.csr_array(sparse.eye_array(len(right)) - gamma * steps)
    return np.stack([solve(system, each) for each in right.reshape(len(right), -1).T], axis=1).reshape(right.shape)
