"""Clusters keep their numbers while a slider moves."""

from __future__ import annotations

import time

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from udml_core.base.arrays import Integers
from udml_core.exploration.identity import number_clusters, track_clusters


@st.composite
def hierarchies(draw: st.DrawFn) -> list[Integers]:
    """Draw partitions of some images, each of which merges clusters of the one before it."""
    count = draw(st.integers(1, 30))
    levels = [np.array(draw(st.lists(st.integers(-1, 9), min_size=count, max_size=count)))]
    for _ in range(draw(st.integers(1, 4))):
        merged = np.array(draw(st.lists(st.integers(0, 9), min_size=10, max_size=10)))
        levels.append(np.where(levels[-1] < 0, -1, merged[levels[-1]]))
    return levels


def test_the_first_numbers_go_by_size() -> None:
    assert number_clusters(np.array([7, 3, 3, 3, 7, -1])).numbers.tolist() == [1, 0, 0, 0, 1, -1]


def test_the_larger_part_of_a_split_cluster_keeps_the_number() -> None:
    whole = number_clusters(np.array([0, 0, 0, 0, 0, 4, 4]))
    assert number_clusters(np.array([0, 0, 8, 8, 8, 4, 4]), whole).numbers.tolist() == [2, 2, 0, 0, 0, 1, 1]


def test_merged_clusters_take_the_number_of_the_larger_one() -> None:
    parts = number_clusters(np.array([0, 0, 0, 1, 1, 2, 2, 2, 2]))
    assert number_clusters(np.array([0, 0, 0, 0, 0, 1, 1, 1, 1]), parts).numbers.tolist() == [1] * 5 + [0] * 4


@given(hierarchies())
def test_there_and_back_every_cluster_has_its_number_again(levels: list[Integers]) -> None:
    """Law: merging clusters step by step and splitting them in reverse gives the same numbers at every step."""
    there = [number_clusters(levels[0])]
    for level in levels[1:]:
        there.append(number_clusters(level, there[-1]))
    now = there[-1]
    for level, known in zip(levels[-2::-1], there[-2::-1], strict=True):
        now = number_clusters(level, now)
        assert now.numbers.tolist() == known.numbers.tolist()


@given(st.lists(st.tuples(st.integers(-1, 6), st.integers(-1, 6)), min_size=1, max_size=40))
def test_clusters_differ_in_number_and_unchanged_ones_keep_it(pairs: list[tuple[int, int]]) -> None:
    first, second = np.array(pairs).T
    before = number_clusters(first)
    after = number_clusters(second, before)
    assert ((after.numbers < 0) == (second < 0)).all()
    for code in set(second.tolist()) - {-1}:
        numbers = set(after.numbers[second == code].tolist())
        assert len(numbers) == 1
        assert not numbers & set(after.numbers[second != code].tolist())
        old = set(first[second == code].tolist())
        if len(old) == 1 and -1 not in old and (first == next(iter(old))).sum() == (second == code).sum():
            assert set(before.numbers[second == code].tolist()) == numbers


def test_2000_images_take_less_than_a_frame() -> None:
    """A frame of a screen is 16 ms."""
    generator = np.random.default_rng(0)
    before = number_clusters(generator.integers(-1, 200, 2000))
    second = generator.integers(-1, 200, 2000)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        number_clusters(second, before)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.016


ROWS = {0.0: [0, 0, 0, 0, 0, 0, 0, 0],  # all together
        0.5: [5, 5, 5, 2, 2, 2, 2, -1],
        0.6: [1, 1, 1, 0, 0, 4, 4, -1],  # the larger one splits
        0.7: [7, 7, 7, 3, 3, -1, -1, -1]}


def test_a_cluster_keeps_its_number_when_another_splits_or_all_merge() -> None:
    tracked = track_clusters(lambda epsilon: np.array(ROWS[epsilon]), list(ROWS), 1)
    assert tracked.tolist() == [[0, 0, 0, 0, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0, 0, -1], [1, 1, 1, 0, 0, 2, 2, -1],
                                [1, 1, 1, 0, 0, -1, -1, -1]]
    assert tracked.dtype == np.int16
