"""Clusters that keep their numbers while ε moves, on assignments whose matches are evident."""

from __future__ import annotations

import numpy as np

from udml_core.exploration.cluster_track import number_by_size, number_like, track_clusters

ROWS = {0.0: [0, 0, 0, 0, 0, 0, 0, 0],  # all together
        0.5: [5, 5, 5, 2, 2, 2, 2, -1],
        0.6: [1, 1, 1, 0, 0, 4, 4, -1],  # the larger one splits
        0.7: [7, 7, 7, 3, 3, -1, -1, -1]}


def test_the_largest_cluster_is_the_first() -> None:
    assert number_by_size(np.array(ROWS[0.5])).tolist() == [1, 1, 1, 0, 0, 0, 0, -1]
    assert number_by_size(np.array([-1, -1])).tolist() == [-1, -1]


def test_a_cluster_keeps_its_number_when_another_splits_or_all_merge() -> None:
    tracked = track_clusters(lambda epsilon: np.array(ROWS[epsilon]), list(ROWS), 1)
    assert tracked.tolist() == [[0, 0, 0, 0, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0, 0, -1], [1, 1, 1, 0, 0, 2, 2, -1],
                                [1, 1, 1, 0, 0, -1, -1, -1]]
    assert tracked.dtype == np.int16


def test_two_clusters_never_share_a_number() -> None:
    random = np.random.default_rng(0)
    for _ in range(50):
        before, now = random.integers(-1, 9, 60), random.integers(-1, 12, 60)
        numbers = number_like(before, now)
        pairs = {(int(cluster), int(number)) for cluster, number in zip(now, numbers, strict=True)}
        assert len(pairs) == len({cluster for cluster, _ in pairs}) == len({number for _, number in pairs})
        assert ((numbers < 0) == (now < 0)).all()
