"""Compare the embeddings of several runs: queries for which only one has a hit, and aligned maps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import binomtest, bootstrap

from udml_core.base.arrays import Array
from udml_core.exploration.failures import Atlas
from udml_core.numerics.projection.align import procrustes


def only_first_hits(first: Atlas, second: Atlas) -> Array:
    """Return the queries whose nearest image has their class in the first embedding but not in the second.

    Returns:
        Data set indices (m,), ascending; only queries of both are compared.
    """
    shared, rows, other_rows = np.intersect1d(first.queries, second.queries, return_indices=True)
    won: Array = shared[~first.misses[rows] & second.misses[other_rows]]
    return won


def sign_test(first_only: int, second_only: int) -> float:
    """Return the two-sided p-value of the sign test, which for paired hits is McNemar's exact test.

    It is the probability of a split at least as uneven if each query that only one run answers went to either run with
    equal chance.

    Args:
        first_only: Number of queries that only the first run answers.
        second_only: Number of queries that only the second run answers.
    """
    count = first_only + second_only
    return float(binomtest(first_only, count).pvalue) if count else 1.0


RESAMPLES = 2_000
"""Number of draws of the bootstrap."""


def mean_interval(values: Array) -> tuple[float, float] | None:
    """Return the 95 % percentile interval of the bootstrap for a mean; None for fewer than two values.

    With the differences of two runs on the same queries, it is the paired bootstrap of the mean difference.

    Args:
        values: (n,); NaN entries are left out.
    """
    known = values[~np.isnan(values)]
    if len(known) < 2:
        return None
    interval = bootstrap((known,), np.mean, n_resamples=RESAMPLES, batch=100, method="percentile",
                      rng=np.random.default_rng(0)).confidence_interval
    return float(interval.low), float(interval.high)


def aligned_layouts(layouts: Sequence[tuple[Array, Array]]) -> list[Array]:
    """Turn, mirror and shift layouts onto the first, without stretching their shape.

    Every layout is first scaled to the first one's spread around the mean of the shared images, because maps have no
    units: t-SNE is about ten times as wide as UMAP.

    Args:
        layouts: Data set indices (n,) and positions (n, 2) of each map.

    Returns:
        The positions of each map; unchanged for the first and for a map with fewer than two shared images.
    """
    (first_ids, first), *others = layouts
    aligned = [np.asarray(first, dtype=np.float64)]
    for ids, positions in others:
        moving = np.asarray(positions, dtype=np.float64)
        _, rows, own_rows = np.intersect1d(first_ids, ids, return_indices=True)
        spread = _spread(moving[own_rows]) if len(rows) > 1 else 0.0
        if spread:
            moving = moving * (_spread(aligned[0][rows]) / spread)
            moving = procrustes(moving[own_rows], aligned[0][rows])(moving)
        aligned.append(moving)
    return aligned


def _spread(points: Array) -> float:
    """Return the root mean squared distance of points (n, 2) to their mean."""
    return float(np.sqrt(((points - points.mean(axis=0)) ** 2).sum(axis=1).mean()))
