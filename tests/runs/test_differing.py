"""Queries for which two embeddings differ: the same as one search each finds, in every kind of embedding."""

from __future__ import annotations

import dataclasses
import typing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.running import worked
from tests.tiers import fast_first
from udml_core.base.errors import UserError
from udml_core.numerics.galleries import build_gallery
from udml_core.numerics.neighbors import nearest
from udml_core.runs import Run
from udml_core.runs.analyses import plan_analysis
from udml_core.runs.search import Query, Retrieval, differing
from udml_core.runs.search.differing import Comparison, Results, Side, compare
from udml_core.runs.search.frame import StoredIndex
from udml_core.runs.search.judging import Judging
from udml_core.work.workers.analyse import keep


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    """Two runs on the digits that differ in the seed."""
    root = tmp_path_factory.mktemp("runs")
    return worked(root), worked(root, seed=1)


@pytest.fixture(scope="module")
def retrieval(runs: tuple[Run, Run]) -> Retrieval:
    return Retrieval(runs[0])


def refined(run: Run, recipe: str) -> str:
    """Return the name of a refinement."""
    return keep(run, plan_analysis(kind="refine", recipe=recipe), lambda _share, _step: None).id


def searched_nearest(side: Side, query: int, shared: np.ndarray) -> int:
    """Return the nearest image that a search finds."""
    return side.retrieval.search(Query((query,)), 1, side.frame, "all", shared)[0].index


def check(comparison: Comparison, sides: tuple[Side, Side], shared: np.ndarray, every: int = 7) -> None:
    """Compare some queries with a search for each of them."""
    asked = np.flatnonzero(shared)[::every].tolist()
    found = {query: tuple(searched_nearest(side, query, shared) for side in sides) for query in asked}
    expected = {query: pair for query, pair in found.items() if pair[0] != pair[1]}
    known = dict(zip(comparison.differing.tolist(), map(tuple, comparison.candidates.tolist()), strict=True))
    assert {query: known[query] for query in known if query in asked} == expected
    assert expected


@pytest.mark.parametrize(("recipe", "gallery"), fast_first([
    ("whiten+average:k=5", "test"), ("whiten+average:k=5", "all"), ("rerank:k1=12", "test"), ("average:k=5", "test")]))
def test_a_refinement_differs_where_a_search_in_it_differs(recipe: str, gallery: str, retrieval: Retrieval) -> None:
    sides = Side(retrieval, "final"), Side(retrieval, refined(retrieval.run, recipe))
    comparison = compare(*sides, gallery)  # type: ignore[arg-type]
    shared = np.isin(np.arange(len(retrieval.dataset)), retrieval.split.test)  # the refinement has no other images
    assert (comparison.images, comparison.queries) == (shared.sum(), shared.sum())
    check(comparison, sides, shared)


def test_two_runs_differ_where_their_searches_differ_and_an_embedding_never_differs_from_itself(
        runs: tuple[Run, Run], retrieval: Retrieval) -> None:
    sides = Side(retrieval, "final"), Side(Retrieval(runs[1], retrieval.dataset), "final")
    comparison = compare(*sides, "all")
    check(comparison, sides, np.ones(len(retrieval.dataset), bool), every=40)
    exchanged = compare(*sides[::-1], "all")
    assert exchanged.key == comparison.key
    np.testing.assert_array_equal(exchanged.differing, comparison.differing)
    np.testing.assert_array_equal(exchanged.candidates, comparison.candidates[:, ::-1])
    assert compare(sides[0], sides[1], "test").key != comparison.key
    itself = compare(sides[0], sides[0])
    assert (len(itself.differing), itself.queries) == (0, len(retrieval.split.test))


def test_no_label_changes_what_is_asked(runs: tuple[Run, Run], retrieval: Retrieval) -> None:
    dataset = retrieval.dataset
    assert dataset.labels is not None
    for results in typing.get_args(Results):
        asked = []
        for labels in (dataset.labels, None, np.random.default_rng(0).permutation(dataset.labels)):
            poisoned = dataclasses.replace(dataset, labels=labels)
            comparison = compare(*(Side(Retrieval(run, poisoned), "final") for run in runs), "all", results)
            question = Judging(comparison).question()
            assert question is not None
            asked.append((comparison.key, comparison.differing.tolist(), comparison.candidates.tolist(),
                          question.query, question.left, question.right))
        assert asked[1:] == asked[:1] * 2, results


def test_an_image_that_one_run_excludes_is_neither_query_nor_candidate(runs: tuple[Run, Run], retrieval: Retrieval,
                                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    other = Retrieval(runs[1], retrieval.dataset)
    before = compare(Side(retrieval, "final"), Side(other, "final"))
    excluded = np.unique([*before.differing[:9], *before.candidates[:9, 0]])
    monkeypatch.setitem(other.__dict__, "split", other.split.without(excluded))
    sides = Side(retrieval, "final"), Side(other, "final")
    after = compare(*sides)
    assert after.images == before.images - len(excluded)
    assert not np.isin([*after.differing, *after.candidates.ravel()], excluded).any()
    shared = np.setdiff1d(retrieval.split.test, excluded)
    check(after, sides, np.isin(np.arange(len(retrieval.dataset)), shared))


def test_few_queries_are_drawn_from_many(retrieval: Retrieval, monkeypatch: pytest.MonkeyPatch) -> None:
    sides = Side(retrieval, "initial"), Side(retrieval, "final")
    everything = compare(*sides)
    monkeypatch.setattr(differing, "MOST_QUERIES", 100)
    some = compare(*sides)
    assert (some.images, some.queries) == (everything.images, 100)
    count = len(some.differing)
    assert 0 < count < 100
    np.testing.assert_array_equal(some.differing, everything.differing[:count])


def test_a_large_gallery_finds_what_the_exact_search_finds(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(400, 6)).astype(np.float32)
    rows[7] = rows[3]  # a duplicate may displace the query from its own ranking
    gallery = build_gallery(rows, tmp_path / "gallery")
    indices, candidates = np.arange(400), np.arange(400) % 3 != 1
    index = StoredIndex("", rows, indices, False, gallery, lambda: None, "")  # type: ignore[arg-type,return-value]
    queries, kept = np.flatnonzero(candidates)[::-1], np.flatnonzero(candidates)
    expected = kept[nearest(rows[kept], 1)[1][::-1, 0]]
    found = index.nearest_each(queries, candidates)
    np.testing.assert_allclose(((rows[found] - rows[queries]) ** 2).sum(axis=1),
                               ((rows[expected] - rows[queries]) ** 2).sum(axis=1), atol=1e-5)
    assert (found != queries).all()


@pytest.mark.parametrize(("change", "message"), [({"fingerprint": "other"}, "must be of the same images"),
                                                 ({"split": "zero-shot"}, "Search all images")], ids=["set", "split"])
def test_embeddings_of_different_images_are_refused(change: dict[str, str], message: str, runs: tuple[Run, Run],
                                                    retrieval: Retrieval) -> None:
    other = Retrieval(runs[1], retrieval.dataset)
    other.spec = other.spec.model_copy(update=change)
    with pytest.raises(UserError, match=message):
        compare(Side(retrieval, "final"), Side(other, "final"))


@pytest.mark.parametrize("recipe", fast_first(["whiten+average:k=5", "rerank:k1=12"]))
def test_the_first_ten_differ_where_the_searches_find_other_images(recipe: str, retrieval: Retrieval) -> None:
    sides = Side(retrieval, "final"), Side(retrieval, refined(retrieval.run, recipe))
    comparison = compare(*sides, results="ten")
    shared = np.isin(np.arange(len(retrieval.dataset)), retrieval.split.test)
    asked = np.flatnonzero(shared)[::9].tolist()
    found = {query: [[hit.index for hit in side.retrieval.search(Query((query,)), 10, side.frame, "all", shared)]
                     for side in sides] for query in asked}
    known = dict(zip(comparison.differing.tolist(), comparison.candidates.tolist(), strict=True))
    expected = {query: rows for query, rows in found.items() if set(rows[0]) != set(rows[1])}
    assert {query: rows for query, rows in known.items() if query in asked} == expected
    assert 0 < len(expected) < len(asked) or recipe != "whiten+average:k=5"
    assert comparison.key != compare(*sides).key


def test_groups_differ_within_as_many_results_as_a_typical_group_has(retrieval: Retrieval) -> None:
    sides = Side(retrieval, "final"), Side(retrieval, refined(retrieval.run, "whiten+average:k=5"))
    comparison, turned = compare(*sides, results="group"), compare(*sides[::-1], results="group")
    size = differing.group_size(sides[0])
    assert size == differing.LARGEST, "about 90 test images show the same digit"
    assert comparison.candidates.shape[1:] == (2, size)
    assert compare(*sides, results="group", group=25).candidates.shape[1:] == (2, 25), "as a race found"
    assert compare(*sides, results="group", group=900).candidates.shape[1:] == (2, differing.LARGEST)
    assert comparison.key == turned.key
    assert comparison.differing.tolist() == turned.differing.tolist()
    shown = [comparison.options(position) for position in range(9)]
    assert [turned.options(position)[::-1] for position in range(9)] == shown
    shared = np.isin(np.arange(len(retrieval.dataset)), retrieval.split.test)
    query = int(comparison.differing[0])
    nearest = [hit.index for hit in retrieval.search(Query((query,)), size, "final", "all", shared)]
    assert comparison.candidates[0, 0].tolist() == nearest


def test_a_group_is_as_long_as_the_shorter_ranking_of_each_query(
        retrieval: Retrieval, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of three images are not searched, so that a stored ranking holds about 33 of its 100."""
    sides = Side(retrieval, "final"), Side(retrieval, refined(retrieval.run, "average:k=5"))
    searched = np.zeros(len(retrieval.dataset), bool)
    searched[retrieval.split.test[::3]] = True
    monkeypatch.setattr(retrieval, "searched", lambda *_: searched)
    monkeypatch.setattr(differing.Query, "__init__", lambda *_: pytest.fail("a query is searched by itself"))
    count = compare(*sides, results="group").candidates.shape[-1]
    assert differing.TEN < count < differing.group_size(sides[0])


@pytest.mark.parametrize(("planted", "size"), [(12, 10), (20, 20), (40, 40), (300, 80)])
def test_the_size_of_a_group_follows_planted_groups_in_steps(planted: int, size: int) -> None:
    random = np.random.default_rng(0)
    centers = np.repeat(random.normal(size=(1200 // planted, 32)), planted, axis=0)
    rows = (centers + 0.15 * random.normal(size=centers.shape)).astype(np.float32)
    frame = SimpleNamespace(rows=rows)
    side = SimpleNamespace(retrieval=SimpleNamespace(frame=lambda _: frame), frame="final")
    assert differing.group_size(side) == size  # type: ignore[arg-type]


def test_stored_rankings_that_end_early_are_searched_again(retrieval: Retrieval) -> None:
    """Only every fifth image is searched, so that a stored ranking holds fewer than ten of them."""
    side = Side(retrieval, refined(retrieval.run, "average:k=5"))
    searched = np.zeros(len(retrieval.dataset), bool)
    searched[retrieval.split.test[::12]] = True
    queries = np.flatnonzero(searched)[:6]
    own = np.arange(len(searched))
    ten = differing.first_results(retrieval.frame(side.frame).index, queries, searched, own)
    for query, row in zip(queries.tolist(), ten.tolist(), strict=True):
        hits = side.retrieval.search(Query((query,)), 10, side.frame, "all", searched)
        assert row == [hit.index for hit in hits]
    few = searched & (np.cumsum(searched) <= 4)
    assert differing.first_results(retrieval.frame("final").index, np.flatnonzero(few), few, own).shape == (4, 3)
