"""The neighbor search of large galleries: exact when small, and nearly complete with exact distances when large."""

from __future__ import annotations

import numpy as np
import pytest

from udml_core.base.arrays import Array
from udml_core.data import catalog
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.refinement import Refiner
from udml_core.numerics.refinement import unit_neighbors as search_module
from udml_core.numerics.refinement.averaging import mean_with
from udml_core.numerics.refinement.linear import unit_rows, whitening
from udml_core.numerics.refinement.ranking_measures import retrieval_measures
from udml_core.numerics.refinement.unit_neighbors import nearest_unit

RECIPE = "whiten+average:k=20,times=2,alpha=3"


@pytest.fixture(scope="module")
def images() -> tuple[Array, Array]:
    """Return the pixels of 6,000 photographs of clothes as unit rows, and their classes."""
    dataset = catalog.load("fashion-mini")
    pixels = np.stack([np.asarray(image.convert("L"), np.float32).ravel() for image in dataset.images])
    return unit_rows(pixels), np.asarray(dataset.labels)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat 1,000 images as a large gallery; an exact search fails."""
    monkeypatch.setattr(search_module, "EXACT_BELOW", 1000)
    monkeypatch.setattr(search_module, "nearest", None)


@pytest.mark.parametrize(("count", "queries", "width", "k"), [(19_999, None, 256, 10), (20_000, 19_999, 256, 10),
                                                              (20_000, None, 255, 10), (20_000, None, 256, 501)])
def test_small_searches_are_exact(count: int, queries: int | None, width: int, k: int,
                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "largest_products", None)
    monkeypatch.setattr(search_module, "nearest", lambda rows, k, queries: (rows.shape, k, queries))
    rows = np.zeros((count, width), np.float32)
    asked = None if queries is None else rows[:queries]
    assert nearest_unit(rows, k, asked) == ((count, width), k, asked)


@pytest.mark.slow
@pytest.mark.parametrize("k", [5, 20, 200])
@pytest.mark.parametrize("steps", ["", "whiten", "whiten+average"])
@pytest.mark.usefixtures("large")
def test_99_of_100_neighbors_of_real_features_are_found(images: tuple[Array, Array], k: int, steps: str) -> None:
    rows = images[0]
    if "whiten" in steps:
        rows = whitening(rows)(rows)
    if "average" in steps:
        rows = mean_with(rows, rows, nearest(rows, 20)[1], 3.0)
    exact, found = nearest(rows, k)[1], nearest_unit(rows, k)[1]
    recall = np.mean([np.isin(true, list_).mean() for true, list_ in zip(exact, found, strict=True)])
    assert recall > 0.99


@pytest.mark.usefixtures("large")
def test_distances_are_exact_ascending_and_never_of_the_query_itself(images: tuple[Array, Array]) -> None:
    rows = np.concatenate([images[0][:1500], images[0][:200]])  # the last 200 images occur twice
    distances, indices = nearest_unit(rows, 15)
    expected = ((rows[:, None] - rows[indices]) ** 2).sum(axis=2)
    np.testing.assert_allclose(distances, expected, atol=1e-5)
    assert (np.diff(distances, axis=1) >= 0).all()
    assert (indices != np.arange(1700)[:, None]).all()
    np.testing.assert_array_equal(indices[:200, 0], np.arange(1500, 1700))


@pytest.mark.usefixtures("large")
def test_many_queries_are_not_excluded_from_their_own_lists(images: tuple[Array, Array]) -> None:
    rows = images[0][:2000]
    np.testing.assert_array_equal(nearest_unit(rows, 3, rows[:1200])[1][:, 0], np.arange(1200))


@pytest.mark.slow
def test_the_measures_of_a_recipe_change_by_less_than_a_fifth_of_a_point(
        images: tuple[Array, Array], monkeypatch: pytest.MonkeyPatch) -> None:
    rows, labels = images[0][::3], images[1][::3]
    exact = retrieval_measures(Refiner(RECIPE).fit(rows).neighbors(199).indices, labels, labels, inside=True)
    monkeypatch.setattr(search_module, "EXACT_BELOW", 1000)
    monkeypatch.setattr(search_module, "nearest", None)
    fast = retrieval_measures(Refiner(RECIPE).fit(rows).neighbors(199).indices, labels, labels, inside=True)
    assert fast["map@r"] == pytest.approx(exact["map@r"], abs=0.2)
    assert fast["recall@1"] == pytest.approx(exact["recall@1"], abs=0.2)
