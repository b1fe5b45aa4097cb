"""How many groups of results differ between two embeddings, and in how many of these a judge prefers the second.

A difference of mean cosines cannot be pictured, a number of queries can: the judge compares the results of each query,
in the features in which it judges groups. A group in which hardly an image is another counts as the same group,
because a reader would not notice it.
"""

from __future__ import annotations

import numpy as np

from udml_core.base.arrays import Array, Floats, Integers
from udml_core.numerics.changed_results import Changed, changed_among, changed_results
from udml_core.numerics.second_opinion import CHUNK, Judge, result_cosines

NOTICED = 10
"""A group is another group if at least one in so many of its images is another."""
LEVEL = 1e-6
"""Mean cosines that differ by less are equal, up to the rounding of the features."""


def changed_groups(judge: Judge, queries: Integers, before: Integers, after: Integers) -> Changed:
    """Compare the groups of results of two embeddings, query by query.

    The interval respects that an image is a result of many queries: as in `paired_difference`, the squares of what each
    image moves as a query and as a result of all others sum up to the variance (the infinitesimal jackknife). A result
    moves the mean cosine of a query, and this the share of better queries by the density of such means around 0.

    Args:
        judge: The judge of m images.
        queries: Rows (q,) of the queries among the judged images, each once.
        before: Rows (q, k) of the results of the first embedding.
        after: Rows (q, k) of the results of the second embedding.

    References:
        B. Efron, "The Jackknife, the Bootstrap and Other Resampling Plans", SIAM 1982, section 6.
        B. Silverman, "Density Estimation for Statistics and Data Analysis", 1986, section 3.4.
    """
    differ = NOTICED * _exchanged(before, after, len(judge.images)) >= before.shape[1]
    sides = [(results[differ], result_cosines(judge.refined, queries[differ], results[differ]))
             for results in (before, after)]
    means = [cosines.mean(axis=1) for _, cosines in sides]
    gains = means[1] - means[0]
    votes = np.where(np.abs(gains) < LEVEL, 0.5, (np.sign(gains) + 1) / 2)
    influence, density = np.zeros(len(judge.images)), _density_at_0(gains)
    for (results, cosines), mean, sign in zip(sides, means, (-1.0, 1.0), strict=True):
        moves = (sign * density / results.shape[1])[:, None] * (cosines - mean[:, None])
        influence += np.bincount(results.ravel(), moves.ravel(), len(influence))
    return changed_among(queries, differ, votes, influence)


def changed_both(judge: Judge, queries: Integers, before: Integers, after: Integers) -> tuple[Changed, Changed]:
    """Compare the first results and the groups of two embeddings, query by query; see `changed_groups`."""
    return (changed_results(judge, queries, before, after), changed_groups(judge, queries, before, after))


def _exchanged(before: Integers, after: Integers, count: int) -> Integers:
    """Return how many results (q,) of each query the second embedding finds and the first does not."""
    exchanged = np.empty(len(before), int)
    for start in range(0, len(before), CHUNK):
        part = slice(start, start + CHUNK)
        marks = np.zeros((len(before[part]), count), bool)
        np.put_along_axis(marks, before[part], values=True, axis=1)
        exchanged[part] = (~np.take_along_axis(marks, after[part], axis=1)).sum(axis=1)
    return exchanged


def _density_at_0(gains: Floats) -> Array:
    """Return what each gain (q,) adds to the density of the gains at 0, times q, by a normal kernel."""
    spread = float(gains.std()) if len(gains) else 0.0
    if not spread:
        return np.zeros(len(gains))
    width = 1.06 * spread * len(gains) ** -0.2
    density: Array = np.exp(-(gains / width) ** 2 / 2) / (width * np.sqrt(2 * np.pi))
    return density
