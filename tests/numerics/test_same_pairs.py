"""Where "the same" ends: the population, the draw, the bounds against their definition, and coverage by simulation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from sklearn.datasets import load_digits

from tests.tiers import fast_first
from udml_core.base.arrays import Array
from udml_core.data import catalog
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.same_pairs import (
    ABOVE,
    BELOW,
    BETS,
    CAPITAL,
    DIFFERENT,
    FULL,
    NEIGHBORS,
    OPEN,
    SAME,
    SKIPPED,
    Counts,
    Estimate,
    Plan,
    estimate,
    least_precision,
    lower_total,
    neighbor_pairs,
    next_pair,
    plan_pairs,
)

STOPS = (20, 50, 100)


def keys_of(count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 2**63, count).astype(np.uint64)


def ladder(count: int, seed: int = 0) -> Plan:
    """Return the plan of pairs (0, 1), (2, 3), … at the distances 0, 1, …"""
    pairs = np.arange(2 * count).reshape(-1, 2)
    return plan_pairs(pairs, np.arange(count, dtype=float), keys_of(2 * count, seed))


def judge(plan: Plan, truth: Array, target: float, count: int) -> Iterator[Array]:
    """Yield the answers after each judgment, by the truth (p,) of the drawn pairs."""
    answers = np.full(len(plan.pairs), OPEN)
    for _ in range(count):
        position = next_pair(plan, answers, target)
        if position is None:
            return
        answers[position] = truth[position]
        yield answers


# The population and the draw


def test_each_pair_counts_once_at_its_smaller_distance() -> None:
    pairs, distances = neighbor_pairs(np.array([4, 7, 9]), np.array([[7, 9], [4, -1], [4, 9]]),
                                      np.array([[0.5, 0.9], [0.4, 0.1], [0.8, 0.0]]))
    assert pairs.tolist() == [[4, 7], [4, 9]]
    assert distances.tolist() == [0.4, 0.8]


def test_cells_double_and_edges_hold_the_pairs_that_they_count() -> None:
    distances = np.random.default_rng(1).gamma(2.0, size=5000)
    pairs = np.arange(10_000).reshape(-1, 2)
    plan = plan_pairs(pairs, distances, keys_of(10_000))
    assert plan.sizes.sum() == 5000
    assert [(distances <= edge).sum() for edge in plan.edges] == plan.sizes.cumsum().tolist()
    ends = np.bincount(plan.cells, plan.sizes).cumsum()
    np.testing.assert_allclose(ends[1:] / ends[:-1], 2, rtol=0.07)
    before = np.concatenate([[-1], plan.edges[:-1]])
    assert (plan.distances > before[plan.parts]).all()
    assert (plan.distances <= plan.edges[plan.parts]).all()
    assert (np.diff(plan.drawn_cells) >= 0).all()


def test_pairs_of_equal_distance_lie_in_one_part() -> None:
    distances = np.repeat([0.0, 1.0, 2.0], [700, 200, 100])
    plan = plan_pairs(np.arange(2000).reshape(-1, 2), distances, keys_of(2000))
    assert plan.sizes.tolist() == [700, 200, 100]
    assert plan.edges.tolist() == pytest.approx([0.5, 1.5, 2.0], abs=1e-4)


@pytest.mark.parametrize("count", [1, 2, 11, 30])
def test_few_pairs_have_a_plan_too(count: int) -> None:
    plan = ladder(count)
    assert sorted(map(tuple, plan.pairs.tolist())) == [(2 * pair, 2 * pair + 1) for pair in range(count)]
    answers = list(judge(plan, np.ones(count, int), 0.9, 99))
    assert len(answers) == count
    assert estimate(plan, answers[-1], 0.9).precision[:, -1].tolist() == [1, 1, 1]


def test_the_names_of_two_images_decide_when_a_pair_is_drawn_not_their_numbers_or_distances() -> None:
    """Embeddings whose cells share pairs draw them in the same order, and a permutation of images changes nothing."""
    count = 4000
    rng, keys = np.random.default_rng(2), keys_of(2 * count)
    pairs, distances = np.arange(2 * count).reshape(-1, 2), np.sort(rng.random(count))
    plan = plan_pairs(pairs, distances, keys)
    permutation = rng.permutation(2 * count)
    moved = np.empty_like(keys)
    moved[permutation] = keys
    renamed = plan_pairs(np.sort(permutation[pairs], axis=1), distances, moved)
    assert np.sort(permutation[plan.pairs], axis=1).tolist() == renamed.pairs.tolist()
    other = plan_pairs(pairs, distances**3 + 0.0001 * rng.random(count), keys)
    last = [drawn.pairs[drawn.drawn_cells == drawn.cells[-1]] for drawn in (plan, other)]
    shared = [set(map(tuple, drawn[:100].tolist())) for drawn in last]
    assert len(shared[0] & shared[1]) > 90
    in_cell = plan.distances[plan.drawn_cells == plan.cells[-1]]
    assert abs(np.corrcoef(np.arange(len(in_cell)), in_cell)[0, 1]) < 0.2


def test_the_first_judgments_cover_every_cell_and_each_beginning_is_spread_over_the_range() -> None:
    plan = ladder(40_000)
    cells = plan.cells[-1] + 1
    drawn: list[int] = []
    for answers in judge(plan, np.ones(len(plan.pairs), int), 0.95, cells):
        drawn += [int(cell) for cell in np.flatnonzero(np.bincount(plan.drawn_cells[answers != OPEN], minlength=cells))
                  if cell not in drawn]
    assert sorted(drawn) == list(range(cells))
    for length in range(4, cells):
        gaps = np.diff([-1, *sorted(drawn[:length]), cells])
        assert gaps.max() <= 2 * np.ceil(cells / length), drawn[:length]


def test_a_skipped_pair_never_comes_again_and_a_cell_of_skipped_pairs_does_not_block_the_others() -> None:
    plan = ladder(40_000)
    answers = np.full(len(plan.pairs), OPEN)
    seen = set()
    for _ in range(60):
        position = next_pair(plan, answers, 0.9)
        assert position is not None
        assert position not in seen
        seen.add(position)
        answers[position] = SKIPPED if plan.drawn_cells[position] == 0 else SAME
    assert estimate(plan, answers, 0.9).judged > 50


def test_a_judgment_for_another_embedding_counts_only_where_the_random_order_has_come_to_it() -> None:
    plan = ladder(4000)
    cell = np.flatnonzero(plan.drawn_cells == plan.cells[-1])
    answers = np.full(len(plan.pairs), OPEN)
    answers[cell[[0, 1, 3]]] = SAME, DIFFERENT, SAME
    counts = Counts.of(plan, answers)
    assert (counts.same.sum(), counts.different.sum()) == (1, 1)
    answers[cell[2]] = SKIPPED
    counts = Counts.of(plan, answers)
    assert (counts.same.sum(), counts.different.sum()) == (2, 1)


# Estimates and bounds


def two_cells() -> tuple[Plan, Array]:
    """Return a plan of two cells of one part each, 30 and 70 pairs, with the answers 3 of 4 and 1 of 5."""
    plan = Plan(np.arange(200).reshape(-1, 2), np.arange(100.0), np.repeat([0, 1], [30, 70]), np.array([30, 70]),
                np.array([29.5, 99.5]), np.array([0, 1]))
    answers = np.full(100, OPEN)
    answers[:4], answers[30:35] = [SAME, SAME, DIFFERENT, SAME], [DIFFERENT, SAME, DIFFERENT, DIFFERENT, DIFFERENT]
    return plan, answers


def test_a_judgment_counts_by_the_size_of_its_cell() -> None:
    plan, answers = two_cells()
    result = estimate(plan, answers, 0.7)
    assert result.precision[0].tolist() == pytest.approx([3 / 4, (30 * 3 / 4 + 70 / 5) / 100])
    assert result.recall[0].tolist() == pytest.approx([22.5 / 36.5, 1])
    assert result.chance.tolist() == pytest.approx([0.75, 0.2])
    assert result.judged == 9


def test_the_probability_never_grows_with_the_distance() -> None:
    plan, answers = two_cells()
    answers[:4], answers[30:35] = DIFFERENT, SAME
    assert estimate(plan, answers, 0.7).chance.tolist() == pytest.approx([5 / 9, 5 / 9])


def bound_by_search(sizes: Sequence[int], same: Sequence[int], different: Sequence[int], error: float) -> float:
    """Return the bound of `lower_total` by its definition: the best of all bets, over a grid of all shares."""
    total, best = sum(sizes), 0.0
    grid = np.linspace(0.001, 1, 1000) if len(sizes) == 1 else np.linspace(0.005, 1, 200)
    for bet, capital in zip(BETS, CAPITAL, strict=True):
        least = float(total)
        for shares in product(grid, repeat=len(sizes)):
            wealth = capital
            for size, hits, misses, share in zip(sizes, same, different, shares, strict=True):
                risked = bet * min(1, size / total / FULL)
                wealth *= (1 - risked + risked / share) ** hits * (1 - risked) ** misses
            if wealth <= 1 / error:
                least = min(least, float(np.dot(sizes, shares)))
        best = max(best, least)
    return best


@pytest.mark.parametrize(("sizes", "same", "different"), [
    ([1000], [20], [0]), ([1000], [30], [4]), ([1000], [3], [9]), ([900, 100], [12, 5], [1, 0]),
    ([500, 500], [10, 3], [0, 2]), ([950, 50], [9, 2], [0, 1])])
def test_a_bound_is_the_least_total_that_the_bets_leave_possible(sizes: list[int], same: list[int],
                                                                 different: list[int]) -> None:
    bound = lower_total(*(np.array([values]) for values in (sizes, same, different)), BELOW)
    assert bound[0] == pytest.approx(bound_by_search(sizes, same, different, BELOW), abs=0.006 * sum(sizes))


@given(st.lists(st.tuples(st.integers(5, 500), st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=6))
def test_bounds_lie_between_what_was_seen_and_the_rest(strata: list[tuple[int, int, int]]) -> None:
    sizes, same, different = (np.array([values]) for values in zip(*strata, strict=True))
    sizes = np.maximum(sizes, same + different)
    low, more = lower_total(sizes, same, different, 0.05)[0], lower_total(sizes, same, different, 0.2)[0]
    assert 0 <= low <= more + 1e-9 <= sizes.sum() + 1e-6
    high = sizes.sum() - lower_total(sizes, different, same, 0.05)[0]
    shares = same / np.maximum(same + different, 1)
    assert low <= (sizes * shares).sum() + 1e-6 or (same + different == 0).any()
    assert low <= high + 1e-6


def test_all_pairs_judged_leave_no_doubt() -> None:
    plan = ladder(150)
    truth = (np.random.default_rng(4).random(len(plan.pairs)) < 0.6).astype(int)
    answers = truth.copy()
    result = estimate(plan, answers, 0.6)
    within = np.array([truth[plan.distances <= edge].sum() for edge in plan.edges])
    for row in result.precision:
        np.testing.assert_allclose(row, within / plan.sizes.cumsum())
    for row in result.recall:
        np.testing.assert_allclose(row, within / within[-1])


def test_twenty_judgments_of_one_kind_tell_something_and_none_tells_nothing() -> None:
    plan = ladder(20_000)
    nothing = estimate(plan, np.full(len(plan.pairs), OPEN), 0.8)
    assert nothing.threshold is None
    assert nothing.precision[1:].tolist() == [[0.0] * len(plan.sizes), [1.0] * len(plan.sizes)]
    *_, answers = judge(plan, np.ones(len(plan.pairs), int), 0.8, 20)
    assert estimate(plan, answers, 0.8).threshold == len(plan.sizes) - 1
    assert estimate(plan, answers, 0.95).threshold is None
    *_, answers = judge(plan, np.zeros(len(plan.pairs), int), 0.8, 40)
    assert estimate(plan, answers, 0.8).is_unreachable


def test_the_forecast_is_about_right() -> None:
    plan = ladder(20_000)
    truth = (plan.distances < 5000).astype(int)
    needed = estimate(plan, np.full(len(plan.pairs), OPEN), 0.9).needed
    stops = [count for count, answers in enumerate(judge(plan, truth, 0.9, 100), 1)
             if count % 5 == 0 and estimate(plan, answers, 0.9).threshold is not None]
    assert needed is not None
    assert needed / 2 < stops[0] < 3 * needed


# Coverage, with a known truth


def test_bounds_hold_at_every_stop_in_95_of_100_sessions() -> None:
    """Stratified draws of every precision and both sides, judged until 20, 50 and 100; a miss at any stop counts."""
    rng, sessions = np.random.default_rng(5), 300
    sizes = np.array([100_000, 50_000, 25_000, 12_500, 6_250, 6_250])
    for shares in (np.full(6, 0.9), np.full(6, 0.5), np.array([0.7, 0.9, 0.97, 1, 1, 0.5]), np.full(6, 0.03)):
        total, missed = (sizes * shares).sum(), np.zeros(sessions, bool)
        judged, same = np.zeros(6, int), np.zeros((sessions, 6), int)
        for stop in STOPS:
            more = np.maximum(1, np.round(stop * sizes / sizes.sum())).astype(int) - judged
            same += rng.binomial(more, shares, (sessions, 6))
            judged = judged + more
            groups = np.broadcast_to(sizes, same.shape), same, judged - same
            missed |= lower_total(*groups, BELOW) > total + 1e-6
            missed |= lower_total(groups[0], groups[2], groups[1], ABOVE) > sizes.sum() - total + 1e-6
        assert missed.mean() <= 0.05


def true_shares(plan: Plan, distances: Array, truth: Array) -> tuple[Array, Array]:
    """Return the true precision and recall (m,) up to each edge of a population."""
    within = np.array([truth[distances <= edge].sum() for edge in plan.edges])
    return within / plan.sizes.cumsum(), within / max(1, within[-1])


def errors_of(pairs: Array, distances: Array, truth: Array, target: float, seed: int, most: int
              ) -> tuple[dict[str, bool], Estimate]:
    """Judge in the adaptive order; return what was ever wrong at any stop, and the last estimate.

    Args:
        pairs: The population (p, 2).
        distances: Its distances (p,).
        truth: Whether each pair is the same (p,).
        target: The precision that the threshold should have.
        seed: Seed of the random order.
        most: Number of judgments.
    """
    plan = plan_pairs(pairs, distances, keys_of(int(pairs.max()) + 1, seed))
    known = {tuple(pair): int(same) for pair, same in zip(pairs.tolist(), truth.tolist(), strict=True)}
    precision, recall = true_shares(plan, distances, truth)
    wrong = dict.fromkeys(("precision", "recall", "threshold", "certain"), False)
    drawn = np.array([known[tuple(pair)] for pair in plan.pairs.tolist()])
    for count, answers in enumerate(judge(plan, drawn, target, most), 1):
        if count % 10 and count != most:
            continue
        last = estimate(plan, answers, target)
        for name, true, (_, low, high) in (("precision", precision, last.precision), ("recall", recall, last.recall)):
            wrong[name] |= bool(((true < low - 1e-9) | (true > high + 1e-9)).any())
        if last.threshold is not None:
            wrong["threshold"] |= bool(precision[last.threshold] < least_precision(target))
        if last.certain is not None:
            wrong["certain"] |= bool(precision[last.certain] < target)
    return wrong, last


def curve(kind: str, rank: Array) -> Array:
    """Return the probability that a pair at a rank of 0 … 1 is the same."""
    match kind:
        case "falling":
            return 1 / (1 + (rank / 0.15) ** 3)
        case "duplicates":
            return np.where(rank < 0.004, 0.97, 0.001)
        case "just too few":
            return np.full(len(rank), 0.79)
        case "growing":  # against the smoothing
            return np.where(rank < 0.01, 0.5, np.where(rank < 0.2, 0.97, 0.2))
    raise AssertionError(kind)


@pytest.mark.parametrize(("kind", "target", "sessions"), [
    ("falling", 0.8, 8), pytest.param("falling", 0.9, 60, marks=pytest.mark.slow),
    pytest.param("duplicates", 0.8, 60, marks=pytest.mark.slow),
    pytest.param("just too few", 0.9, 60, marks=pytest.mark.slow),
    pytest.param("growing", 0.9, 60, marks=pytest.mark.slow)])
def test_intervals_and_thresholds_hold_whenever_an_adaptive_session_stops(kind: str, target: float,
                                                                          sessions: int) -> None:
    """At most 5 % of the sessions may ever be wrong, at any edge and any stop; 3 more than expected are tolerated."""
    rng, most = np.random.default_rng(6), 100 if sessions > 10 else 60
    mistakes: dict[str, int] = {}
    found = 0
    for seed in range(sessions):
        truth = rng.random(20_000) < curve(kind, np.linspace(0, 1, 20_000))
        wrong, last = errors_of(np.arange(40_000).reshape(-1, 2), np.arange(20_000.0), truth, target, seed, most)
        mistakes = {name: mistakes.get(name, 0) + is_wrong for name, is_wrong in wrong.items()}
        found += last.threshold is not None
    assert all(count <= 0.05 * sessions + 3 * (sessions > 10) for count in mistakes.values()), mistakes
    assert found >= 0.75 * sessions or kind in ("just too few", "growing")


def real_population(name: str) -> tuple[Array, Array, Array]:
    """Return the population of a data set's pixels, with its labels as the judge."""
    if name == "digits":
        digits = load_digits()
        rows, labels = digits.images.reshape(len(digits.images), -1), digits.target
    else:
        dataset = catalog.load(name)
        rows = np.stack([np.asarray(dataset.images[index].resize((12, 12), Image.Resampling.BOX)).ravel()
                         for index in range(len(dataset))])
        assert dataset.labels is not None
        labels = dataset.labels
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    squared, neighbors = nearest(rows, NEIGHBORS)
    pairs, distances = neighbor_pairs(np.arange(len(rows)), neighbors, np.sqrt(squared))
    return pairs, distances, labels[pairs[:, 0]] == labels[pairs[:, 1]]


@pytest.mark.parametrize(("name", "target", "sessions"), [
    ("digits", 0.9, 4), pytest.param("digits", 0.95, 40, marks=pytest.mark.slow),
    pytest.param("emoji", 0.7, 40, marks=pytest.mark.slow)])
def test_intervals_and_thresholds_hold_with_labels_as_the_judge(name: str, target: float, sessions: int) -> None:
    population = real_population(name)
    found, wrong = 0, 0
    for seed in range(sessions):
        errors, last = errors_of(*population, target, seed, 120 if sessions > 4 else 60)
        wrong += any(errors.values())
        found += last.threshold is not None
    assert wrong <= 0.05 * sessions + 2 * (sessions > 4)
    assert found >= sessions / 2


@pytest.mark.parametrize("sessions", fast_first([4, 60]))
def test_judgments_for_one_embedding_give_valid_intervals_in_another(sessions: int) -> None:
    """The second embedding ranks the same pairs with noise; which of its pairs are judged was decided in the first."""
    rng, count, wrong, shared = np.random.default_rng(8), 20_000, 0, []
    pairs, distances = np.arange(2 * count).reshape(-1, 2), np.arange(float(count))
    for seed in range(sessions):
        truth = (rng.random(count) < curve("falling", np.linspace(0, 1, count))).astype(int)
        others = distances * np.exp(0.2 * rng.standard_normal(count))
        first, second = (plan_pairs(pairs, values, keys_of(2 * count, seed)) for values in (distances, others))
        *_, answers = judge(first, truth[first.pairs[:, 0] // 2], 0.8, 100)
        given = np.full(count, OPEN)
        given[first.pairs[:, 0] // 2] = answers
        result = estimate(second, given[second.pairs[:, 0] // 2], 0.8)
        precision, _ = true_shares(second, others, truth)
        wrong += bool(((precision < result.precision[1] - 1e-9) | (precision > result.precision[2] + 1e-9)).any())
        shared.append(result.judged)
    assert wrong <= 0.05 * sessions + 3 * (sessions > 4)
    assert np.mean(shared) > 30
