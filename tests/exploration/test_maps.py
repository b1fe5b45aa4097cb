"""Columns of a map, beside naive loops."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from udml_core.exploration import maps as views
from udml_core.neighbors import nearest


@pytest.fixture(scope="module")
def neighbors() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    points, labels = load_digits(return_X_y=True)
    return nearest(points[:400], 10)[1], nearest(points[:400, ::3], 10)[1], labels[:400]


def test_purity_and_kept_neighbors_are_counted(neighbors) -> None:  # type: ignore[no-untyped-def]
    before, after, labels = neighbors
    purity, kept = views.neighbor_purity(before, labels), views.neighbors_kept(before, after)
    for point in range(0, 400, 13):
        assert purity[point] == pytest.approx(np.mean([labels[one] == labels[point] for one in before[point]]))
        assert kept[point] == pytest.approx(len(set(before[point]) & set(after[point])) / 10)


def test_change_compares_images_and_not_rows(neighbors) -> None:  # type: ignore[no-untyped-def]
    before, after, _ = neighbors
    ids = np.arange(400) * 7
    whole = views.neighborhood_change((ids, before), (ids, after))
    np.testing.assert_allclose(whole.kept, views.neighbors_kept(before, after))
    assert whole.kept[whole.most(5)].max() <= np.sort(whole.kept)[4]
    shifted = views.neighborhood_change((ids, before), (ids + 7, before))
    assert shifted.indices.tolist() == ids[1:].tolist()
