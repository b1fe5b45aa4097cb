"""The steps of a recipe on a gallery whose neighbors are searched among candidates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from udml_core.base.arrays import Array, Floats, Integers
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.refinement.linear import LinearMap, unit_rows
from udml_core.numerics.refinement.recipe import Whiten
from udml_core.numerics.refinement.reciprocal import fill_similarities, mutual_mask
from udml_core.numerics.refinement.sparse_loops import in_threads


@dataclass(frozen=True, eq=False)
class Stage:
    """The gallery after some steps of a recipe.

    Attributes:
        rows: Unit rows (n, m).
        candidates: Candidates (n, c) of each image, without itself.
        cosines: Cosine (n, c) of each image and its candidates.
        sources: Rows (n, m) of which the last averaging took the means; None if no step averaged.
        weights: Weights (n, n) of these means, one on the diagonal; None if no step averaged.
    """

    rows: Floats
    candidates: Integers
    cosines: Floats
    sources: Floats | None = None
    weights: sparse.csr_matrix | None = None

    def moved(self, rows: Floats, sources: Floats | None = None, weights: sparse.csr_matrix | None = None) -> Stage:
        """Return the stage with other rows and the cosines of their candidates."""
        rows = np.ascontiguousarray(rows, np.float32)
        return Stage(rows, self.candidates, candidate_cosines(rows, self.candidates), sources, weights)

    def nearest(self, k: int) -> tuple[Integers, Floats]:
        """Return the k nearest candidates (n, k) of each image, nearest first, and their cosines (n, k)."""
        k = min(k, self.candidates.shape[1])
        columns = np.argpartition(-self.cosines, k - 1, axis=1)[:, :k]
        cosines = np.take_along_axis(self.cosines, columns, axis=1)
        order = np.argsort(-cosines, axis=1, kind="stable")
        columns = np.take_along_axis(columns, order, axis=1)
        return np.take_along_axis(self.candidates, columns, axis=1), np.take_along_axis(cosines, order, axis=1)


def candidate_cosines(rows: Floats, candidates: Integers, queries: Floats | None = None) -> Floats:
    """Return the cosines (n, c) of queries (n, m), by default the rows (n, m), and their candidates (n, c)."""
    queries = rows if queries is None else queries
    count, width = candidates.shape
    values = np.empty(count * width, np.float32)
    starts, members = np.arange(count + 1) * width, candidates.ravel()
    in_threads(lambda start, stop: fill_similarities(start, stop, queries, rows, starts, members, values), count)
    return values.reshape(count, width)


def main_components(rows: Floats, components: int) -> tuple[Floats | None, float]:
    """Find the directions of largest squared length of unit rows (n, d).

    Without a mean, so that cosines change as little as possible.

    Returns:
        Directions (d, m), or None to keep the rows as they are, and the kept share of the squared length.
    """
    if rows.shape[1] <= components:
        return None, 1.0
    values, vectors = np.linalg.eigh(rows.T @ rows)
    return np.ascontiguousarray(vectors[:, -components:]), float(values[-components:].sum() / values.sum())


def start_stage(stored: Floats, projection: Floats | None, candidates: int) -> Stage:
    """Return the stage before any step: candidates by unit rows (n, d), and their projection as rows."""
    nearest_rows = np.ascontiguousarray(nearest(stored, min(candidates, len(stored) - 1))[1])
    rows = stored if projection is None else unit_rows(stored @ projection)
    return Stage(rows, nearest_rows, candidate_cosines(rows, nearest_rows))


def eigenvectors_of(stage: Stage, step: Whiten) -> tuple[Array, Array]:
    """Return eigenvalues (m,) and eigenvectors (m, m) of the covariance that a step whitens."""
    if step.covariance == "images":
        difference = stage.rows - stage.rows.mean(axis=0)
    else:
        order = with_own(stage.nearest(step.k)[0])
        first, position = np.nonzero(mutual_mask(order))
        second = order[first, position]
        pairs = first < second
        difference = stage.rows[first[pairs]] - stage.rows[second[pairs]]
    return np.linalg.eigh((difference.T @ difference).astype(np.float64) / max(1, len(difference)))


def whitening_of(values: Array, vectors: Array, rows: Floats, shrinkage: float) -> LinearMap:
    """Return the whitening (C + s·σ²·I)^(−1/2) of a spectrum, as `udml_core.numerics.refinement.linear.whitening`."""
    level = float(values.mean()) * shrinkage or 1.0
    weight = vectors / np.sqrt(np.maximum(values, 0) + level) @ vectors.T
    return LinearMap(weight.astype(np.float32), rows.mean(axis=0))


def averaging_weights(stage: Stage, k: int, alpha: float) -> sparse.csr_matrix:
    """Return the weights (n, n) of a mean: one for each image itself, cosine^α for its k nearest candidates."""
    order, cosines = stage.nearest(k)
    weights = np.ones_like(cosines) if alpha == 0 else np.maximum(cosines, 0) ** np.float32(alpha)
    return list_matrix(with_own(order), np.concatenate([np.ones((len(order), 1), np.float32), weights], axis=1))


def with_own(order: Integers) -> Integers:
    """Put each image before its list, (n, k) → (n, k + 1)."""
    return np.concatenate([np.arange(len(order))[:, None], order], axis=1)


def list_matrix(order: Integers, values: Floats) -> sparse.csr_matrix:
    """Return the matrix (n, n) with `values` (n, k) at the columns `order` (n, k)."""
    starts = np.arange(len(order) + 1) * order.shape[1]
    return sparse.csr_matrix((values.ravel(), order.ravel(), starts), shape=(len(order), len(order)))
