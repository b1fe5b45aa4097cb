"""Search: comparison with brute force, several query images, filters, failures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.running import worked
from udml_core.base.errors import UserError
from udml_core.data.features import features_path
from udml_core.data.given.exclusions import exclude, undo
from udml_core.data.inference import embed_pixels
from udml_core.methods import Embedder
from udml_core.numerics.evaluation import recall_at_k
from udml_core.runs import Run
from udml_core.runs.search import Query, Retrieval
from udml_core.runs.tasks import Status


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    fields = {"dimension": 16, "epochs": 2, "steps": 3, "unit_length": True}
    return worked(tmp_path_factory.mktemp("runs"), fields=fields)


@pytest.mark.parametrize("which", ["initial", "final"])
@pytest.mark.parametrize("gallery", ["test", "all"])
def test_search_equals_brute_force_without_the_query_image(run: Run, which: str, gallery: str) -> None:
    opened = Retrieval(run)
    embeddings = np.asarray(run.embeddings(which)).astype(np.float64)  # type: ignore[arg-type]
    allowed = opened.split.test if gallery == "test" else np.arange(len(opened.dataset))
    for query in (int(opened.split.test[5]), int(opened.split.train[5])):
        similarity = embeddings[allowed] @ embeddings[query]
        similarity[allowed == query] = -2
        expected = np.sort(similarity)[::-1][:7]
        hits = opened.search_item(query, 7, which, gallery)  # type: ignore[arg-type]
        assert [hit.rank for hit in hits] == list(range(1, 8))
        assert query not in [hit.index for hit in hits]
        np.testing.assert_allclose([hit.similarity for hit in hits], expected, atol=1e-5)
        labels = np.asarray(opened.dataset.labels)
        assert [hit.correct for hit in hits] == [labels[hit.index] == labels[query] for hit in hits]


def test_all_images_are_searched_by_default_and_the_number_is_said(run: Run) -> None:
    opened = Retrieval(run)
    count, test = len(opened.dataset), opened.split.test
    query = int(opened.split.train[5])
    assert len(opened.search_item(query, 10_000)) == count - 1
    assert len(opened.search_image(opened.dataset.images[query], 10_000)) == count
    assert {hit.index for hit in opened.search_item(query, 10_000, gallery="test")} == set(test.tolist())
    allowed = np.arange(count) % 2 == 0
    assert opened.describe_searched() == f"{count:,} of {count:,} images searched (training half included)"
    assert opened.describe_searched("final", "test") == f"{len(test):,} of {count:,} images searched (test half)"
    assert opened.describe_searched("final", "test", allowed) == (
        f"{allowed[test].sum():,} of {count:,} images searched (test half, filtered)")


def test_every_stored_embedding_equals_brute_force(run: Run) -> None:
    opened = Retrieval(run)
    features = np.load(features_path(opened.dataset, run.spec().encoder)).astype(np.float64)
    everything = np.arange(len(opened.dataset))
    sample = run.sample_indices()
    expected = {"frozen": (features / np.linalg.norm(features, axis=1, keepdims=True), everything),
                "initial": (np.asarray(run.embeddings("initial")), everything),
                "final": (np.asarray(run.embeddings("final")), everything),
                "1": (run.epoch_sample(1), sample), "2": (run.epoch_sample(2), sample)}
    assert opened.frames.names() == list(expected)
    row = 7
    for name, (rows, indices) in expected.items():
        query = int(sample[row])
        similarity = rows.astype(np.float64) @ rows[np.searchsorted(indices, query)].astype(np.float64)
        similarity[indices == query] = -2
        hits = opened.search(Query((query,)), 9, name)
        np.testing.assert_allclose([hit.similarity for hit in hits], np.sort(similarity)[::-1][:9], atol=1e-5)
        assert {hit.index for hit in hits} <= set(indices.tolist())
    hits = opened.search(Query((int(sample[3]), int(sample[9])), (int(sample[20]),)), 4, "1")
    rows = run.epoch_sample(1).astype(np.float64)
    similarity = rows @ ((rows[3] + rows[9]) / 2 - rows[20])
    similarity[[3, 9, 20]] = -9
    assert hits[0].index == sample[similarity.argmax()]


def test_an_epoch_searches_its_sample_and_says_what_it_lacks(run: Run) -> None:
    opened = Retrieval(run)
    sample = run.sample_indices()
    assert opened.describe_searched("1") == (
        f"{len(sample):,} of {len(opened.dataset):,} images searched (fixed sample of the test half)")
    with pytest.raises(UserError, match="has no embedding of epoch 1: epochs keep a fixed sample"):
        opened.search_item(int(opened.split.train[0]), which="1")
    with pytest.raises(UserError, match="cannot be embedded as in epoch 2"):
        opened.embed(opened.dataset.images[0], "2")
    with pytest.raises(UserError, match=r"has no embedding '7'. Choose one of frozen, initial, final, 1, 2"):
        opened.frame("7")


def test_training_is_compared_with_features_that_it_did_not_change(
        run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Retrieval(run).frame("frozen").rows
    assert Retrieval(run).before == "frozen"
    monkeypatch.setenv("UDML_CACHE", str(tmp_path))
    without = Retrieval(run)
    assert without.before == "frozen", "tiny pixels are read in a moment"
    np.testing.assert_allclose(without.frame("frozen").rows, rows, atol=1e-6)
    stored = features_path(run.dataset(), run.spec().encoder)
    assert stored.is_relative_to(tmp_path)
    assert not stored.exists()
    with monkeypatch.context() as context:
        context.setattr("udml_core.runs.search.retrieval.MOST_VALUES", rows.size - 1)
        assert Retrieval(run).before == "initial", "wide features of many images stay on the disk"
    stored.parent.mkdir(parents=True, exist_ok=True)
    stored.write_bytes(b"damaged")
    assert Retrieval(run).before == "initial"


def test_an_own_image_has_its_frozen_embedding(run: Run) -> None:
    opened = Retrieval(run)
    first, *_ = opened.search_image(opened.dataset.images[12], 1, "frozen")
    assert (first.index, first.similarity) == (12, pytest.approx(1, abs=1e-5))


def test_only_training_that_changes_the_embedding_counts_as_a_change(run: Run, tmp_path: Path) -> None:
    assert Retrieval(run).is_changed
    assert not Retrieval(worked(tmp_path, method="frozen")).is_changed


def test_a_copy_of_an_image_retrieves_that_image_first(run: Run) -> None:
    opened = Retrieval(run)
    first, *_ = opened.search_image(opened.dataset.images[12], 3, "final", "all")
    assert first.index == 12
    assert first.similarity == pytest.approx(1, abs=1e-5)
    assert first.correct is None


@pytest.mark.slow
@pytest.mark.parametrize(("method", "fields"), [
    ("pca", {"dimension": 8}), ("pca", {"dimension": 8, "unit_length": False}),
    ("plm", {"dimension": 8, "epochs": 1, "proxies": 5, "learning_rate": 0.01})])
def test_a_new_image_is_embedded_with_the_mean_and_the_bias_of_its_run(
        method: str, fields: dict[str, Any], tmp_path: Path) -> None:
    run = worked(tmp_path, method=method, fields=fields)
    opened = Retrieval(run)
    for which in ("initial", "final"):
        stored = np.asarray(run.embeddings(which))[12]  # type: ignore[arg-type]
        embedded = opened.embed(opened.dataset.images[12], which)  # type: ignore[arg-type]
        np.testing.assert_allclose(embedded, stored, atol=1e-5)
    embedder = Embedder.load(run.embedder_path)
    weight, offset, bias = (value.double().numpy() if value is not None else 0.0
                            for value in (embedder.head.weight, embedder.head.offset, embedder.head.bias))
    assert (np.any(offset), np.any(bias)) == (method == "pca", method == "plm")
    feature = embed_pixels(embedder.encoder, opened.prepared(opened.dataset.images[12])[None])[0].astype(np.float64)
    expected = (feature / np.linalg.norm(feature) - offset) @ weight + bias
    length = np.linalg.norm(expected) if fields.get("unit_length", True) else 1.0
    np.testing.assert_allclose(np.asarray(run.embeddings("final"))[12], expected / length, atol=1e-5)


def test_an_unknown_index_and_an_unfinished_run_are_rejected(run: Run) -> None:
    with pytest.raises(UserError, match="between 0 and 1796, got 5000"):
        Retrieval(run).search_item(5000)
    status = run.stored_status()
    try:
        run.write_status(Status(state="stopped"))
        with pytest.raises(UserError, match=r"as soon as it has embedded all images, and .* is stopped. Resume it"):
            Retrieval(run)
    finally:
        run.write_status(status)


def test_added_and_subtracted_images_count_by_their_means(run: Run) -> None:
    opened = Retrieval(run)
    embeddings = np.asarray(run.embeddings("final")).astype(np.float64)
    uploaded = opened.embed(opened.dataset.images[40], "final")
    add, subtract = (3, 11, uploaded), (700, 701)
    vector = embeddings[[3, 11, 40]].mean(axis=0) - embeddings[[700, 701]].mean(axis=0)
    similarity = embeddings @ (vector / np.linalg.norm(vector))
    similarity[[3, 11, 700, 701]] = -2
    hits = opened.search(Query(add, subtract), 12, gallery="all")
    assert not {hit.index for hit in hits} & {3, 11, 700, 701}
    np.testing.assert_allclose([hit.similarity for hit in hits], np.sort(similarity)[::-1][:12], atol=1e-5)


def test_hits_are_correct_or_not_only_if_the_added_images_share_a_class(run: Run) -> None:
    opened = Retrieval(run)
    labels = np.asarray(opened.dataset.labels)
    threes, fives = (np.flatnonzero(labels == label)[:2].tolist() for label in (3, 5))
    hits = opened.search(Query(tuple(threes), tuple(fives)), 5)
    assert [hit.correct for hit in hits] == [labels[hit.index] == 3 for hit in hits]
    uploaded = opened.embed(opened.dataset.images[0])
    for add in ((threes[0], fives[0]), (threes[0], uploaded), (uploaded,)):
        assert {hit.correct for hit in opened.search(Query(add), 5)} == {None}


@pytest.mark.parametrize("gallery", ["test", "all"])
def test_only_allowed_images_are_retrieved(run: Run, gallery: str) -> None:
    opened = Retrieval(run)
    allowed = np.asarray(opened.dataset.labels) == 8
    eights = np.flatnonzero(allowed)
    expected = np.intersect1d(eights, opened.split.test) if gallery == "test" else eights
    hits = opened.search(Query((0,)), 10_000, "final", gallery, allowed)  # type: ignore[arg-type]
    assert sorted(hit.index for hit in hits) == expected.tolist()
    assert opened.search(Query((0,)), 5, "final", gallery, np.zeros(len(allowed), dtype=bool)) == []  # type: ignore[arg-type]
    assert np.array_equal(allowed, np.asarray(opened.dataset.labels) == 8), "the mask of the caller must not change"


def test_queries_without_a_direction_are_rejected(run: Run) -> None:
    opened = Retrieval(run)
    with pytest.raises(UserError, match="at least one image to add, got none"):
        opened.search(Query((), (4,)))
    with pytest.raises(UserError, match="cancel each other out"):
        opened.search(Query((4,), (4,)))
    with pytest.raises(UserError, match="between 0 and 1796, got -1"):
        opened.search(Query((4,), (-1,)))


@pytest.mark.parametrize("which", ["initial", "final"])
def test_the_failure_atlas_covers_the_test_half_and_agrees_with_recall(run: Run, which: str) -> None:
    opened = Retrieval(run)
    shares: list[float] = []
    atlas = opened.atlas(which, lambda share, _phase: shares.append(share))  # type: ignore[arg-type]
    test = opened.split.test
    assert np.array_equal(atlas.queries, test)
    embeddings = np.asarray(run.embeddings(which)[test])  # type: ignore[arg-type]
    assert atlas.recall == pytest.approx(recall_at_k(embeddings, np.asarray(opened.dataset.labels)[test], (1,))[1])
    assert shares[-1] == 1
    assert opened.atlas(which) is atlas  # type: ignore[arg-type]
    for row in (0, 7, 99):
        first, *_ = opened.search_item(int(test[row]), 1, which, "test")
        assert first.index == atlas.nearest[row]


def test_images_excluded_since_the_run_are_no_failures_until_they_are_included(run: Run) -> None:
    opened = Retrieval(run)
    whole = opened.atlas()
    gone = [int(whole.queries[0]), int(whole.nearest[1])]
    exclude(opened.dataset, gone)
    try:
        rest = opened.atlas()
        assert np.array_equal(rest.queries, np.setdiff1d(whole.queries, gone))
        assert not np.isin(rest.nearest, gone).any()
    finally:
        undo(opened.dataset)
    assert np.array_equal(opened.atlas().queries, whole.queries)


def test_the_history_agrees_with_the_atlas_if_the_sample_is_the_test_half(run: Run) -> None:
    opened = Retrieval(run)
    history, test = opened.history(), opened.split.test
    assert history.epochs == (0, 1, 2)
    assert np.array_equal(history.indices, test)
    assert history.hits is not None
    for row, which in ((0, "initial"), (-1, "final")):
        atlas = opened.atlas(which)  # type: ignore[arg-type]
        assert (history.hits[row] == ~atlas.misses).mean() > 0.995  # batches of different sizes may break ties


@pytest.fixture(scope="module")
def by_distance(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run whose embeddings do not have unit length."""
    return worked(tmp_path_factory.mktemp("runs"), method="nml", fields={"dimension": 8, "epochs": 1})


def test_without_unit_length_hits_show_the_distance(by_distance: Run, run: Run) -> None:
    opened = Retrieval(by_distance)
    embeddings = np.asarray(by_distance.embeddings("final")).astype(np.float64)
    query = int(opened.split.test[5])
    distances = np.linalg.norm(embeddings - embeddings[query], axis=1)
    hits = opened.search_item(query, 6)
    np.testing.assert_allclose([hit.distance for hit in hits], np.sort(distances)[1:7], rtol=1e-3)
    assert [hit.shown for hit in hits] == [hit.distance for hit in hits]
    assert {hit.similarity for hit in hits} == {None}
    first, *_ = opened.search_image(opened.dataset.images[12], 3, "final", "all")
    assert (first.index, first.shown) == (12, pytest.approx(0, abs=1e-4))
    for hit in Retrieval(run).search_item(query, 6):
        assert hit.shown == hit.similarity == pytest.approx(1 - hit.distance**2 / 2, abs=1e-6)


def test_without_unit_length_a_difference_moves_from_the_mean_of_all_images(by_distance: Run) -> None:
    opened = Retrieval(by_distance)
    embeddings = np.asarray(by_distance.embeddings("final")).astype(np.float64)
    vector = embeddings[[3, 11]].mean(axis=0) - embeddings[700] + embeddings.mean(axis=0)
    distances = np.linalg.norm(embeddings - vector, axis=1)
    distances[[3, 11, 700]] = np.inf
    hits = opened.search(Query((3, 11), (700,)), 9, gallery="all")
    np.testing.assert_allclose([hit.distance for hit in hits], np.sort(distances)[:9], rtol=1e-3)
    with pytest.raises(UserError, match="cancel each other out"):
        opened.search(Query((4,), (4,)))
