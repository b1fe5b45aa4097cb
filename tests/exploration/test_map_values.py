"""Columns of a map, compared with naive loops."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from udml_core.exploration import map_values
from udml_core.numerics.neighbors import nearest


@pytest.fixture(scope="module")
def neighbors() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    points, labels = load_digits(return_X_y=True)
    return nearest(points[:400], 10)[1], nearest(points[:400, ::3], 10)[1], labels[:400]


def test_purity_and_kept_neighbors_equal_a_loop(neighbors) -> None:  # type: ignore[no-untyped-def]
    before, after, labels = neighbors
    purity, kept = map_values.neighbor_purity(before, labels), map_values.neighbors_kept(before, after)
    for point in range(0, 400, 13):
        assert purity[point] == pytest.approx(np.mean([labels[other] == labels[point] for other in before[point]]))
        assert kept[point] == pytest.approx(len(set(before[point]) & set(after[point])) / 10)


def test_change_compares_images_instead_of_rows(neighbors) -> None:  # type: ignore[no-untyped-def]
    before, after, _ = neighbors
    ids = np.arange(400) * 7
    change = map_values.neighborhood_change((ids, before), (ids, after))
    np.testing.assert_allclose(change.kept, map_values.neighbors_kept(before, after))
    assert change.kept[change.most_changed(5)].max() <= np.sort(change.kept)[4]
    shifted = map_values.neighborhood_change((ids, before), (ids + 7, before))
    assert shifted.indices.tolist() == ids[1:].tolist()


def test_kept_neighbors_are_renumbered_and_others_marked() -> None:
    kept = np.array([True, False, True, True])
    np.testing.assert_array_equal(map_values.keep_neighbors(np.array([[1, 2], [0, 3], [3, 0], [2, 1]]), kept),
                                  [[-1, 1], [2, 0], [1, -1]])
