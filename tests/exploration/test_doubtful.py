"""Named images that may be wrong."""

from __future__ import annotations

import numpy as np

from udml_core.exploration.doubtful import find_doubts, unlike_rows


def directions(center: int, count: int) -> np.ndarray:
    """Return points around an axis, all about as far from it."""
    angles = 2.4 * np.arange(count)
    around = np.zeros((count, 6))
    around[:, 4], around[:, 5] = np.cos(angles), np.sin(angles)
    return np.eye(6)[center] + 0.05 * around


def doubtful(points: np.ndarray, codes: list[int], is_open: np.ndarray | None = None) -> list[tuple[int, int]]:
    """Return the row of each doubtful image and the class that it lies nearer to."""
    found = find_doubts(points, np.array(codes), np.ones(len(codes), bool) if is_open is None else is_open)
    return list(zip(found.rows.tolist(), found.nearer.tolist(), strict=True))


def test_images_nearer_to_another_class_are_doubtful() -> None:
    points = np.concatenate([directions(0, 10), directions(1, 10)])
    assert doubtful(points, [0] * 10 + [1] * 10) == []
    assert doubtful(points, [0] * 9 + [1] + [1] * 10) == [(9, 0)], "named as the other class"
    assert doubtful(points * 7, [0] * 9 + [1] + [1] * 10) == [(9, 0)], "lengths do not matter"
    mixed = np.arange(20) != 9
    assert doubtful(points, [0] * 9 + [1] + [1] * 10, mixed) == [], "an excluded image is no doubt"


def test_an_image_far_from_all_others_of_its_class_is_doubtful() -> None:
    points = np.concatenate([directions(0, 20), directions(3, 1)])
    assert doubtful(points, [0] * 21)[:1] == [(20, -1)], "also if there is no other class"
    both = np.concatenate([points, directions(1, 3)])
    assert doubtful(both, [5] * 21 + [7] * 3)[:1] == [(20, 7)], "the number of a class, not its place"


def test_an_image_does_not_pull_the_middle_of_its_own_class() -> None:
    angles = np.radians([0, 0, 50, 90, 90, 90])  # 50 degrees are nearer to 90; with itself the middle would be 16
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert doubtful(points, [0, 0, 0, 1, 1, 1]) == [(2, 1)]


def test_few_names_give_no_doubts() -> None:
    points = directions(0, 5)
    assert doubtful(points, [-1] * 5) == []
    assert doubtful(points, [0, 0, 1, -1, -1]) == []
    both = np.concatenate([directions(0, 3), directions(1, 2)])
    assert 3 not in dict(doubtful(both, [0, 0, 0, 1, 0])), "one image is no class"


def test_images_that_look_unlike_a_class_are_known_before_they_get_its_name() -> None:
    points = np.concatenate([directions(axis, count) for axis, count in ((0, 10), (1, 10), (0, 5), (1, 5), (2, 5))])
    codes = np.repeat([0, 1, -1], [10, 10, 15])
    new = np.arange(20, 35)
    assert unlike_rows(points, codes, new[:5], 0).tolist() == [], "they look like the class"
    assert unlike_rows(points, codes, new[5:10], 0).tolist() == new[5:10].tolist(), "nearer to another class"
    alone = np.where(codes == 1, -1, codes)
    assert unlike_rows(points, alone, new[10:], 0).tolist() == new[10:].tolist(), "far from the only class"
    assert unlike_rows(points * 7, codes, new, 0).tolist() == new[5:].tolist(), "lengths do not matter"
    again = np.where(np.isin(np.arange(35), new[10:]), 0, codes)
    assert unlike_rows(points, again, new[10:], 0).tolist() == new[10:].tolist(), "images never vouch for themselves"
    few = np.where(np.arange(35) < 8, -1, codes)
    assert unlike_rows(points, few, new[5:], 0).tolist() == [], "two images are no class to compare with"


def test_distances_count_in_spreads_of_the_class() -> None:
    turned = np.radians([-16, -8, 0, 8, 16, 40])
    wide, narrow = (np.stack([np.cos(angles), np.sin(angles)], axis=1) for angles in (2 * turned, turned / 4))
    for points, factor in ((wide, 2), (narrow, 0.25)):
        near, far = (np.radians(angle * factor) for angle in (16, 40))
        both = np.concatenate([points[:5], [[np.cos(angle), np.sin(angle)] for angle in (near, far)]])
        codes = np.array([0, 0, 0, 0, 0, -1, -1])
        assert unlike_rows(both, codes, np.array([5, 6]), 0).tolist() == [6], "as far as others is no doubt"


def test_a_slightly_nearer_class_is_no_doubt() -> None:
    def beside(angle: float) -> list[tuple[int, int]]:
        angles = np.radians([-24, -24, 0, 24, 24, 32, 40, 48, angle])
        points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return [found for found in doubtful(points, [0, 0, 0, 0, 0, 1, 1, 1, 0]) if found[0] == 8]

    assert beside(21) == [], "20 degrees are the middle between the classes"
    assert beside(30) == [(8, 1)]
