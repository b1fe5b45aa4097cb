"""The first number of groups, and the order in which groups are named."""

from __future__ import annotations

import numpy as np
import pytest

from tests.exploration.test_naming import clouds
from udml_core.exploration.grouping import alikeness, build_tree, first_number, most_alike_first, similar_groups


@pytest.mark.parametrize(("classes", "each"), [(40, 15), (15, 40), (10, 60)])
def test_the_first_number_of_groups_is_that_of_the_clouds(classes: int, each: int) -> None:
    points = clouds(classes, each, 0.3)[0]
    tree = build_tree(points)
    assert first_number(tree, points, 300) == classes
    assert first_number(tree, points, 8) == 8, "never more than a page offers"


def test_similar_images_share_a_group_whatever_their_lengths() -> None:
    points, truth = clouds(6, 20, 0.1)
    scaled = points * np.random.default_rng(0).uniform(0.1, 10, (len(points), 1))
    groups = similar_groups(scaled, 6)
    assert len(set(zip(groups.tolist(), truth.tolist(), strict=True))) == 6
    assert (np.diff(np.bincount(similar_groups(points[:90], 6))) <= 0).all(), "the largest group is the first"


def test_the_first_number_of_few_images_is_at_least_two() -> None:
    points = clouds(1, 5)[0]
    assert first_number(build_tree(points), points, 300) == 2


def test_of_numbers_that_are_as_good_the_largest_is_first() -> None:
    points = np.random.default_rng(0).normal(size=(600, 200))  # no number is better than another
    assert first_number(build_tree(points), points, 300) == 50


def test_equal_images_are_alike_and_any_images_are_not() -> None:
    points, truth = clouds(20, 10, 0.1)
    alike = alikeness(points, truth)
    assert (alike > 0.95).all()
    assert alikeness(7 * points, truth) == pytest.approx(alike, abs=1e-5), "lengths do not matter"
    assert alikeness(points, np.zeros(len(points), int))[0] == pytest.approx(0, abs=0.01)
    assert alikeness(points, np.arange(len(points)) % 10).max() < 0, "one image of each cloud: nothing is nearer"
    near = np.concatenate([points[:20], points[:20] + 1e-3])
    assert alikeness(near, np.arange(40) // 20).max() < 0, "equal images, but another group has them too"
    some = alikeness(np.eye(3)[[0, 0, 1]], np.array([0, 0, 2]))
    assert some[[0, 2]] == pytest.approx(1), "a number may have no image"


def test_very_similar_groups_come_first_and_of_these_the_largest() -> None:
    alike, sizes = np.array([0.1, 0.9, 0.3, 0.8, 0.2, 1.0]), np.array([40, 4, 10, 10, 30, 1])
    assert most_alike_first(alike, sizes).tolist() == [2, 3, 1, 4, 0, 5], "one image alone is not very similar"
