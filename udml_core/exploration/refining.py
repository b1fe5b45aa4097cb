"""Refinement of a gallery at the speed of a slider.

`LiveGallery` keeps what all recipes need: the embedding reduced to its main components, and the candidates of each
image, its nearest images in the stored embedding. A step of a recipe then searches neighbors among the candidates only,
and averages them by a sparse product. Measures use an evenly spaced sample of queries; a single query is ranked against
the whole gallery. `udml_core.refinement.Refiner` computes the same steps without these shortcuts.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeVar

import numpy as np
from scipy import sparse

from udml_core.arrays import Array, Floats, Integers
from udml_core.neighbors import nearest
from udml_core.refinement.diffusion import ITERATIONS, TOLERANCE, solve_on_lists
from udml_core.refinement.kernels import in_threads
from udml_core.refinement.linear import Linear, reduction, unit_rows
from udml_core.refinement.measures import label_free_measures, retrieval_measures, share_of_common
from udml_core.refinement.recipe import Average, Diffuse, Expand, Recipe, Reduce, Rerank, Step, Whiten
from udml_core.refinement.reciprocal import (
    average_encodings,
    encode,
    expand,
    fill_similarities,
    mutual_mask,
    rank_by_overlap,
    reciprocal_sets,
)

MOST_IMAGES, MOST_TRAINING = 6000, 3000
"""Larger galleries are explored on evenly spaced images; linear steps are fitted on evenly spaced training images."""
COMPONENTS, CANDIDATES = 256, 100
"""Components of the embedding that are kept, and neighbor candidates of each image."""
SAMPLE = 600
"""Queries on which retrieval is measured."""
NEIGHBORS = 10
"""Number of neighbors in the label-free measures."""
SHOWN = 12
"""First ranks in which a query's hits are counted."""
KEPT_STAGES = 8
Seen = Literal["nothing", "training half", "gallery"]
Value = TypeVar("Value")


def evenly_spaced(count: int, most: int) -> Integers:
    """Return at most `most` evenly spaced indices below `count`."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


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


class LiveGallery:
    """A gallery on which recipes can be tried.

    Attributes:
        stored: Unit rows (n, d) of the stored embedding.
        start: The gallery before any step.
        queries: Rows (s,) of the sample of queries.
        kept: Share of the embedding's squared length in the kept components.
    """

    def __init__(self, embedding: Array, training: Array | None = None, viewed: Array | None = None,
                 components: int = COMPONENTS, candidates: int = CANDIDATES, sample: int = SAMPLE) -> None:
        """Search the candidates and reduce the embedding.

        Args:
            embedding: Embeddings (n, d), n ≥ 3.
            training: Embeddings (t, d) of the training half, on which whitening and reduction are fitted; without them
                they are fitted on the gallery.
            viewed: Embeddings (n, d) of the gallery averaged over views, with which a recipe then begins; `training`
                must be averaged over the same views.
            components: Components to keep; all d if there are fewer.
            candidates: Candidates of each image; all other images if there are fewer.
            sample: Number of queries on which retrieval is measured.
        """
        self.stored = unit_rows(embedding)
        begin = self.stored if viewed is None else unit_rows(viewed)
        projection, self.kept = main_components(begin, components)
        self.start = start_stage(begin, projection, candidates)
        self._training = None if training is None else start_stage(unit_rows(training), projection, candidates)
        self.queries = evenly_spaced(len(self.stored), sample)
        self._stages: OrderedDict[str, Stage] = OrderedDict()
        self._spectra: OrderedDict[str, tuple[Array, Array]] = OrderedDict()

    def __len__(self) -> int:
        return len(self.stored)

    def refine(self, recipe: Recipe) -> Refined:
        """Apply a recipe without its `views`, which need the images: pass `viewed` embeddings instead.

        Stages of equal beginnings of a recipe are kept, so a slider computes only from its own step on.
        """
        return Refined(self, recipe, self._stage(tuple(step for step in recipe.steps if step.role == "rows")))

    def _stage(self, steps: tuple[Step, ...], of_training: bool = False) -> Stage:
        """Return the gallery, or the training half, after some steps."""
        if not steps:
            return self._training if of_training and self._training is not None else self.start
        key = f"{of_training} {Recipe(steps)}"
        return _remember(self._stages, key, lambda: self._apply(steps, of_training))

    def _apply(self, steps: tuple[Step, ...], of_training: bool) -> Stage:
        """Apply the last of some steps to the gallery, or to the training half."""
        *earlier, step = steps
        stage = self._stage(tuple(earlier), of_training)
        match step:
            case Whiten() | Reduce():
                return stage.moved(self._fit(step, tuple(earlier))(stage.rows))
            case Average(k=k) if k > 0:
                for _ in range(step.times):
                    weights = averaging_weights(stage, k, step.alpha)
                    stage = stage.moved(unit_rows(weights @ stage.rows), stage.rows, weights)
        return stage

    def _fit(self, step: Whiten | Reduce, earlier: tuple[Step, ...]) -> Linear:
        stage = self._stage(earlier, self._training is not None)
        if isinstance(step, Reduce):
            return reduction(stage.rows, min(step.dimension, *stage.rows.shape))
        key = f"{Recipe(earlier)} {step.covariance} {step.k}"
        values, vectors = _remember(self._spectra, key, lambda: spectrum(stage, step))
        return whitening_of(values, vectors, stage.rows, step.shrinkage)

    @cached_property
    def before(self) -> Integers:
        """Ranking (s, n − 1) of the gallery for the sample of queries, in the stored embedding."""
        return self.before_for(self.queries)

    @cached_property
    def neighbors_before(self) -> Integers:
        """The nearest images (n, 10) in the stored embedding."""
        return nearest(self.stored, min(NEIGHBORS, len(self) - 1))[1]

    @cached_property
    def label_free_before(self) -> dict[str, float]:
        """Label-free measures of the stored embedding."""
        return label_free_measures(self.neighbors_before)

    def ranking_before(self, query: int) -> Integers:
        """Return the gallery (n − 1,) by cosine to a query in the stored embedding, nearest first."""
        return self.before_for(np.array([query]))[0]

    def before_for(self, queries: Integers) -> Integers:
        """Return the gallery (q, n − 1) by cosine to queries (q,) in the stored embedding, nearest first."""
        return rank_rows(self.stored[queries], self.stored, queries, len(self) - 1)


def _remember(memory: OrderedDict[str, Value], key: str, compute: Callable[[], Value]) -> Value:
    """Return the value of a key; the least recently used values are forgotten."""
    value = memory.pop(key, None)  # in one step, because several sessions of the app share a gallery
    if value is None:
        value = compute()
    memory[key] = value
    while len(memory) > KEPT_STAGES:
        memory.popitem(last=False)
    return value


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
    found = np.ascontiguousarray(nearest(stored, min(candidates, len(stored) - 1))[1])
    rows = stored if projection is None else unit_rows(stored @ projection)
    return Stage(rows, found, candidate_cosines(rows, found))


def spectrum(stage: Stage, step: Whiten) -> tuple[Array, Array]:
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


def whitening_of(values: Array, vectors: Array, rows: Floats, shrinkage: float) -> Linear:
    """Return the whitening (C + s·σ²·I)^(−1/2) of a spectrum, as `udml_core.refinement.linear.whitening`."""
    level = float(values.mean()) * shrinkage or 1.0
    weight = vectors / np.sqrt(np.maximum(values, 0) + level) @ vectors.T
    return Linear(weight.astype(np.float32), rows.mean(axis=0))


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


def rank_rows(queries: Floats, rows: Floats, own: Integers, k: int) -> Integers:
    """Return the k rows (q, k) of largest cosine to each query, nearest first, without the query's own row (q,)."""
    cosines = queries @ rows.T
    cosines[np.arange(len(own)), own] = -np.inf
    if k >= len(rows) - 1:
        return np.argsort(-cosines, axis=1, kind="stable")[:, :k]
    columns = np.argpartition(-cosines, k, axis=1)[:, :k]
    columns.sort(axis=1)  # so that equal cosines go to the lowest index
    order = np.argsort(-np.take_along_axis(cosines, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)


@dataclass(frozen=True)
class Votes:
    """Why an image has its rank: the images that voted for it.

    Attributes:
        rows: Rows (v,) of the voters, the largest vote first.
        values: Their votes (v,); together they are the score.
        common: Whether (v,) the voter is also among the query's own.
        score: The image's refined score.
    """

    rows: Integers
    values: Floats
    common: Array
    score: float


class Refined:
    """A gallery refined by a recipe.

    Attributes:
        gallery: The gallery.
        recipe: The recipe.
        stage: The gallery after the steps that change embeddings.
    """

    def __init__(self, gallery: LiveGallery, recipe: Recipe, stage: Stage) -> None:
        self.gallery, self.recipe, self.stage = gallery, recipe, stage
        self._sampled: Integers | None = None

    @property
    def voting(self) -> Literal["rerank", "diffuse", "expand", "average", "none"]:
        """The step that decides the ranking, whose votes explain it."""
        ranking = self.recipe.find("ranking")
        if ranking is not None:
            return "rerank" if isinstance(ranking, Rerank) else "diffuse"
        if self._expansion is not None:
            return "expand"
        return "none" if self.stage.weights is None else "average"

    @property
    def _expansion(self) -> Expand | None:
        step = self.recipe.find("queries")
        return step if isinstance(step, Expand) and step.k > 0 else None

    @cached_property
    def _query_weights(self) -> sparse.csr_matrix | None:
        """Weights (n, n) of each query's mean with its neighbors, if the recipe expands queries."""
        step = self._expansion
        return None if step is None else averaging_weights(self.stage, step.k, step.alpha)

    def _query_rows(self, queries: Integers) -> Floats:
        weights = self._query_weights
        return self.stage.rows[queries] if weights is None else unit_rows(weights[queries] @ self.stage.rows)

    def rank(self, queries: Integers, k: int) -> Integers:
        """Rank the gallery for some of its own images.

        Args:
            queries: Rows (q,) of the queries.
            k: Number of images to return.

        Returns:
            Rows (q, k), nearest first and without the query; −1 beyond the last ranked image.
        """
        k = min(k, len(self.gallery) - 1)
        step = self.recipe.find("ranking")
        match step:
            case Rerank():
                return self._rerank(queries, k, step)
            case Diffuse():
                return self._diffuse(queries, k, step)[0]
            case _:
                return rank_rows(self._query_rows(queries), self.stage.rows, queries, k)

    @cached_property
    def _encoding(self) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
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
        rows, (encoding, inverted) = self.stage.rows, self._encoding
        indices, part = np.full((len(queries), min(k, len(rows) - 1)), -1), encoding[queries]
        in_threads(lambda start, stop: rank_by_overlap(
            start, stop, rows[queries], rows, part.indptr, part.indices, part.data, inverted.indptr, inverted.indices,
            inverted.data, listed, queries, float(weight), listed.shape[1] + 1, indices,
            np.zeros(indices.shape, np.float32)), len(queries))
        return indices

    @cached_property
    def _graph(self) -> sparse.csr_matrix:
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

    def _diffuse(self, queries: Integers, k: int, step: Diffuse) -> tuple[Integers, Floats]:
        rows, graph = self.stage.rows, self._graph
        listed = rank_rows(rows[queries], rows, queries, min(max(k, step.shortlist), len(rows) - 1))
        listed = np.concatenate([queries[:, None], listed], axis=1)
        activation = np.zeros(listed.shape)
        activation[:, 0] = 1
        indices, scores = np.zeros((len(queries), k + 1), np.int64), np.zeros((len(queries), k + 1), np.float32)
        in_threads(lambda start, stop: solve_on_lists(
            start, stop, graph.indptr, graph.indices, graph.data, listed, activation, step.alpha, ITERATIONS,
            TOLERANCE, indices, scores), len(queries))
        own = indices == queries[:, None]
        own[~own.any(axis=1), -1] = True
        return indices[~own].reshape(len(queries), k), scores[~own].reshape(len(queries), k)

    def _rank_sample(self, k: int) -> Integers:
        """Rank the gallery for the sample of queries; a shorter ranking is cut out of a longer one."""
        if self._sampled is None or self._sampled.shape[1] < min(k, len(self.gallery) - 1):
            self._sampled = self.rank(self.gallery.queries, k)
        return self._sampled[:, :k]

    def measures(self, labels: Integers | None) -> dict[str, tuple[float, float]]:
        """Measure retrieval before and after.

        Args:
            labels: Class (n,) of each image, if it is known.

        Returns:
            Before and after by measure. `recall@1` and `map@r` in percent on the sample of queries, with labels;
            `reciprocity` in percent and `hubness`, except for a diffusion; `neighbor stability` in percent.
        """
        queries, measures = self.gallery.queries, {}
        if labels is not None:
            depth = min(max(SHOWN, int(np.bincount(labels).max()) - 1), len(self.gallery) - 1)
            after = self._rank_sample(depth)
            before, refined = (retrieval_measures(ranking, labels[queries], labels, True)
                               for ranking in (self.gallery.before[:, :depth], after))
            measures = {name: (before[name], refined[name]) for name in before}
        else:
            after = self._rank_sample(NEIGHBORS)
        near_before, near = self.gallery.neighbors_before, self.neighbors()
        if near is None:
            shared = share_of_common(after[:, : near_before.shape[1]], near_before[queries])
            return measures | {"neighbor stability": (100.0, 100 * float(shared.mean()))}
        free = label_free_measures(near, near_before)
        return measures | {name: (self.gallery.label_free_before.get(name, 100.0), free[name]) for name in free}

    def neighbors(self, k: int = NEIGHBORS) -> Integers | None:
        """Find each image's nearest candidates (n, k) by this refinement; None for a diffusion, which takes longer."""
        rows, candidates = self.stage.rows, self.stage.candidates
        match self.recipe.find("ranking"):
            case Rerank() as step:
                return self._rerank_listed(np.arange(len(rows)), self.stage.nearest(2 * k)[0], k, step.weight)
            case Diffuse():
                return None
            case _ if self._query_weights is not None:
                queries = unit_rows(self._query_weights @ rows)
                return Stage(rows, candidates, candidate_cosines(rows, candidates, queries)).nearest(k)[0]
            case _:
                return self.stage.nearest(k)[0]

    def recall_change(self, labels: Integers) -> tuple[float, float]:
        """Return by how many points Recall@1 changes on the sample, and the standard error of the change.

        The queries are paired, and the error is zero if the sample is the whole gallery.
        """
        before, after = self.hits(labels, 1)
        change, share = 100.0 * (after - before), len(before) / len(self.gallery)
        return float(change.mean()), float(change.std() * ((1 - share) / len(before)) ** 0.5)

    def hits(self, labels: Integers, k: int = SHOWN) -> tuple[Integers, Integers]:
        """Count each sampled query's hits (s,) among the first k ranks, before and after."""
        queries = self.gallery.queries
        wanted = labels[queries][:, None]
        after = self._rank_sample(k)
        return ((labels[self.gallery.before[:, :k]] == wanted).sum(axis=1),
                ((labels[after] == wanted) & (after >= 0)).sum(axis=1))

    def votes(self, query: int, image: int) -> Votes:
        """Return which images voted for an image's rank, by the step that decides the ranking.

        - `rerank`: images in both encodings vote with min(V_q, V_g); the score is their sum, the overlap.
        - `diffuse`: neighbors pass on their own score, α·S·f.
        - `expand`: the query and its neighbors vote with their part of the cosine.
        - `average`: the image and its neighbors vote with their part of the cosine.
        - no such step: common neighbors vote with the smaller of their two cosines.
        """
        match self.voting:
            case "rerank":
                encoding = self._encoding[0]
                first, second = encoding[query].toarray()[0], encoding[image].toarray()[0]
                return _ordered(np.minimum(first, second), np.minimum(first, second) > 0)
            case "diffuse":
                return self._walk_votes(query, image)
            case "expand":
                weights = self._query_weights
                assert weights is not None
                return self._mean_votes(weights, self.stage.rows, query, self.stage.rows[image], image)
            case "average":
                assert self.stage.weights is not None
                assert self.stage.sources is not None
                return self._mean_votes(self.stage.weights, self.stage.sources, image, self.stage.rows[query], query)
            case "none":
                cosines = self.stage.rows @ self.stage.rows[[query, image]].T
                near = self.stage.nearest(CANDIDATES // 2)[0]
                both = np.intersect1d(near[query], near[image])
                value = np.zeros(len(self.gallery), np.float32)
                value[both] = cosines[both].min(axis=1)
                return _ordered(value, value > 0, float(cosines[image, 0]))

    def _mean_votes(self, weights: sparse.csr_matrix, sources: Floats, averaged: int, other: Floats,
                    other_row: int) -> Votes:
        """Split cos(Σ_j w_j x_j, y) into the votes w_j·x_j·y / |Σ_j w_j x_j|."""
        row = weights[averaged]
        members = row.indices
        length = np.linalg.norm(row.data @ sources[members])
        value = np.zeros(len(self.gallery), np.float32)
        value[members] = row.data * (sources[members] @ other) / (length or 1.0)
        common = np.zeros(len(value), bool)
        common[weights[other_row].indices] = True
        return _ordered(value, common)

    def _walk_votes(self, query: int, image: int) -> Votes:
        step = self.recipe.find("ranking")
        assert isinstance(step, Diffuse)
        ranked, scores = self._diffuse(np.array([query]), len(self.gallery) - 1, step)
        values = np.zeros(len(self.gallery))
        values[ranked[0]] = scores[0]
        # f = y + αSf holds at the query too: the walk returns there with 1 − α.
        edges = self._graph[query]
        values[query] = 1 + step.alpha * float(edges.data @ values[edges.indices])
        row = self._graph[image]
        votes = np.zeros(len(values), np.float32)
        votes[row.indices] = step.alpha * row.data * values[row.indices]
        common = np.zeros(len(votes), bool)
        common[edges.indices] = True
        return _ordered(votes, common)


def _ordered(values: Floats, common: Array, score: float | None = None) -> Votes:
    """Sort the votes of all images, and leave out zeros."""
    rows = np.flatnonzero(values)
    rows = rows[np.argsort(-values[rows], kind="stable")]
    return Votes(rows, values[rows], common[rows], float(values.sum()) if score is None else score)


def choose_queries(refined: Refined, labels: Integers | None, count: int) -> Integers:
    """Choose sampled queries that show what a recipe does, the clearest improvement first.

    Two thirds have gained the most hits among their first ranks, the others have lost the most. Without labels the
    queries whose first ranks change the most are chosen.

    Returns:
        Rows (at most count,) of the gallery.
    """
    queries = refined.gallery.queries
    if labels is None:
        after = refined.rank(queries, min(NEIGHBORS, len(refined.gallery) - 1))
        kept = share_of_common(after, refined.gallery.before[:, : after.shape[1]])
        return queries[np.argsort(kept, kind="stable")[:count]]
    before, after = refined.hits(labels)
    order = np.argsort(before - after, kind="stable")
    best = min(len(order), count - count // 3)
    return queries[np.concatenate([order[:best], order[best:][::-1][: count - best]])]


def seen_images(recipe: Recipe, has_training: bool) -> list[tuple[str, Seen]]:
    """Return each step's name and the images that it has seen when a recipe is fitted on a gallery.

    Args:
        recipe: The recipe.
        has_training: Whether whitening and reduction are fitted on the training half.
    """
    seen: dict[str, Seen] = {"nothing": "nothing", "fitted": "training half" if has_training else "gallery",
                             "gallery": "gallery"}
    return [(step.name, seen[step.sees]) for step in recipe.steps]
