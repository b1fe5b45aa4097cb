"""Search in galleries: exactness, recall, filters and distances."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.numerics.galleries.literal import grouped, literal_nearest, literal_recall, squared_distances
from udml_core.base.errors import UserError
from udml_core.numerics.galleries import StoredGallery, build_gallery
from udml_core.numerics.galleries.build import EXACT_UP_TO, MOST_EXACT_BYTES, choose_kind
from udml_core.numerics.neighbors import build_index, search

COUNT = 20_000
QUERIES = grouped(100, seed=5)


@pytest.fixture(scope="module", params=["ivf", "ivf-pq"])
def listed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> StoredGallery:
    """A gallery with lists."""
    return build_gallery(grouped(COUNT), tmp_path_factory.mktemp("gallery") / request.param, kind=request.param)


@pytest.fixture(scope="module")
def flat(tmp_path_factory: pytest.TempPathFactory) -> StoredGallery:
    return build_gallery(grouped(COUNT), tmp_path_factory.mktemp("gallery") / "flat")


def test_the_kind_follows_from_the_size() -> None:
    assert choose_kind(EXACT_UP_TO, 4096) == "flat"
    most = MOST_EXACT_BYTES // 4 // 512
    assert choose_kind(EXACT_UP_TO + 1, 128) == choose_kind(most, 512) == "ivf"
    assert choose_kind(most + 1, 512) == "ivf-pq"


@pytest.mark.parametrize("queries", [QUERIES, QUERIES[:1]], ids=["100 queries", "1 query"])
@pytest.mark.parametrize("share", [None, 0.5, 0.001])
def test_a_flat_gallery_equals_the_exact_index_bit_by_bit(flat: StoredGallery, queries: np.ndarray, share: float | None
                                                          ) -> None:
    vectors = grouped(COUNT)
    allowed = None if share is None else np.random.default_rng(3).random(COUNT) < share
    distances, ids = flat.search(queries, 10, allowed)
    kept = np.arange(COUNT) if allowed is None else np.flatnonzero(allowed)
    expected, rows = search(build_index(vectors[kept]), queries, 10)
    np.testing.assert_array_equal(ids, kept[rows])
    np.testing.assert_array_equal(distances, expected)


@pytest.mark.slow
def test_the_default_search_reaches_the_recall_that_the_gallery_states(listed: StoredGallery) -> None:
    stated = listed.manifest.recall
    assert stated is not None
    assert stated.recall >= 0.95
    assert (stated.queries, stated.rows) == (250, COUNT)
    recall = literal_recall(listed.search(QUERIES, 10)[1], literal_nearest(QUERIES, grouped(COUNT), np.arange(COUNT),
                                                                           10))
    assert recall >= 0.95
    assert abs(recall - stated.recall) < 0.04


def test_a_search_visits_few_lists(listed: StoredGallery) -> None:
    assert listed.manifest.lists == 256
    assert listed.manifest.probes <= 32


def test_distances_are_those_to_the_found_vectors(listed: StoredGallery) -> None:
    distances, ids = listed.search(QUERIES, 10)
    literal = squared_distances(QUERIES, grouped(COUNT))
    np.testing.assert_allclose(distances, np.take_along_axis(literal, ids, axis=1), rtol=3e-3)
    assert (np.diff(distances, axis=1) >= 0).all()


def test_all_lists_give_the_exact_neighbors(listed: StoredGallery) -> None:
    truth = literal_nearest(QUERIES, grouped(COUNT), np.arange(COUNT), 10)
    everywhere = literal_recall(listed.search(QUERIES, 10, probes=256)[1], truth)
    assert everywhere >= (1 if listed.manifest.kind == "ivf" else 0.97)
    assert literal_recall(listed.search(QUERIES, 10, probes=1)[1], truth) < everywhere


@pytest.mark.parametrize("share", [0.2, 0.01])
def test_a_filter_keeps_the_recall(listed: StoredGallery, share: float) -> None:
    allowed = np.random.default_rng(4).random(COUNT) < share
    found = listed.search(QUERIES, 10, allowed)[1]
    assert allowed[found].all()
    kept = np.flatnonzero(allowed)
    assert literal_recall(found, literal_nearest(QUERIES, grouped(COUNT)[kept], kept, 10)) >= 0.95


def test_a_filter_of_distant_vectors_keeps_the_recall(listed: StoredGallery) -> None:
    """A class filter keeps vectors that are not in the lists around the query."""
    vectors = grouped(COUNT)
    distances = squared_distances(QUERIES[:1], vectors)[0]
    allowed = (distances > np.quantile(distances, 0.9)) & (np.arange(COUNT) % 2 == 0)
    kept = np.flatnonzero(allowed)
    found = listed.search(QUERIES[:1], 10, allowed)[1]
    assert literal_recall(found, literal_nearest(QUERIES[:1], vectors[kept], kept, 10)) >= 0.9


def test_a_filter_of_few_vectors_finds_them_all(listed: StoredGallery) -> None:
    allowed = np.zeros(500, np.bool_)  # shorter than the gallery: later ids are not searched
    allowed[[3, 44, 499]] = True
    distances, ids = listed.search(QUERIES[:7], 10, allowed)
    assert distances.shape == ids.shape == (7, 3)
    assert (np.sort(ids, axis=1) == [3, 44, 499]).all()
    assert listed.search(QUERIES[:7], 10, np.zeros(500, np.bool_))[1].shape == (7, 0)


def test_k_beyond_the_gallery_returns_every_vector(tmp_path: Path) -> None:
    gallery = build_gallery(grouped(300), tmp_path / "small", kind="ivf")
    assert (np.sort(gallery.search(QUERIES[:3], 1000)[1], axis=1) == np.arange(300)).all()


def test_ids_can_be_chosen(tmp_path: Path) -> None:
    ids = np.random.default_rng(0).permutation(2**31 - 1 - np.arange(300))
    gallery = build_gallery(grouped(300), tmp_path / "named", kind="ivf", ids=ids)
    assert gallery.search(grouped(300)[:20], 1)[1][:, 0].tolist() == ids[:20].tolist()
    np.testing.assert_array_equal(StoredGallery.open(gallery.folder).ids(), ids)


@pytest.mark.parametrize("dimension", [1, 5, 67])
def test_codes_divide_any_width(tmp_path: Path, dimension: int) -> None:
    vectors = grouped(2000, dimension)
    gallery = build_gallery(vectors, tmp_path / "wide", kind="ivf-pq")
    assert gallery.manifest.codes == -(-dimension // 4)
    truth = literal_nearest(vectors[:50], vectors, np.arange(2000), 10)
    distances, found = gallery.search(vectors[:50], 10)
    # float16 makes ties in one dimension, so distances are compared instead of ids.
    if dimension == 1:
        np.testing.assert_allclose(distances, np.sort(squared_distances(vectors[:50], vectors))[:, :10], atol=0.01)
    else:
        assert literal_recall(found, truth) >= 0.9


def test_large_values_are_stored_as_float32(tmp_path: Path) -> None:
    assert not build_gallery(1e6 * grouped(500), tmp_path / "large", kind="ivf-pq").manifest.half
    assert build_gallery(grouped(500), tmp_path / "usual", kind="ivf-pq").manifest.half


@pytest.mark.parametrize(("arguments", "message"), [
    ((QUERIES[:, :7], 10), "dimension 24; got 7"), ((np.full((1, 24), np.nan), 10), "finite"),
    ((np.full((1, 24), 1e30), 10), "finite"), ((np.array([["a"] * 24]), 10), "array of numbers"),
    ((QUERIES, 0), "at least 1, got 0"), ((QUERIES, 5, np.ones(3)), "mask of booleans")])
def test_unsuitable_queries_are_refused(flat: StoredGallery, arguments: tuple, message: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(UserError, match=message):
        flat.search(*arguments)
