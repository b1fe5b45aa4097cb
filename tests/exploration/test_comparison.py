"""Queries that one run wins, and maps turned onto each other."""

from __future__ import annotations

import numpy as np
import pytest

from udml_core.exploration.comparison import (
    aligned_layouts,
    mean_interval,
    only_first_hits,
    sign_test,
)
from udml_core.exploration.failures import Atlas


def atlas(queries: list[int], hits: list[bool]) -> Atlas:
    """Return an atlas whose queries hit or miss."""
    classes = np.zeros(len(queries), dtype=np.int64)
    return Atlas(np.array(queries), np.array(queries), classes, np.where(hits, 0, 1))


def test_a_query_is_won_if_only_the_first_embedding_hits() -> None:
    first, second = atlas([2, 4, 6, 8], [True, True, False, False]), atlas([2, 4, 6, 8], [True, False, True, False])
    assert only_first_hits(first, second).tolist() == [4]
    assert only_first_hits(second, first).tolist() == [6]


def test_only_queries_of_both_are_compared() -> None:
    first, second = atlas([1, 2, 3], [True, True, True]), atlas([2, 3, 4], [False, True, False])
    assert only_first_hits(first, second).tolist() == [2]


def test_the_sign_test_counts_the_splits_that_are_at_least_as_uneven() -> None:
    assert sign_test(5, 1) == sign_test(1, 5) == pytest.approx(2 * (1 + 6) / 2**6)
    assert sign_test(3, 3) == sign_test(0, 0) == 1.0


def test_the_bootstrap_interval_of_a_mean_is_as_wide_as_the_normal_one_and_leaves_unknown_values_out() -> None:
    values = np.random.default_rng(2).normal(0.3, 2.0, 4_000)
    low, high = mean_interval(np.append(values, np.nan)) or (0.0, 0.0)
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert (low, high) == (pytest.approx(values.mean() - half, abs=0.1 * half),
                           pytest.approx(values.mean() + half, abs=0.1 * half))
    assert mean_interval(np.full(5, 0.25)) == (0.25, 0.25)
    assert mean_interval(np.array([0.5, np.nan])) is None


@pytest.mark.parametrize("mirrored", [False, True])
def test_a_turned_scaled_and_mirrored_map_is_turned_back(mirrored: bool) -> None:
    random = np.random.default_rng(5)
    positions = random.normal(size=(40, 2))
    angle = 2.1
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    if mirrored:
        rotation = rotation @ np.diag([1.0, -1.0])
    order = random.permutation(40)
    other = (10 * positions @ rotation + [50, -7])[order]
    first, second = aligned_layouts([(np.arange(40), positions), (order, other)])
    np.testing.assert_array_equal(first, positions)
    np.testing.assert_allclose(second, positions[order], atol=1e-9)


def test_only_shared_images_decide_the_turn_and_a_map_without_any_stays() -> None:
    random = np.random.default_rng(6)
    positions = random.normal(size=(30, 2))
    turned = -positions
    ids = np.arange(30)
    moved = aligned_layouts([(ids[:20], positions[:20]), (ids[5:], turned[5:]), (ids + 100, turned)])
    np.testing.assert_allclose(moved[1], positions[5:], atol=1e-9)
    np.testing.assert_array_equal(moved[2], turned)


def test_a_map_of_one_point_is_not_scaled() -> None:
    flat = np.zeros((5, 2))
    moved = aligned_layouts([(np.arange(5), np.random.default_rng(0).normal(size=(5, 2))), (np.arange(5), flat)])
    np.testing.assert_array_equal(moved[1], flat)
