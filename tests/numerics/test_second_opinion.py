"""The second opinion: laws, its error against the bootstrap and in simulation, and what it refuses."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pytest

from udml_core.base.errors import UserError
from udml_core.numerics import second_opinion as module
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.refinement import Refiner
from udml_core.numerics.refinement.linear import unit_rows
from udml_core.numerics.second_opinion import (
    Interval,
    Judge,
    Opinion,
    judge_rankings,
    paired_difference,
    second_opinion,
    steadiness,
    typical_group,
    vote,
)

CLASSES, EACH = 12, 25


def world(seed: int, spread: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Return what the judged encoder and what the judge sees of the same images, each with its own noise."""
    rng = np.random.default_rng(seed)
    content = np.repeat(rng.normal(size=(CLASSES, 16)), EACH, axis=0) + spread * rng.normal(size=(CLASSES * EACH, 16))
    views = [content @ rng.normal(size=(16, 24)) + rng.normal(size=(CLASSES * EACH, 24)) for _ in range(2)]
    return unit_rows(views[0]), unit_rows(views[1])


def noisy(rows: np.ndarray, size: float, seed: int = 9) -> np.ndarray:
    return unit_rows(rows + size * np.random.default_rng(seed).normal(size=rows.shape) / np.sqrt(rows.shape[1]))


def intervals(opinion: Opinion) -> tuple[Interval, Interval]:
    return opinion.first_results, opinion.groups


@pytest.mark.parametrize("count", [20, 21, 60, 300])
def test_an_embedding_beside_itself_cannot_be_told_apart(count: int) -> None:
    embedding, features = (rows[:count] for rows in world(0))
    for interval in intervals(second_opinion(Judge.of(features), embedding, embedding)):
        assert interval.verdict == "cannot tell"
        assert interval.difference == 0
        assert interval.error < 1e-12


def test_noise_is_worse_in_order_of_its_size_and_its_removal_better() -> None:
    embedding, features = world(1)
    judge = Judge.of(features)
    sizes = (0.0, 0.5, 1.0, 2.0, 4.0)
    for name in ("first_results", "groups"):
        gains = [getattr(second_opinion(judge, embedding, noisy(embedding, size)), name) for size in sizes]
        assert [gain.difference for gain in gains] == sorted((gain.difference for gain in gains), reverse=True)
        assert [gain.verdict for gain in gains[2:]] == ["worse"] * 3
        back = getattr(second_opinion(judge, noisy(embedding, 2.0), embedding), name)
        assert back.verdict == "better"
        assert back.difference == pytest.approx(-gains[3].difference)
        assert back.error == pytest.approx(gains[3].error)


def test_a_judge_prepares_its_features_as_a_refiner_does_without_importing_scikit_learn() -> None:
    features = noisy(world(0)[0], 0.3)
    judge = Judge.of(features)
    whitened = Refiner("whiten").fit(judge.features).embedding_
    np.testing.assert_array_equal(judge.whitened, whitened)
    np.testing.assert_array_equal(judge.refined, Refiner("average:k=20,times=2,alpha=3").fit(whitened).embedding_)
    code = "import sys; import udml_core.numerics.second_opinion; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_order_of_the_images_and_rotations_change_nothing() -> None:
    embedding, features = world(2)
    worse = noisy(embedding, 0.7)
    rng = np.random.default_rng(3)
    order = rng.permutation(len(embedding))
    rotation = np.linalg.qr(rng.normal(size=(24, 24)))[0]
    plain = second_opinion(Judge.of(features), embedding, worse)
    turned = second_opinion(Judge.of((features @ rotation)[order]), (embedding @ rotation)[order], worse[order])
    for before, after in zip(intervals(plain), intervals(turned), strict=True):
        assert after.difference == pytest.approx(before.difference, abs=1e-4)
        assert after.error == pytest.approx(before.error, rel=1e-2)


def test_whitened_first_results_and_averaged_groups_are_the_mean_cosines_of_the_definition() -> None:
    embedding, features = world(4)
    judge, after = Judge.of(features), noisy(embedding, 1.0)
    opinion = second_opinion(judge, embedding, after, group=30)
    for interval, rows, count in ((opinion.first_results, judge.whitened, 1), (opinion.groups, judge.refined, 30)):
        for value, judged in ((interval.before, embedding), (interval.after, after)):
            results = nearest(judged, count)[1]
            cosines = [np.mean([rows[query] @ rows[other] for other in results[query]]) for query in range(len(rows))]
            assert value == pytest.approx(float(np.mean(cosines)), abs=1e-5)


@pytest.mark.parametrize("each", [20, 60])
def test_the_typical_group_follows_the_size_of_the_classes(each: int) -> None:
    rng = np.random.default_rng(0)
    classes = unit_rows(np.repeat(rng.normal(size=(600 // each, 32)), each, axis=0) + 0.3 * rng.normal(size=(600, 32)))
    assert typical_group(classes) == each - 1


def test_the_typical_group_counts_images_beyond_half_of_the_way_from_the_mean_to_the_nearest() -> None:
    rows = unit_rows(world(3)[1] + 0.3)  # not centered, so that the mean cosine counts
    cosines = rows @ rows.T
    counts = []
    for query in range(len(rows)):
        others = np.delete(cosines[query], query)
        counts.append(int((others > (others.max() + cosines.mean()) / 2).sum()))
    assert typical_group(rows) == int(np.median(counts))


def test_a_judge_counts_as_much_as_its_neighbors_stay_under_another_view() -> None:
    features = world(6)[1]
    seen = np.arange(0, len(features), 3)
    weights = [Judge.of(features, (seen, noisy(features[seen], size))).weight for size in (0.0, 0.5, 2.0)]
    assert weights[0] == 1
    assert weights[0] > weights[1] > weights[2]
    rows, views = np.eye(12, dtype=np.float32), np.eye(12, dtype=np.float32)[1:3]
    rows[0] = rows[1] * 0.9 + rows[2] * 0.1  # of the two nearest to image 0, one stays
    assert steadiness(unit_rows(rows), np.array([1, 2]), views) == 1


def test_an_embedding_ranks_by_its_own_distance_not_by_cosine() -> None:
    rng = np.random.default_rng(0)
    rows = unit_rows(rng.standard_normal((200, 8)))
    judge = Judge.of(rng.standard_normal((200, 5)))
    assert second_opinion(judge, rows, rows).groups.difference == 0
    assert second_opinion(judge, rows, rows * rng.uniform(0.2, 5, (200, 1))).groups.difference != 0


def test_the_error_is_that_of_the_bootstrap_over_images() -> None:
    embedding, features = world(5)
    judge, queries = Judge.of(features), np.arange(CLASSES * EACH)
    before, after = nearest(embedding, 10)[1], nearest(noisy(embedding, 1.0), 10)[1]
    interval = paired_difference(judge.whitened, queries, before, after)
    cosines = judge.whitened @ judge.whitened.T
    rng, draws = np.random.default_rng(6), []
    for _ in range(2000):
        weights = rng.exponential(size=len(queries))  # the Bayesian bootstrap
        means = [(cosines[queries[:, None], results] * weights[results]).sum(axis=1) / weights[results].sum(axis=1)
                 for results in (before, after)]
        draws.append(np.average(means[1] - means[0], weights=weights))
    assert interval.error == pytest.approx(np.std(draws), rel=0.1)
    over_queries = np.std(means[1] - means[0]) / np.sqrt(len(queries))
    assert interval.error > 1.1 * over_queries  # images that are results of many count as often


def test_the_interval_covers_the_difference_of_the_population() -> None:
    """Collections are drawn from one population, and the truth is the mean over them."""
    opinions = []
    for seed in range(120):
        rng = np.random.default_rng(seed + 1000)
        content = rng.normal(size=(150, 8))
        features, embedding = (unit_rows(content + 0.6 * rng.normal(size=content.shape)) for _ in range(2))
        after = noisy(embedding, 0.8, seed)
        queries = np.arange(len(content))
        opinions.append(paired_difference(features, queries, nearest(embedding, 10)[1], nearest(after, 10)[1]))
    truth = np.mean([opinion.difference for opinion in opinions])
    covered = np.mean([opinion.low <= truth <= opinion.high for opinion in opinions])
    assert covered >= 0.9


@pytest.mark.slow
def test_both_intervals_cover_the_expected_difference_with_a_judge_prepared_on_the_same_images() -> None:
    """Whitening, averages and the group are fitted in each of 400 collections of the same classes."""
    fixed = np.random.default_rng(0)
    centers, maps = fixed.normal(size=(CLASSES, 16)), fixed.normal(size=(2, 16, 24))
    opinions = []
    for seed in range(400):
        rng = np.random.default_rng(seed + 1)
        content = np.repeat(centers, EACH, axis=0) + 0.5 * rng.normal(size=(CLASSES * EACH, 16))
        embedding, features = (unit_rows(content @ of + rng.normal(size=(CLASSES * EACH, 24))) for of in maps)
        opinions.append(second_opinion(Judge.of(features), embedding, noisy(embedding, 0.6, seed + 1)))
    for of in zip(*map(intervals, opinions), strict=True):
        truth = np.mean([each.difference for each in of])
        covered = np.mean([each.low <= truth <= each.high for each in of])
        assert 0.94 <= covered <= 0.985, "95 %, and hardly wider"


def test_equally_noisy_embeddings_are_rarely_called_better_or_worse() -> None:
    verdicts = []
    for seed in range(60):
        embedding, features = world(seed + 50, spread=0.8)
        rankings = [nearest(noisy(embedding, 0.8, seed + draw), 10)[1] for draw in (0, 500)]
        verdicts.append(paired_difference(features, np.arange(len(features)), *rankings).verdict)
    assert verdicts.count("cannot tell") >= 54


def test_an_embedding_may_not_judge_itself_even_rotated() -> None:
    embedding, features = world(7)
    rotation = np.linalg.qr(np.random.default_rng(8).normal(size=(24, 24)))[0]
    for judged in ((features, embedding), (embedding, features), (3 * features @ rotation, embedding)):
        with pytest.raises(UserError, match="took no part"):
            second_opinion(Judge.of(features), *judged)


def test_other_images_are_refused() -> None:
    embedding, features = world(7)
    with pytest.raises(UserError, match="same images"):
        second_opinion(Judge.of(features), embedding, embedding[1:])


@pytest.mark.parametrize("count", [0, 1])
def test_of_no_image_and_of_a_single_one_nothing_can_be_told(count: int) -> None:
    embedding, features = (rows[:count] for rows in world(7))
    judge = Judge.of(features)
    none = np.zeros((count, 0), np.int64)
    for opinion in (second_opinion(judge, embedding, embedding),
                    judge_rankings(judge, np.arange(count), none, none)):
        assert [interval.verdict for interval in intervals(opinion)] == ["cannot tell"] * 2
        assert opinion.groups.high >= 1.9


@pytest.mark.parametrize("count", [5, 300])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused_wherever_they_are(count: int, value: float) -> None:
    embedding, features = (rows[:count].copy() for rows in world(7))
    spoiled, judge = embedding.copy(), Judge.of(features)
    spoiled[1, 2] = value
    for before, after in ((spoiled, embedding), (embedding, spoiled)):
        with pytest.raises(UserError, match=r"An embedding must have finite values; got \d+ .*not finite\. Remove"):
            second_opinion(judge, before, after)
    features[1, 2] = value
    with np.errstate(invalid="ignore"), pytest.raises(UserError, match="A judge must have finite values"):
        Judge.of(features)


@pytest.mark.parametrize("count", [2, 5, 19])
def test_on_few_images_nothing_can_be_told(count: int) -> None:
    embedding, features = world(7)
    spoiled = np.random.default_rng(1).normal(size=embedding.shape)[:count]
    judge = Judge.of(features[:count])
    for other in (spoiled, embedding[:count]):
        opinion = second_opinion(judge, embedding[:count], other)
        assert opinion.first_results.verdict == opinion.groups.verdict == "cannot tell"
        assert opinion.groups.low <= -1.9
        assert opinion.groups.high >= 1.9


def test_no_function_receives_labels() -> None:
    functions = [function for _, function in inspect.getmembers(module, inspect.isfunction)
                 if function.__module__ == module.__name__]
    assert len(functions) >= 5
    for function in (*functions, Judge.of):
        assert not {name for name in inspect.signature(function).parameters if "label" in name or "class" in name}


def test_three_quarters_of_the_weight_decide() -> None:
    better, worse, unclear = Interval(0.2, 0.3, 0.01), Interval(0.3, 0.2, 0.01), Interval(0.2, 0.21, 0.02)
    assert vote([better]) == vote([better, better]) == "better"
    assert vote([worse, worse, worse, unclear]) == "worse"
    for undecided in ([better, better, worse], [better, worse], [better, unclear], []):
        assert vote(undecided) == "cannot tell"
    assert vote([better, worse], [0.6, 0.1]) == "better"
    assert vote([better, worse], [0.1, 0.6]) == "worse"
    assert vote([better, unclear], [0.6, 0.3]) == "cannot tell"
    assert [vote([better, unclear], [share, 1 - share]) for share in (0.74, 0.76)] == ["cannot tell", "better"]
    assert vote([better, worse], [0.0, 0.0]) == "cannot tell"
