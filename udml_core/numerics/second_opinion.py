"""A second opinion: two embeddings compared without labels, by an encoder that took no part in either.

The judge looks at the results of the same queries in both embeddings. In its own features, the cosine between a query
and its results tells which embedding found the more similar images. Two questions differ: whether the first result is
right, which whitened features answer, and whether the whole group of a query comes first, which features answer that
are also averaged over neighbors. `assets/results/second-opinion.json` says how often the answers are right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from udml_core.base.arrays import Array, Floats, Integers, evenly_spaced
from udml_core.base.errors import UserError
from udml_core.numerics.kinship import kin_words
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.refinement.averaging import average_neighbors
from udml_core.numerics.refinement.linear import unit_rows, whitening
from udml_core.numerics.refinement.recipe import Average, Whiten

Verdict = Literal["better", "worse", "cannot tell"]
FIRST = 1
"""Number of results that decide on "first results"; the record compares others."""
SMALLEST_GROUP, LARGEST_SHARE = 10, 4
"""A group has at least ten images, and at most one in four of the collection."""
WHITENED, AVERAGED = Whiten(), Average(k=20, times=2, alpha=3)
"""The recipes of a judge's features, fitted on the judged images; whitened features are averaged."""
IMAGES, QUERIES = 10_000, 5_000
"""Largest number of judged images and of queries among them, evenly spaced: a larger collection is thinned out."""
ERRORS = 1.96
"""Half the width of an interval, in standard errors."""
CHUNK, DEEP = 2048, 30
"""Queries at once, and the share of all images, one in so many, from which results count as many."""
STEADY, VIEWED = 10, 500
"""Neighbors that steadiness compares, and the images of which a judge sees another view."""
QUORUM = 0.75
"""Share of the judges' weight that must agree."""
LEAST = 20
"""Smallest number of images on which an interval is meaningful; on fewer, nothing can be told."""
OTHER_FIRST = 1.25
"""Factor of the error of a single result. Among other images another one would be the nearest, which the derivative
leaves out; in simulations of new images the spread is 1.10 to 1.24 times the error without this factor. Of two results
and more it is 0.86 to 1.01 times."""
WIDEST = 2.0
"""The largest difference of two cosines."""


@dataclass(frozen=True)
class Judge:
    """An encoder's features, prepared to judge.

    Attributes:
        count: Number of images n.
        images: The judged images (m,), ascending.
        features: Their unit rows (m, d) as the encoder returns them.
        whitened: Unit rows (m, d) for first results.
        refined: Unit rows (m, d) for groups.
        group: Number of images of a typical group, as the judge sees them; see `typical_group`.
        weight: What its verdict counts beside other judges', from 0 to 1; see `steadiness`.
    """

    count: int
    images: Integers
    features: Floats
    whitened: Floats
    refined: Floats
    group: int
    weight: float = 1.0

    @classmethod
    def of(cls, features: Array, views: tuple[Integers, Array] | None = None) -> Judge:
        """Prepare an encoder's features (n, d) of all images.

        Args:
            features: The features.
            views: Indices (v,) of some images, and the features (v, d) of another view of each; the judge's weight
                comes from them. Without views it is 1.

        Raises:
            UserError: A value is not finite.
        """
        images = evenly_spaced(len(features), IMAGES)
        rows = unit_rows(features[images])
        check_finite("A judge", rows)
        if len(rows) < LEAST:
            return cls(len(features), images, rows, rows, rows, typical_group(rows))
        # The steps of a `Refiner`, without its import of scikit-learn, for which a training would wait.
        whiten = whitening(unit_rows(rows), WHITENED.covariance, WHITENED.k, WHITENED.shrinkage)
        whitened = whiten(unit_rows(rows))
        refined = average_neighbors(unit_rows(whitened), AVERAGED.k, AVERAGED.times, AVERAGED.alpha)
        weight = 1.0
        if views is not None:
            seen, shown = np.isin(views[0], images), unit_rows(views[1])
            weight = steadiness(whitened, np.searchsorted(images, views[0][seen]), whiten(unit_rows(shown))[seen])
        return cls(len(features), images, rows, whitened, refined, typical_group(refined), weight)


@dataclass(frozen=True)
class Interval:
    """A paired difference of means over queries.

    Attributes:
        before: Mean cosine between a query and its results in the first embedding.
        after: The same in the second embedding.
        error: Standard error of the difference over images: each counts as a query and as a result of others. On fewer
            than `LEAST` images it is so large that the interval holds every difference.
    """

    before: float
    after: float
    error: float

    @property
    def difference(self) -> float:
        """The gain of the second embedding."""
        return self.after - self.before

    @property
    def low(self) -> float:
        """Lower end of the 95 % interval of the difference."""
        return self.difference - ERRORS * self.error

    @property
    def high(self) -> float:
        """Upper end of the 95 % interval of the difference."""
        return self.difference + ERRORS * self.error

    @property
    def verdict(self) -> Verdict:
        """Whether the second embedding is better; nothing can be told while the interval holds 0."""
        if self.low > 0:
            return "better"
        return "worse" if self.high < 0 else "cannot tell"


@dataclass(frozen=True)
class Opinion:
    """What a judge says of a second embedding, compared with a first.

    Attributes:
        first_results: The difference in the first result; it follows Recall@1.
        groups: The difference over whole groups; it follows MAP@R.
    """

    first_results: Interval
    groups: Interval


def second_opinion(judge: Judge, before: Array, after: Array, group: int | None = None) -> Opinion:
    """Compare two embeddings of the same images by the features of an encoder that took no part.

    Each ranks by Euclidean distance, which for unit rows is the order by cosine.

    Args:
        judge: The judge of the n images.
        before: Embedding (n, d) to compare with.
        after: Embedding (n, e) that is judged.
        group: Number of results of a group; the judge's own by default.

    Returns:
        The opinion on `after`.

    Raises:
        UserError: The judge has the cosines of one of the embeddings, a value is not finite, or the numbers of images
            differ.
    """
    if not judge.count == len(before) == len(after):
        raise UserError(f"A second opinion compares the same images; got {judge.count:,} of the judge, "
                        f"{len(before):,} and {len(after):,}.")
    embeddings = [embedding[judge.images] for embedding in (before, after)]
    for rows in embeddings:
        check_finite("An embedding", rows)
    if reason := kin_words("at hand", judge.features, embeddings):
        raise UserError(reason)
    queries = evenly_spaced(len(judge.images), QUERIES)
    if len(queries) < 2:  # a single image has no results
        return judge_rankings(judge, queries, *[np.zeros((len(queries), 0), np.int64)] * 2)
    rankings = [nearest(rows, min(group or judge.group, len(rows) - 1), own=queries)[1] for rows in embeddings]
    return judge_rankings(judge, queries, *rankings)


def check_finite(owner: str, rows: Array) -> None:
    """Check that rows (n, d) have no value that is infinite or not a number.

    Args:
        owner: Whose rows they are, at the beginning of a sentence.
        rows: The rows.

    Raises:
        UserError: They have.
    """
    if not np.isfinite(rows).all():
        raise UserError(f"{owner} must have finite values; got {(~np.isfinite(rows)).sum():,} values that are not "
                        "finite. Remove these images.")


def typical_group(rows: Floats) -> int:
    """Return how many images a typical image has around it, from unit rows (n, d) that are averaged over neighbors.

    An image belongs to the group of a query if its cosine is nearer to that of the nearest image than to the mean
    cosine of all pairs. The median over evenly spaced queries follows the size of the classes: on the record's data
    sets with 20 to 600 images a class it is between half and six times that size.
    """
    if not len(rows):
        return 1
    queries = evenly_spaced(len(rows), VIEWED)
    cosines = rows[queries] @ rows.T
    cosines[np.arange(len(queries)), queries] = -1.0
    background = float((rows.mean(axis=0) ** 2).sum())
    inside = cosines > (cosines.max(axis=1, keepdims=True) + background) / 2
    largest = len(rows) // LARGEST_SHARE
    return max(1, min(max(int(np.median(inside.sum(axis=1))), SMALLEST_GROUP), largest))


def steadiness(rows: Floats, queries: Integers, views: Array) -> float:
    """Return how far a judge's neighbors stay when it sees another view of the query, from 0 to 1.

    The value is the share of a query's 10 nearest images that are among the 10 nearest to its other view. A judge of
    pixels, for which a shifted image is another image, has little to say.

    Args:
        rows: Unit rows (n, d) of the judge.
        queries: Rows (q,) of the queries.
        views: Unit rows (q, d) of another view of each query.
    """
    k = min(STEADY, len(rows) - 1)
    before, after = (nearest(rows, k, shown, queries)[1] for shown in (rows[queries], views))
    return float((before[:, :, None] == after[:, None, :]).any(axis=2).mean())


def judge_rankings(judge: Judge, queries: Integers, before: Integers, after: Integers) -> Opinion:
    """Compare two rankings of the same queries, as `second_opinion` compares embeddings.

    Args:
        judge: The judge of m images.
        queries: Rows (q,) of the queries among the judged images.
        before: Rows (q, k) of the results to compare with, nearest first and without the query.
        after: Rows (q, k) of the judged results.

    Returns:
        The opinion on `after`: of its first result, and of all k.
    """
    return Opinion(paired_difference(judge.whitened, queries, before[:, :FIRST], after[:, :FIRST]),
                   paired_difference(judge.refined, queries, before, after))


def paired_difference(rows: Array, queries: Integers, before: Integers, after: Integers) -> Interval:
    """Return the difference of two rankings in mean cosine, with an error that respects shared results.

    With a weight w_i of each image, the value is Σ_q w_q (a_q − b_q) / Σ_q w_q, where a_q = Σ_j w_j s_qj / Σ_j w_j over
    the results j of q. Its derivative by w_i at equal weights says how much image i, as a query and as a result of all
    others, moves the value; the sum of the squared derivatives is the variance of the bootstrap over images, without
    drawing (the infinitesimal jackknife). An error over queries alone would miss that hubs are results of many.

    Args:
        rows: Unit rows (n, d) of the judge.
        queries: Indices (q,), each once.
        before: Indices (q, k).
        after: Indices (q, k).

    References:
        B. Efron, "The Jackknife, the Bootstrap and Other Resampling Plans", SIAM 1982, section 6.
    """
    return cosine_difference(len(rows), queries, *((results, result_cosines(rows, queries, results))
                                                   for results in (before, after)))


def cosine_difference(count: int, queries: Integers, before: tuple[Integers, Array],
                      after: tuple[Integers, Array]) -> Interval:
    """Return the difference of two rankings whose cosines are known; see `paired_difference`.

    Args:
        count: Number of images n.
        queries: Indices (q,), each once.
        before: Results (q, k), and their cosines (q, k) to the query.
        after: Results (q, k), and their cosines (q, k) to the query.
    """
    if not before[1].size:
        return Interval(0.0, 0.0, WIDEST / ERRORS)
    influence, means = np.zeros(count), []
    for (results, cosines), sign in ((before, -1.0), (after, 1.0)):
        per_query = cosines.mean(axis=1)
        influence[queries] += sign * (per_query - per_query.mean())
        influence += np.bincount(results.ravel(), (sign / results.shape[1] * (cosines - per_query[:, None])).ravel(),
                                 count)
        means.append(float(per_query.mean()))
    error = float(np.sqrt((influence**2).sum())) / len(queries) if count >= LEAST else WIDEST / ERRORS
    if before[0].shape[1] == 1 and count >= LEAST:
        error *= OTHER_FIRST
    return Interval(means[0], means[1], error)


def result_cosines(rows: Array, queries: Integers, results: Integers) -> Array:
    """Return the cosines (q, k) float64 between queries and their results.

    Of many results, all products are computed and the results' are taken: gathering rows is slower than multiplying.
    """
    cosines = np.empty(results.shape)
    is_deep = results.shape[1] * DEEP > len(rows)
    for start in range(0, len(queries), CHUNK):
        part = slice(start, start + CHUNK)
        cosines[part] = (np.take_along_axis(rows[queries[part]] @ rows.T, results[part], axis=1) if is_deep else
                         np.einsum("qd,qkd->qk", rows[queries[part]], rows[results[part]], optimize=True))
    return cosines


def vote(intervals: Sequence[Interval], weights: Sequence[float] | None = None) -> Verdict:
    """Return the verdict of judges with three quarters of all weight; otherwise nothing can be told.

    Two judges of similar weight must agree; a judge that hardly counts cannot keep the others from deciding.

    Args:
        intervals: The same difference, as each judge sees it.
        weights: What each judge counts, at least 0; equal by default.
    """
    counts = [1.0] * len(intervals) if weights is None else list(weights)
    for verdict in ("better", "worse"):
        if 0 < QUORUM * sum(counts) <= sum(count for interval, count in zip(intervals, counts, strict=True)
                                           if interval.verdict == verdict):
            return verdict
    return "cannot tell"
