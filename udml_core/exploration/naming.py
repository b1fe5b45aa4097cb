"""Names for unlabeled images that say "none of these" far from every label.

Random walks on a symmetric neighbor graph start at each image and end with probability 1 − γ at each step. The
certainty of a class compares how often they end at a label of the class with how often walks from its labeled images
do. So it falls with the distance to the labels, also if there is a single class; and other labeled classes do not
lower or raise it, because an image of a class without a label is often far from all of them but one. Each class's
labels are kept in a few folds, so that a checked name counts without the labels of its own fold; see `accepting`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from scipy import sparse

from udml_core.base.arrays import Booleans, Floats, Integers
from udml_core.base.errors import counted
from udml_core.base.memory import Memory
from udml_core.data.dataset import Report
from udml_core.exploration.label_spread import neighbor_edges, solve_walk

FOLDS = 5
"""Parts of a class's labels; a labeled image is named without its own part."""
NEIGHBORS = 20
GAMMA = 0.9
"""Neighbors and γ by which names are given unless a user changes γ: 20 and 0.9 named most birds at a precision of 90 %,
with two to thirty labeled species and one to four labels each."""
FLOOR = 1e-12
AT_ONCE, LONG = 16, 500_000
"""Sets of images whose walks are solved together, and images times sets from which it takes long enough to say so."""


class Walk(NamedTuple):
    """Walks along edges in both directions.

    Attributes:
        steps: Transition matrix (n, n).
        degrees: Number of edges (n,) of each image.
    """

    steps: sparse.csr_array
    degrees: Floats


def symmetric_walk(neighbors: Integers) -> Walk:
    """Return the walks along neighbors (n, k) in both directions."""
    edges = neighbor_edges(neighbors)
    both = sparse.csr_array(edges + edges.T)
    degrees = np.asarray(both.sum(axis=1)).ravel()
    steps = sparse.csr_array(sparse.diags_array(1 / degrees) @ both)
    if steps.nnz < np.iinfo(np.int32).max:  # half the bytes to read in each step of a solution
        steps.indices, steps.indptr = steps.indices.astype(np.int32), steps.indptr.astype(np.int32)
    return Walk(steps, degrees)


def reach_of(walk: Walk, labeled: Booleans, gamma: float) -> Floats:
    """Return the probability (n,) that a walk from each image ends at one of some images (n,); or (c, n) for several.
    """
    if not labeled.any():
        return np.zeros(labeled.shape)
    return (1 - gamma) * solve_walk(walk.steps, walk.degrees, gamma, labeled.T).T.clip(0)


class KeptReach:
    """How often walks end at some images, solved once for each set of them; a caller must not change it.

    Args:
        solve: Returns `reach_of` one or several sets of images.
        most: The number of solutions that are kept.
    """

    def __init__(self, solve: Callable[[Booleans], Floats], most: int) -> None:
        self._solve, self._memory = solve, Memory(most)

    def __call__(self, labeled: Booleans) -> Floats:
        """Return the probability (n,) that a walk from each image ends at one of some images (n,)."""
        return self._memory.get(labeled.tobytes(), lambda: self._solve(labeled))

    def prepare(self, labeled: Booleans, report: Report) -> None:
        """Solve several sets of images (c, n) together, unless they are kept; report if this takes long."""
        missing = [each for each in labeled if each.any() and not self._memory.has(each.tobytes())]
        is_long = len(missing) * labeled.shape[1] > LONG
        for start in range(0, len(missing), AT_ONCE):
            part = np.array(missing[start: start + AT_ONCE])
            if is_long:
                report(start / len(missing), f"spreading {counted(len(missing), 'name')}")
            for each, found in zip(part, np.ascontiguousarray(self._solve(part)), strict=True):
                self._memory.get(each.tobytes(), partial(_same, found))


def _same(found: Floats) -> Floats:
    return found


def fold_of(rows: Integers) -> Integers:
    """Return the fold of each row, which does not change when labels are added."""
    return (np.asarray(rows, np.uint64) * np.uint64(2654435761) % np.uint64(2**32) // np.uint64(65536)
            % np.uint64(FOLDS)).astype(int)


@dataclass(frozen=True, eq=False)
class Reached:
    """How often walks end at the labels of each class, at all of them or at one of their folds; solved on demand.

    Most images are named without the folds, so a new label costs one solution.

    Attributes:
        codes: Class (n,) of each labeled image; −1 for the others.
        classes: Number of classes.
        reach: Returns `reach_of` some images; a caller can cache it, because a new label changes one class.
        solved: The solutions of classes and folds so far.
    """

    codes: Integers
    classes: int
    reach: Callable[[Booleans], Floats]
    solved: dict[tuple[int, int], Floats] = field(default_factory=dict)

    @cached_property
    def whole(self) -> Floats:
        """The probability (c, n) that a walk from each image ends at a label of each class."""
        return np.array([self.reach(self.codes == code) for code in range(self.classes)]).reshape(
            self.classes, len(self.codes))

    def fold(self, code: int, fold: int) -> Floats:
        """Return the probability (n,) that a walk from each image ends at a label of a class in a fold."""
        if (code, fold) not in self.solved:
            self.solved[code, fold] = self.reach((self.codes == code) & (fold_of(np.arange(len(self.codes))) == fold))
        return self.solved[code, fold]


@dataclass(frozen=True)
class Naming:
    """The most probable class of each image, and its certainty.

    Attributes:
        reached: How often walks end at the labels of each class.
        rejected: (r, 2) rows and classes that a user rejected.
    """

    reached: Reached
    rejected: Integers

    @property
    def codes(self) -> Integers:
        """Class (n,) of each labeled image; −1 for the others."""
        return self.reached.codes

    @cached_property
    def _counts(self) -> Integers:
        """(c, FOLDS) number of labels of each class and fold."""
        rows = np.flatnonzero(self.codes >= 0)
        return np.bincount(self.codes[rows] * FOLDS + fold_of(rows), minlength=self.classes * FOLDS).reshape(
            self.classes, FOLDS)

    @property
    def classes(self) -> int:
        """Number of classes."""
        return self.reached.classes

    @cached_property
    def _density(self) -> Floats:
        """(n, c) probability that a walk ends at a label of each class, for each label."""
        return (self.reached.whole / np.maximum(self._counts.sum(axis=1), 1)[:, None]).T

    def _own_density(self, rows: Integers) -> Floats:
        """Return the density (k,) of the class of labeled images without the labels of their fold; NaN without others.
        """
        own, folds = self.codes[rows], fold_of(rows)
        left = self._counts[own].sum(axis=1) - self._counts[own, folds]
        without = self.reached.whole[own, rows]
        for code, fold in sorted(set(zip(own.tolist(), folds.tolist(), strict=True))):
            same = (own == code) & (folds == fold)
            without[same] -= self.reached.fold(code, fold)[rows[same]]
        return np.divide(without.clip(0), left, out=np.full(len(rows), np.nan), where=left > 0)

    @cached_property
    def _typical(self) -> Floats:
        """(c,) density of each class at its median labeled image, where many walks end at the image itself."""
        return np.array([np.median(own) if len(own := self._density[self.codes == code, code]) else 0.0
                         for code in range(self.classes)])

    @cached_property
    def _allowed(self) -> Booleans:
        """(n, c) whether a user has not rejected a class for an image."""
        allowed = np.ones(self._density.shape, bool)
        allowed[self.rejected[:, 0], self.rejected[:, 1]] = False
        return allowed

    @cached_property
    def certainties(self) -> Floats:
        """How certain each class is for each image (n, c), 0 to 1; 0 for a class that a user rejected."""
        return np.where(self._allowed, _certainty(self._density, self._typical), 0.0)

    def agreement(self, rows: Integers) -> Floats:
        """Return the share (k, c) of each class among the labels where walks from some images (k,) end."""
        density = np.where(self._allowed[rows], self._density[rows], 0.0)
        return np.asarray(density / np.maximum(density.sum(axis=1, keepdims=True), FLOOR))

    @cached_property
    def named(self) -> tuple[Integers, Floats]:
        """The most probable class (n,), −1 if no walk ends at a label, and its certainty (n,), 0 to 1.

        A labeled image has its own class with certainty 1. A class that a user rejected for an image is passed over.
        """
        if not self.classes:
            return np.full(len(self.codes), -1), np.zeros(len(self.codes))
        best, labeled = self.certainties.argmax(axis=1), self.codes >= 0
        certainty = self.certainties[np.arange(len(best)), best]
        best = np.where(certainty > 0, best, -1)
        return np.where(labeled, self.codes, best), np.where(labeled, 1.0, certainty)

    def accepted(self, least: float | Floats) -> Integers:
        """Return the class (n,) of labeled images and of images that are at least as certain; −1 for the others.

        Args:
            least: The certainty, one for all classes or one for each (c,).
        """
        best, certainty = self.named
        return np.where((self.codes >= 0) | (self.reaches(least) & (certainty > 0)), best, -1)

    def reaches(self, least: float | Floats) -> Booleans:
        """Return whether the name of each image (n,) is at least as certain; see `accepted`."""
        best, certainty = self.named
        wanted = np.append(np.broadcast_to(np.asarray(least, float), self.classes), np.inf)  # −1 is no class
        return np.asarray(certainty >= wanted[best], bool)

    def certainty_without_own(self, rows: Integers, codes: Integers) -> Floats:
        """Return how certain classes (k,) of images (k,) are, without the labels of the fold of an image's own class.

        Args:
            rows: Rows (k,) of images, labeled or not.
            codes: A class (k,) for each, its own or another.
        """
        density, is_own = self._density[rows, codes], self.codes[rows] == codes
        density[is_own] = np.nan_to_num(self._own_density(rows[is_own]))
        return _certainty(density, self._typical[codes])


def _certainty(density: Floats, typical: Floats) -> Floats:
    """Return densities on a scale from 0 to 1 without an upper fence, so that the nearest images still differ."""
    density = np.maximum(density, 0)  # a difference of sums can round to less
    return np.asarray(1 - 0.25 ** (density / np.maximum(typical, FLOOR)))
