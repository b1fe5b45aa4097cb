"""Few labels on a neighbor graph: where walks end, how far a label reaches, which image to label next.

A walk begins at an image, ends with probability 1−γ before each step, and else goes on to one of the k neighbors. That
is the walk behind SSDML's affinities; `udml_core.graph.propagate` tells its reach and the affinities, and here only the
reach is solved for, in milliseconds, so that it can follow every label.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra
from scipy.sparse.linalg import gmres, spsolve

from udml_core.arrays import Array
from udml_core.neighbors import nearest

TOLERANCE = 1e-6


def neighbor_rows(embedding: Array, rows: Array, n_neighbors: int) -> Array:
    """The nearest (r, k) of some rows (r,) of an embedding (n, d) among themselves, as places in `rows`."""
    return nearest(np.asarray(embedding[rows]), min(n_neighbors, len(rows) - 1))[1]


def coded(labels: Mapping[int, str], names: Sequence[str], images: Array) -> Array:
    """Labels by image position as places in `names`, of ascending images (p,); −1 where there is none."""
    place = {name: number for number, name in enumerate(names)}
    return np.array([place[labels[image]] if image in labels else -1 for image in images.tolist()], dtype=int)


@dataclass(frozen=True)
class Ends:
    """Where walks end: reach (n, c), the probability that a walk from each image ends at a label of each class."""

    reach: Array

    @cached_property
    def total(self) -> Array:
        """The probability of ending at any label, (n,)."""
        return self.reach.sum(axis=1)

    @cached_property
    def best(self) -> Array:
        """The class that a walk most probably ends at, (n,); −1 where no label is reached."""
        if not self.reach.shape[1]:
            return np.full(len(self.reach), -1)
        return np.where(self.total > TOLERANCE / len(self.reach), self.reach.argmax(axis=1), -1)

    @cached_property
    def certainty(self) -> Array:
        """Of the walks that end at a label, the share that ends at the most probable class, (n,); NaN without any."""
        most = self.reach.max(axis=1, initial=0)
        return np.divide(most, self.total, out=np.full(len(most), np.nan), where=self.best >= 0)


def ends(neighbors: Array, codes: Array, classes: int, gamma: float) -> Ends:
    """Where walks end among labels.

    Args:
        neighbors: (n, k) rows. codes: (n,) of `classes` classes, −1 without a label. gamma: γ.
    """
    return ends_by_class(codes, classes, lambda labeled: ends_among(neighbors, labeled, gamma))


def ends_by_class(codes: Array, classes: int, among: Callable[[Array], Array]) -> Ends:
    """The same, class by class from `ends_among` of its images, (n,) bool; a label changes one class only."""
    return Ends(np.array([among(codes == one) for one in range(classes)]).reshape(classes, len(codes)).T)


def ends_among(neighbors: Array, labeled: Array, gamma: float) -> Array:
    """The probability (n,) that a walk from each image ends at one of some images, labeled (n,) bool."""
    if not labeled.any():
        return np.zeros(len(labeled))
    walk = _going_on(neighbors, np.zeros(len(neighbors), dtype=bool), gamma)
    return (1 - gamma) * _solve(walk, labeled).clip(0)


def agreement(found: Ends, codes: Array, names: Sequence[str], labels: Array,
              class_names: Sequence[str]) -> float | None:
    """Of the images without a label, the share whose most probable class is called as their own.

    Args:
        codes: (n,) places in `names`, −1 without a label. labels: (n,) places in `class_names`, the true ones.

    Returns:
        None where every image has a label.
    """
    numbers = {name: number for number, name in enumerate(class_names)}
    known = np.array([numbers.get(name, -1) for name in names] + [-1])  # −1, no class, takes the last
    unlabeled = codes < 0
    return float((known[found.best] == labels)[unlabeled].mean()) if unlabeled.any() else None


@dataclass(frozen=True)
class Suggestion:
    """An image worth a label: its row, and how often walks from all images come by before they end or meet a label."""

    row: int
    visits: float


def suggestions(neighbors: Array, labeled: Array, gamma: float, count: int,
                leave_out: Sequence[int] = ()) -> list[Suggestion]:
    """Which images to label next, the most worth it first.

    One walk begins at every image and stops where it meets a label; the image that walks come by most often is typical
    of those that no label reaches yet. A suggested image counts as labeled for the next, so that they lie apart.

    Args:
        neighbors: (n, k) rows. labeled: (n,) bool. gamma: γ. leave_out: rows that are not wanted.
    """
    stops, found = labeled.copy(), []
    unwanted = np.isin(np.arange(len(labeled)), list(leave_out))
    for _ in range(min(count, int((~labeled & ~unwanted).sum()))):
        visits = _solve(_going_on(neighbors, stops, gamma).T, np.ones(len(stops)))
        row = int(np.where(stops | unwanted, -1, visits).argmax())
        found.append(Suggestion(row, float(visits[row])))
        stops[row] = True
    return found


@dataclass(frozen=True)
class HopShare:
    """What images at one distance from a label owe to it: how many steps away, how many images, and the mean share of
    their walks to any label that ends at this one."""

    hops: int
    images: int
    share: float


def shares(neighbors: Array, codes: Array, row: int, gamma: float) -> Array:
    """Of the walks from each image that end at any label, the share that ends at one labeled row, (n,); NaN where no
    label is reached."""
    found = ends(neighbors, np.where(np.arange(len(codes)) == row, 1, np.where(codes >= 0, 0, -1)), 2, gamma)
    return np.divide(found.reach[:, 1], found.total, out=np.full(len(codes), np.nan), where=found.best >= 0)


def hops(neighbors: Array, row: int) -> Array:
    """How many steps a walk from each image needs to a row at least, (n,); −1 where no way leads there."""
    steps = dijkstra(_edges(neighbors).T, unweighted=True, indices=row)
    return np.where(np.isfinite(steps), steps, -1).astype(int)


def labels_from(neighbors: Array, codes: Array, row: int) -> Array:
    """The labeled rows, by the steps that a walk from one row needs to each; those that it cannot get to come last."""
    steps = dijkstra(_edges(neighbors), unweighted=True, indices=row)
    labeled = np.flatnonzero(codes >= 0)
    return labeled[np.argsort(steps[labeled], kind="stable")]


def by_hops(steps: Array, share: Array) -> list[HopShare]:
    """The mean share (n,) at each number of steps (n,), nearest first; who cannot get there is left out."""
    found = []
    for one in range(int(steps.max(initial=0)) + 1):
        here = share[steps == one]
        if len(here):
            found.append(HopShare(one, len(here), float(np.nan_to_num(here).mean())))
    return found


def _edges(neighbors: Array) -> sparse.csr_array:
    """1 from each row to each of its neighbors (n, k)."""
    count, k = neighbors.shape
    return sparse.csr_array((np.ones(count * k), neighbors.ravel(), np.arange(0, count * k + 1, k)), (count, count))


def _going_on(neighbors: Array, stops: Array, gamma: float) -> sparse.csr_array:
    """I − γQ, the rows of stops (n,) bool without Q: a walk does not go on from there."""
    count, k = neighbors.shape
    steps = np.where(np.repeat(stops, k), 0.0, gamma / k)
    walk = sparse.csr_array((steps, neighbors.ravel(), np.arange(0, count * k + 1, k)), (count, count))
    return sparse.csr_array(sparse.eye_array(count) - walk)


def _solve(matrix: sparse.sparray, right: Array) -> Array:
    """A⁻¹b: GMRES needs some tens of milliseconds for some thousand images, an elimination minutes for ten times so
    many; it is the way out where GMRES does not settle."""
    rows = sparse.csr_array(matrix)
    found, unsettled = gmres(rows, right.astype(np.float64), rtol=TOLERANCE, restart=40, maxiter=20)
    return spsolve(sparse.csc_array(matrix), right.astype(np.float64)) if unsettled else found
