"""How many groups of results differ, and in how many of these a judge prefers the second embedding."""

from __future__ import annotations

import numpy as np
import pytest

from tests.numerics.test_second_opinion import noisy, world
from udml_core.numerics.changed_groups import changed_groups
from udml_core.numerics.changed_results import Changed
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.refinement.linear import unit_rows
from udml_core.numerics.second_opinion import Judge

QUERIES = np.arange(0, 300, 2)


def compared(before: np.ndarray, after: np.ndarray, features: np.ndarray, queries: np.ndarray = QUERIES) -> Changed:
    judge = Judge.of(features)
    return changed_groups(judge, queries, *(nearest(rows, judge.group, own=queries)[1] for rows in (before, after)))


def test_groups_are_counted_query_by_query_and_an_exchanged_image_in_ten_is_the_least() -> None:
    embedding, features = world(1)
    judge = Judge.of(features)
    rankings = [nearest(rows, 20, own=QUERIES)[1] for rows in (noisy(embedding, 1.0), embedding)]
    rankings[1][:6] = rankings[0][:6, ::-1]  # the same group in another order
    stranger = [next(image for image in range(300) if image not in row and image != query)
                for query, row in zip(QUERIES[6:9], rankings[0][6:9], strict=True)]
    rankings[1][6:9] = rankings[0][6:9]
    rankings[1][6:9, 3] = stranger  # one of twenty
    gains = []
    for query, *groups in zip(QUERIES, *rankings, strict=True):
        before, after = (set(group.tolist()) for group in groups)
        if len(after - before) >= 2:
            means = [np.mean([judge.refined[query] @ judge.refined[image] for image in group]) for group in groups]
            gains.append(means[1] - means[0])
    found = changed_groups(judge, QUERIES, *rankings)
    assert len(gains) <= len(QUERIES) - 9
    assert found.share == pytest.approx(len(gains) / len(QUERIES))
    assert found.better == pytest.approx(np.mean(np.array(gains) > 0))
    assert found.low < found.better < found.high


def test_the_embedding_without_noise_has_the_better_groups_and_exchanging_both_mirrors_the_count() -> None:
    embedding, features = world(1)
    found = compared(noisy(embedding, 1.0), embedding, features)
    mirrored = compared(embedding, noisy(embedding, 1.0), features)
    assert found.low > 0.5, "most groups are better"
    assert mirrored.high < 0.5, "most groups are worse"
    assert mirrored.share == found.share
    assert (mirrored.better, mirrored.low, mirrored.high) == pytest.approx((1 - found.better, 1 - found.high,
                                                                           1 - found.low))


def test_more_noise_gives_fewer_better_groups() -> None:
    embedding, features = world(2)
    better = [compared(embedding, noisy(embedding, size), features).better for size in (0.5, 1.0, 2.0, 4.0)]
    assert better == sorted(better, reverse=True)
    assert better[-1] < 0.1


def test_an_embedding_beside_itself_changes_nothing_and_few_changes_say_nothing() -> None:
    embedding, features = world(0)
    assert compared(embedding, embedding, features) == Changed(0.0, 0.5, 0.0, 1.0)
    few = embedding.copy()
    few[:3] = unit_rows(np.random.default_rng(0).normal(size=(3, few.shape[1])))
    assert not compared(embedding, few, features).is_known


def test_the_order_of_the_images_and_rotations_change_nothing() -> None:
    rng, (embedding, features) = np.random.default_rng(3), world(3)
    other, everything = noisy(embedding, 1.0), np.arange(300)
    found = compared(other, embedding, features, everything)
    order, turns = rng.permutation(300), [np.linalg.qr(rng.normal(size=(24, 24)))[0] for _ in range(3)]
    for changed in (compared(other[order], embedding[order], features[order], everything),
                    compared(other @ turns[0], embedding @ turns[1], features @ turns[2], everything)):
        assert (changed.share, changed.better) == pytest.approx((found.share, found.better), abs=0.004)
        assert (changed.low, changed.high) == pytest.approx((found.low, found.high), abs=0.01)


def test_equal_gains_count_as_half() -> None:
    rows = unit_rows(np.random.default_rng(0).normal(size=(90, 8)).astype(np.float32))
    rows[60:] = rows[30:60]  # each image twice
    judge = Judge(90, np.arange(90), rows, rows, rows, 1)
    queries = np.arange(30)
    before, after = np.arange(30, 60)[:, None], np.arange(60, 90)[:, None]
    assert changed_groups(judge, queries, before, after).better == 0.5


def drawn(seed: int, quieter: float) -> Changed:
    """Return the count on newly drawn images of fixed classes; the second embedding has less noise than the first."""
    fixed, rng = np.random.default_rng(5), np.random.default_rng(seed)
    centers, seen, judged = (fixed.normal(size=shape) for shape in ((12, 16), (16, 24), (16, 24)))
    content = np.repeat(centers, 15, axis=0) + 0.8 * rng.normal(size=(180, 16))
    rows, features = (content @ turn + rng.normal(size=(180, 24)) for turn in (seen, judged))
    embeddings = [unit_rows(rows + size * 2 * rng.normal(size=rows.shape)) for size in (1.0, quieter)]
    return compared(*embeddings, unit_rows(features), np.arange(180))


@pytest.mark.parametrize("quieter", [1.0, pytest.param(0.7, marks=pytest.mark.slow)])
def test_the_interval_covers_the_share_of_new_images(quieter: float) -> None:
    counts = [drawn(seed, quieter) for seed in range(100)]
    truth = np.mean([of.better for of in counts])
    covered = sum(of.low <= truth <= of.high for of in counts)
    assert covered >= 91, "95 of 100, less two standard errors"
    errors = np.mean([of.high - of.low for of in counts]) / (2 * 1.96)
    assert errors < 1.4 * np.std([of.better for of in counts]), "the interval is no wider than needed"
