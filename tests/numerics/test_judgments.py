"""Intervals of blind judgments: coverage at every stop, and their laws."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tests.tiers import fast_first
from udml_core.numerics.judgments import Share, judgments_left, judgments_needed, share_of
from udml_core.runs.search.judging import ENOUGH


@pytest.mark.parametrize("share", [0.1, 0.5, 0.65, 0.9])
@pytest.mark.parametrize("total", fast_first([90, 300]))
def test_the_interval_holds_the_share_at_every_stop_in_95_of_100_sessions(share: float, total: int) -> None:
    """Intervals only shrink, so an interval that holds the share at the last stop has held it at every stop."""
    rng, missed = np.random.default_rng(0), 0
    for _ in range(1000):
        truth = (rng.random(total) < share).astype(float)
        stop = share_of(rng.permutation(truth)[:60], total)
        missed += not stop.low - 1e-3 <= truth.mean() <= stop.high + 1e-3
    assert missed <= 50


def test_judges_who_err_or_call_both_equal_are_covered_too() -> None:
    rng, missed = np.random.default_rng(1), 0
    for _ in range(1000):
        truth = rng.choice([0.0, 0.5, 1.0], 100, p=[0.2, 0.3, 0.5])
        stop = share_of(rng.permutation(truth)[:50], 100)
        missed += not stop.low - 1e-3 <= truth.mean() <= stop.high + 1e-3
    assert missed <= 50


def test_every_judgment_narrows_the_interval() -> None:
    judgments = np.random.default_rng(2).choice([0.0, 0.5, 1.0], 40, p=[0.2, 0.2, 0.6])
    stops = [share_of(judgments[:count], 80) for count in range(41)]
    assert (stops[0].low, stops[0].high) == (0, 1)
    for before, after in pairwise(stops):
        assert after.low >= before.low - 1e-12
        assert after.high <= before.high + 1e-12


def test_all_queries_judged_leave_no_doubt() -> None:
    judgments = [1, 0, 1, 0.5, 1, 1]
    stop = share_of(judgments, len(judgments))
    assert stop.low == pytest.approx(stop.high) == pytest.approx(np.mean(judgments))


def test_a_share_is_excluded_when_the_capital_of_its_gamblers_exceeds_twenty() -> None:
    """A literal reference of the hedged capital process without replacement, one share and one bet at a time."""
    judgments, total = [1, 0, 1, 1, 0.5, 1, 1, 1, 0, 1, 1, 1, 1, 1], 30
    kept = []
    for share in np.linspace(0, 1, 1001):
        above = below = richest = 1.0
        for step, judgment in enumerate(judgments):
            before = judgments[:step]
            expected = (total * share - sum(before)) / (total - step)
            if not -1e-9 <= expected <= 1 + 1e-9:
                richest = np.inf
                break
            means = [(0.5 + sum(before[:count + 1])) / (count + 2) for count in range(step)]
            spread = sum((value - mean) ** 2 for value, mean in zip(before, means, strict=True))
            variance = (0.25 + spread) / (step + 1)
            bet = np.sqrt(2 * np.log(2 / 0.05) / (variance * (step + 1) * np.log(step + 2)))
            expected = min(max(expected, 1e-12), 1 - 1e-12)
            above *= 1 + min(bet, 0.5 / expected) * (judgment - expected)
            below *= 1 - min(bet, 0.5 / (1 - expected)) * (judgment - expected)
            richest = max(richest, above / 2, below / 2)
        if richest < 20:
            kept.append(share)
    stop = share_of(judgments, total)
    assert (stop.low, stop.high) == (pytest.approx(kept[0]), pytest.approx(kept[-1]))


def test_exchanging_the_embeddings_mirrors_the_interval() -> None:
    judgments = np.array([1, 1, 0, 1, 0.5, 1, 1, 1])
    stop, mirrored = share_of(judgments, 50), share_of(1 - judgments, 50)
    assert mirrored.low == pytest.approx(1 - stop.high, abs=1e-9)
    assert mirrored.high == pytest.approx(1 - stop.low, abs=1e-9)


def test_half_of_the_sessions_decide_with_about_twenty_judgments_if_one_search_is_better_in_4_of_5_queries() -> None:
    generator, decided = np.random.default_rng(4), []
    for _ in range(60):
        answers = (generator.random(80) < 0.8).astype(float)
        decided.append(next((count for count in range(1, 81) if share_of(answers[:count], 800).is_decided), 81))
    assert 0.8 * ENOUGH < np.median(decided) < 1.2 * ENOUGH


def test_twelve_unanimous_judgments_decide_and_an_even_split_does_not() -> None:
    assert share_of([1] * 12, 200).is_decided
    assert not share_of([1, 0] * 30, 200).is_decided
    assert not share_of([0.5] * 60, 200).is_decided
    assert not share_of([1] * 4, 200).is_decided


@pytest.mark.parametrize("judgments", [[1, 1, 0, 1, 1, 0.5, 1], [0, 0, 1, 0, 0, 0], [1, 1]], ids=str)
def test_the_forecast_is_the_first_judgment_that_decides(judgments: list[float]) -> None:
    left = judgments_left(judgments, 500)
    assert left is not None
    continued = [*judgments, *judgments * 40]
    decided = [share_of(continued[:len(judgments) + more], 500).is_decided for more in range(left + 1)]
    assert decided == [False] * left + [True]
    assert judgments_left(continued[:len(judgments) + left], 500) == 0


def test_no_forecast_where_the_trend_does_not_decide() -> None:
    assert judgments_left([1, 0] * 10, 500) is None
    assert judgments_left([1, 1, 0], 500, most=5) is None
    assert judgments_left([], 500) is None
    assert judgments_left([1, 0], 2) is None
    assert judgments_left([], 500, trend=[1]) == judgments_left([], 500, trend=[0]) == 9
    assert judgments_left([], 3, trend=[1]) == 2, "two of three queries are most of them"


def test_the_forecast_for_a_share_is_what_half_of_all_sessions_need() -> None:
    generator = np.random.default_rng(4)
    for share in (0.8, 0.7):
        needed, decided = judgments_needed(share, 800), []
        assert needed is not None
        assert needed == judgments_needed(1 - share, 800)
        for _ in range(60):
            answers = (generator.random(200) < share).astype(float)
            decided.append(next((count for count in range(1, 201) if share_of(answers[:count], 800).is_decided), 201))
        assert 0.7 * needed < np.median(decided) < 1.2 * needed
    assert judgments_needed(0.55, 800) is None, "200 judgments do not tell 55 from 45 of 100"
    assert judgments_needed(0.5, 800) is None


def test_without_a_differing_query_nothing_is_known() -> None:
    assert share_of([], 0) == Share(0, 0.5, 0.0, 1.0)


def test_judgments_out_of_range_are_refused() -> None:
    for judgments, total in (([1, 2], 5), ([1, -0.1], 5), ([1, 1, 1], 2)):
        with pytest.raises(ValueError, match="Judgments must be"):
            share_of(judgments, total)


@pytest.mark.parametrize("total", [7, 37])
def test_the_ends_are_in_order_where_shares_lie_between_the_tested(total: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        truth = (rng.random(total) < 0.6).astype(float)
        stops = [share_of(truth[:count], total) for count in range(total + 1)]
        assert all(stop.low <= stop.high for stop in stops)
        assert stops[-1].low - 0.001 <= truth.mean() <= stops[-1].high + 0.001
