"""Samples: diverse, typical and outlying images, and images to label next, on points whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from udml_core.exploration.browsing import neighbor_similarities
from udml_core.exploration.sample import (
    KINDS,
    Kind,
    Neighborhoods,
    coverage_of,
    farthest_first,
    sample_rows,
    widest_coverage,
)
from udml_core.numerics.neighbors import nearest


@pytest.fixture(scope="module")
def groups() -> Neighborhoods:
    """Three groups of 40, 20 and 10 directions, and one direction far from all as the last."""
    random = np.random.default_rng(0)
    centers = np.eye(8)[:3]
    rows = np.concatenate([centers[group] + 0.15 * random.standard_normal((size, 8))
                           for group, size in enumerate((40, 20, 10))] + [-np.ones((1, 8))]).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    neighbors = nearest(rows, 5)[1]
    return Neighborhoods(rows, neighbors, neighbor_similarities(rows, neighbors))


def group_of(rows: np.ndarray) -> list[int]:
    return np.digitize(rows, [40, 60, 70]).tolist()


def chosen(kind: Kind, among: Neighborhoods, count: int, **options: object) -> np.ndarray:
    allowed = options.pop("allowed", np.ones(len(among.rows), bool))
    return sample_rows(kind, among, allowed, count, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_is_distinct_among_the_allowed_and_continues_a_smaller_one(kind: Kind, groups: Neighborhoods) -> None:
    allowed = np.arange(71) % 2 == 0
    large = chosen(kind, groups, 9, allowed=allowed)
    assert len(set(large.tolist())) == len(large) > 5
    assert allowed[large].all()
    assert chosen(kind, groups, 4, allowed=allowed).tolist() == large[:4].tolist()
    assert len(chosen(kind, groups, 9, allowed=np.zeros(71, bool))) == 0


def test_diverse_images_reach_every_group_first(groups: Neighborhoods) -> None:
    assert sorted(group_of(chosen("diverse", groups, 4))) == [0, 1, 2, 3]


def test_a_diverse_image_is_the_farthest_from_those_before() -> None:
    rows = np.array([[np.cos(angle), np.sin(angle)] for angle in np.radians([0, 1, 2, 60, 100, 180])])
    order = farthest_first(rows, np.arange(6), 6)
    for position in range(1, 6):
        similarity = (rows @ rows[order[:position]].T).max(axis=1)
        assert similarity[order[position]] == pytest.approx(similarity.min())


def test_typical_images_are_no_neighbors_and_no_outlier(groups: Neighborhoods) -> None:
    rows = chosen("typical", groups, 6)
    assert 70 not in rows
    for position, row in enumerate(rows):
        assert not np.isin(rows[position + 1:], groups.neighbors[row]).any()
    densities = groups.similarities.mean(axis=1)
    assert densities[rows[0]] == densities.max()


def test_the_outlier_comes_first(groups: Neighborhoods) -> None:
    assert chosen("outlying", groups, 3)[0] == 70


def test_images_to_label_next_cover_most_and_leave_labeled_surroundings(groups: Neighborhoods) -> None:
    everything = np.ones(71, bool)
    rows = widest_coverage(groups.neighbors, everything, 71)
    shares = coverage_of(groups.neighbors, everything, rows)
    gains = np.diff(np.concatenate([[0.0], shares]))
    assert (np.diff(gains) <= 1e-12).all(), "greedy: no image covers more than the one before"
    assert shares[-1] == 1.0
    by_hand = np.eye(71, dtype=bool)
    by_hand[np.repeat(np.arange(71), 5), groups.neighbors.ravel()] = True
    by_hand |= by_hand.T
    assert gains[0] * 71 == pytest.approx(by_hand.sum(axis=1).max())
    labeled = np.arange(40)
    rest = widest_coverage(groups.neighbors, everything, 3, labeled)
    assert not np.isin(rest, labeled).any()
    assert set(group_of(rest[:2])) <= {1, 2}
