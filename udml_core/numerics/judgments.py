"""Intervals for blind judgments that hold at every moment, so that judging may stop whenever the answer is clear.

A user sees a query and the best image of each of two embeddings, and says which is better. Judged queries are drawn
at random, without replacement, from all queries whose best images differ. A confidence sequence by betting holds the
share of these queries in which the second embedding is better, with at least 95 % at every stop at once; an interval
for a number of judgments fixed in advance would not survive looking after each.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from udml_core.base.arrays import Array

SHARES = np.linspace(0, 1, 1001)
"""The shares that are tested; an interval is as fine as their distance."""
CAUTION = 0.5
"""Largest part of the capital that a bet may lose."""


@dataclass(frozen=True)
class Share:
    """The share of queries in which the second embedding finds the better image.

    Attributes:
        count: Number of judgments.
        mean: Their mean; 0.5 without a judgment.
        low: Lower end of the interval.
        high: Upper end of the interval.
    """

    count: int
    mean: float
    low: float
    high: float

    @property
    def is_decided(self) -> bool:
        """Whether the interval excludes one half: one of the embeddings is better."""
        return self.low > 0.5 or self.high < 0.5


def share_of(judgments: Sequence[float], total: int, error: float = 0.05) -> Share:
    """Return the share after some judgments, with an interval that holds after every one of them.

    For each share m, two gamblers bet that the next judgment is above or below what m predicts of the queries that are
    left. While m is true, no bet gains on average, so the chance that the capital ever exceeds 1/error is at most
    `error`. A share whose gamblers grew that rich is excluded for good.

    Args:
        judgments: 1 where the second embedding is better, 0 where the first is, 0.5 where both are equally good, in
            the order of judging. Several people's judgments of one query enter as their mean.
        total: Number of queries N from which the judged ones are drawn.
        error: Largest probability that the interval ever excludes the share of all N queries.

    References:
        I. Waudby-Smith, A. Ramdas, "Estimating Means of Bounded Random Variables by Betting", JRSS B 2024: the hedged
        capital process, with the predictable plug-in bets and sampling without replacement.
    """
    values = np.asarray(judgments, np.float64)
    if len(values) > total or ((values < 0) | (values > 1)).any():
        raise ValueError(f"Judgments must be {total} values from 0 to 1 at most; got {len(values)}.")
    if not total:  # no query differs
        return Share(0, 0.5, 0.0, 1.0)
    bets = _bets(values, error)
    gains, losses, richest = np.zeros(len(SHARES)), np.zeros(len(SHARES)), np.full(len(SHARES), -np.inf)
    possible = np.ones(len(SHARES), bool)
    judged = 0.0
    for step, (value, bet) in enumerate(zip(values, bets, strict=True)):
        expected = (total * SHARES - judged) / (total - step)  # the mean of the queries that are left, if m is true
        possible &= (expected >= -1e-9) & (expected <= 1 + 1e-9)
        expected = expected.clip(1e-12, 1 - 1e-12)
        gains += np.log1p(np.minimum(bet, CAUTION / expected) * (value - expected))
        losses += np.log1p(-np.minimum(bet, CAUTION / (1 - expected)) * (value - expected))
        richest = np.maximum(richest, np.maximum(gains, losses) + np.log(0.5))
        judged += value
    low, high = float(judged) / total, 1 - float(len(values) - judged) / total  # bounds without any bet
    kept = SHARES[possible & (richest < np.log(1 / error))]
    if len(kept):
        low, high = max(low, float(kept[0])), min(high, float(kept[-1]))
    low, high = min(low, high), max(low, high)  # the only possible share can lie between two that are tested
    return Share(len(values), float(values.mean()) if len(values) else 0.5, low, high)


def judgments_left(judgments: Sequence[float], total: int, trend: Sequence[float] = (), error: float = 0.05,
                   most: int = 200) -> int | None:
    """Return how many more judgments decide if the trend goes on; a forecast, which may be wrong.

    Intervals only shrink, so that a bisection finds the first judgment after which one half is excluded.

    Args:
        judgments: The judgments so far; see `share_of`.
        total: Number of queries.
        trend: The judgments that follow, repeated; by default the judgments so far.
        error: Largest probability that the interval ever excludes the share of all queries.
        most: Largest number of further judgments.

    Returns:
        The number; 0 after the decision, and None if `most` judgments, or all that are left, would not decide.
    """
    repeated = list(trend or judgments)
    limit = min(most, total - len(judgments)) if repeated else 0

    def decides(more: int) -> bool:
        following = (repeated * (more // max(1, len(repeated)) + 1))[:more]
        return share_of([*judgments, *following], total, error).is_decided

    if decides(0):
        return 0
    enough = 1
    while enough < limit and not decides(enough):  # short sequences first, because most forecasts are short
        enough = min(2 * enough, limit)
    if limit < 1 or not decides(enough):
        return None
    return bisect_left(range(enough), True, key=decides)


def judgments_needed(share: float, total: int, most: int = 200) -> int | None:
    """Return how many judgments decide if one embedding is better in a share of the queries; a forecast.

    Args:
        share: The share, which the judgments follow as evenly as they can.
        total: Number of queries.
        most: Largest number of judgments.

    Returns:
        The number; None if `most` judgments, or all queries, would not decide.
    """
    evenly = np.diff(np.floor(np.arange(most + 1) * max(share, 1 - share) + 1e-9))
    return judgments_left([], total, evenly.tolist(), most=most)


def _bets(values: Array, error: float) -> Array:
    """Return the size of each bet from the judgments before it: larger where they vary less."""
    count = np.arange(1, len(values) + 1)
    mean = (0.5 + np.cumsum(values)) / (count + 1)
    variance = (0.25 + np.cumsum((values - mean) ** 2)) / (count + 1)
    before = np.concatenate([[0.25], variance[:-1]])
    return np.sqrt(2 * np.log(2 / error) / (before * count * np.log(count + 1)))
