"""A gallery ranked after the steps of a recipe."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy import sparse

from udml_core.base.arrays import Floats, Integers
from udml_core.exploration.refining.stages import Stage, averaging_weights, candidate_cosines, list_matrix, with_own
from udml_core.exploration.refining.unrefined import NEIGHBORS, UnrefinedGallery, rank_rows
from udml_core.numerics.neighbors import without_own
from udml_core.numerics.refinement.diffusion import ITERATIONS, TOLERANCE, solve_on_lists
from udml_core.numerics.refinement.linear import unit_rows
from udml_core.numerics.refinement.recipe import Diffuse, Expand, Recipe, Rerank
from udml_core.numerics.refinement.reciprocal import (
    average_encodings,
    encode,
    expand,
    mutual_mask,
    rank_by_overlap,
    reciprocal_sets,
)
from udml_core.numerics.refinement.sparse_loops import in_threads


class RefinedGallery:
    """A gallery refined by a recipe.

    Attributes:
        before: The gallery before the recipe.
        recipe: The recipe.
        stage: The gallery after the steps that change embeddings.
    """

    def __init__(self, before: UnrefinedGallery, recipe: Recipe, stage: Stage) -> None:
        self.before, self.recipe, self.stage = before, recipe, stage
        self._sampled: Integers | None = None

    @property
    def _expansion(self) -> Expand | None:
        step = self.recipe.find("queries")
        return step if isinstance(step, Expand) and step.k > 0 else None

    @cached_property
    def query_weights(self) -> sparse.csr_matrix | None:
        """Weights (n, n) of each query's mean with its neighbors, if the recipe expands queries."""
        step = self._expansion
        return None if step is None else averaging_weights(self.stage, step.k, step.alpha)

    def _query_rows(self, queries: Integers) -> Floats:
        weights = self.query_weights
        return self.stage.rows[queries] if weights is None else unit_rows(weights[queries] @ self.stage.rows)

    def rank(self, queries: Integers, k: int) -> Integers:
        """Rank the gallery for some of its own images.

        Args:
            queries: Rows (q,) of the queries.
            k: Number of images to return.

        Returns:
            Rows (q, k), nearest first and without the query; −1 beyond the last ranked image.
        """
        k = min(k, len(self.before) - 1)
        step = self.recipe.find("ranking")
        match step:
            case Rerank():
                return self._rerank(queries, k, step)
            case Diffuse():
                return self.diffuse(queries, k, step)[0]
            case _:
                return rank_rows(self._query_rows(queries), self.stage.rows, queries, k)

    @cached_property
    def encoding(self) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
        """The encodings V (n, n) by reciprocal neighbors, and their transpose."""
        step = self.recipe.find("ranking")
        assert isinstance(step, Rerank)
        rows = self.stage.rows
        order = with_own(self.stage.nearest(max(step.k1, step.k2 - 1))[0])
        k1 = min(step.k1, order.shape[1] - 1)
        sets = expand(reciprocal_sets(order, k1), reciprocal_sets(order, round(k1 / 2)))
        encoding = average_encodings(encode(rows, rows, sets), order[:, : step.k2])
        return encoding, encoding.T.tocsr()

    def _rerank(self, queries: Integers, k: int, step: Rerank) -> Integers:
        rows = self.stage.rows
        listed = rank_rows(rows[queries], rows, queries, min(max(k, step.shortlist), len(rows) - 1))
        return self._rerank_listed(queries, listed, k, step.weight)

    def _rerank_listed(self, queries: Integers, listed: Integers, k: int, weight: float) -> Integers:
        """Re-rank the listed images (q, s) and as many of the largest overlaps for queries (q,); return the first k."""
        rows, (encoding, inverted) = self.stage.rows, self.encoding
        indices, part = np.full((len(queries), min(k, len(rows) - 1)), -1), encoding[queries]
        in_threads(lambda start, stop: rank_by_overlap(
            start, stop, rows[queries], rows, part.indptr, part.indices, part.data, inverted.indptr, inverted.indices,
            inverted.data, listed, queries, float(weight), listed.shape[1] + 1, indices,
            np.zeros(indices.shape, np.float32)), len(queries))
        return indices

    @cached_property
    def graph(self) -> sparse.csr_matrix:
        """Normalized affinities S (n, n) of mutual neighbors."""
        step = self.recipe.find("ranking")
        assert isinstance(step, Diffuse)
        order, cosines = self.stage.nearest(step.k)
        order = with_own(order)
        affinity = np.maximum(cosines.astype(np.float64), 0) ** step.gamma * mutual_mask(order)[:, 1:]
        both = list_matrix(order[:, 1:], affinity)
        both.eliminate_zeros()
        degree = np.asarray(both.sum(axis=1)).ravel()
        scale = sparse.diags(1 / np.sqrt(np.where(degree > 0, degree, 1)))
        return (scale @ both @ scale).tocsr()

    def diffuse(self, queries: Integers, k: int, step: Diffuse) -> tuple[Integers, Floats]:
        rows, graph = self.stage.rows, self.graph
        listed = rank_rows(rows[queries], rows, queries, min(max(k, step.shortlist), len(rows) - 1))
        listed = np.concatenate([queries[:, None], listed], axis=1)
        activation = np.zeros(listed.shape)
        activation[:, 0] = 1
        indices, scores = np.zeros((len(queries), k + 1), np.int64), np.zeros((len(queries), k + 1), np.float32)
        in_threads(lambda start, stop: solve_on_lists(
            start, stop, graph.indptr, graph.indices, graph.data, listed, activation, step.alpha, ITERATIONS,
            TOLERANCE, indices, scores), len(queries))
        others = without_own(scores, indices, queries)
        return others[1], others[0]

    def rank_sample(self, k: int) -> Integers:
        """Rank the gallery for the sample of queries; a shorter ranking is cut out of a longer one."""
        if self._sampled is None or self._sampled.shape[1] < min(k, len(self.before) - 1):
            self._sampled = self.rank(self.before.queries, k)
        return self._sampled[:, :k]

    def neighbors(self, k: int = NEIGHBORS) -> Integers | None:
        """Find each image's nearest candidates (n, k) by this refinement; None for a diffusion, which takes longer."""
        rows, candidates = self.stage.rows, self.stage.candidates
        match self.recipe.find("ranking"):
            case Rerank() as step:
                return self._rerank_listed(np.arange(len(rows)), self.stage.nearest(2 * k)[0], k, step.weight)
            case Diffuse():
                return None
            case _ if self.query_weights is not None:
                queries = unit_rows(self.query_weights @ rows)
                return Stage(rows, candidates, candidate_cosines(rows, candidates, queries)).nearest(k)[0]
            case _:
                return self.stage.nearest(k)[0]
