"""How many first results differ, and in how many of these a judge prefers the second embedding."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from udml_core.numerics.changed_results import Changed, _independent, _wilson, changed_results
from udml_core.numerics.refinement.linear import unit_rows
from udml_core.numerics.second_opinion import Judge


def judge_of(rows: np.ndarray) -> Judge:
    unit = unit_rows(rows.astype(np.float32))
    return Judge(len(unit), np.arange(len(unit)), unit, unit, unit, 10)


def rankings(seed: int, count: int = 200, differing: int = 80) -> tuple[Judge, np.ndarray, np.ndarray, np.ndarray]:
    """Return a judge, queries, and results that differ for the first few."""
    rng = np.random.default_rng(seed)
    judge, queries = judge_of(rng.normal(size=(3 * count, 6))), np.arange(count)
    before = (count + rng.permutation(count))[:, None]
    after = before.copy()
    after[:differing, 0] = 2 * count + rng.permutation(count)[:differing]
    return judge, queries, before, after


def test_the_shares_are_counted_query_by_query() -> None:
    judge, queries, before, after = rankings(0)
    found = changed_results(judge, queries, before, after)
    rows = judge.whitened
    wins = [rows[query] @ rows[after[query, 0]] > rows[query] @ rows[before[query, 0]] for query in range(80)]
    assert found.share == 80 / 200
    assert found.better == pytest.approx(np.mean(wins))
    assert found.low < found.better < found.high


def test_exchanging_the_embeddings_mirrors_the_shares_and_equal_results_say_nothing() -> None:
    judge, queries, before, after = rankings(1)
    found, mirrored = changed_results(judge, queries, before, after), changed_results(judge, queries, after, before)
    assert mirrored.better == pytest.approx(1 - found.better)
    assert (mirrored.low, mirrored.high) == (pytest.approx(1 - found.high), pytest.approx(1 - found.low))
    assert changed_results(judge, queries, before, before) == Changed(0.0, 0.5, 0.0, 1.0)
    few = rankings(2, differing=19)
    assert (changed_results(*few).low, changed_results(*few).high) == (0.0, 1.0)


def test_the_interval_is_wilsons_for_independent_queries_and_wider_where_they_share_results() -> None:
    values = (np.arange(100) < 70).astype(float)
    apart = np.arange(300).reshape(100, 3)
    assert _independent(values, apart) == pytest.approx(100)
    low, high = _wilson(0.7, 100)
    assert all(abs(0.7 - end) / np.sqrt(end * (1 - end) / 100) == pytest.approx(norm.ppf(0.975), abs=1e-3)
               for end in (low, high)), "the ends solve Wilson's equation"
    hubs = apart.copy()
    hubs[:, 2] = 300 + np.arange(100) // 10  # ten queries share a result and a value
    assert _independent(values, hubs) == pytest.approx(10)
    assert _independent(np.ones(50), hubs[:50]) == 50


def test_the_interval_covers_the_share_where_results_are_hubs() -> None:
    missed = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        hub = rng.integers(40, size=300)
        tendency = 0.6 + 0.35 * np.sign(rng.normal(size=40))  # a hub is mostly better, or mostly worse
        values = (rng.random(300) < np.clip(tendency, 0, 1)[hub]).astype(float)
        low, high = _wilson(float(values.mean()), _independent(values, np.column_stack(
            [np.arange(300), 300 + np.arange(300), 600 + hub])))
        missed += not low <= (0.25 + 0.95) / 2 <= high
    assert missed <= 20, "5 % of the intervals, and a few more because 40 hubs are few"
