"""Where "the same" ends in an embedding of a run: its population, its plan, and what serves other embeddings."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from tests.running import worked, write_digits
from tests.tiers import fast_first
from udml_core.base.errors import UserError
from udml_core.data.given.judged_pairs import judged_pairs, want_precision
from udml_core.numerics.galleries import StoredGallery, build_gallery
from udml_core.numerics.same_pairs import OPEN
from udml_core.runs import ExclusionList, Run
from udml_core.runs.analyses import plan_analysis
from udml_core.runs.search import Retrieval
from udml_core.runs.search.frame import StoredIndex
from udml_core.runs.search.same import (
    SamePairs,
    _plan_path,
    has_plan,
    interval,
    open_same_pairs,
    percent,
    same_threshold,
)
from udml_core.work.workers.analyse import keep


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run of RPML on the digits, in a cache of its own."""
    trained = worked(tmp_path / "runs")
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    return trained


def judge(retrieval: Retrieval, count: int, name: str = "final", target: float = 0.8) -> SamePairs:
    """Judge pairs by the labels, which stand in for the user, and return the result."""
    labels = retrieval.dataset.labels
    assert labels is not None
    for _ in range(count):
        pair = open_same_pairs(retrieval, name, target).next()
        assert pair is not None
        judged_pairs(retrieval.dataset).add(*pair, bool(labels[pair[0]] == labels[pair[1]]))
    return open_same_pairs(retrieval, name, target)


@pytest.mark.parametrize("name", fast_first(["final", "initial", "1"]))
def test_the_population_is_each_image_with_its_50_nearest(run: Run, name: str) -> None:
    excluded = ExclusionList.of([run.dataset().names[index] for index in (3, 4, 500)])
    (run.folder / "spec.json").write_text(run.spec().model_copy(update={"excluded": excluded}).model_dump_json())
    retrieval = Retrieval(run)
    frame, plan = retrieval.frame(name), open_same_pairs(retrieval, name).plan
    kept = ~np.isin(frame.indices, [3, 4, 500])
    rows, images = np.asarray(frame.rows)[kept], frame.indices[kept]
    distances, neighbors = NearestNeighbors(n_neighbors=51).fit(rows).kneighbors(rows)
    expected = {tuple(sorted((image, int(images[other])))): distance
                for image, others, far in zip(images.tolist(), neighbors, distances, strict=True)
                for other, distance in zip(others, far, strict=True) if images[other] != image}
    assert plan.sizes.sum() == pytest.approx(len(expected), rel=1e-3)  # ties at the 50th neighbor
    shared = [expected.get(tuple(pair)) for pair in plan.pairs.tolist()]
    assert sum(distance is None for distance in shared) <= 3
    np.testing.assert_allclose([distance or at for distance, at in zip(shared, plan.distances, strict=True)],
                               plan.distances, atol=2e-3)


def test_the_number_of_judgments_left_is_told_from_ten_on_while_nothing_else_can_be_told(run: Run) -> None:
    retrieval = Retrieval(run)
    assert "9 of 10 pairs count for this search so far" in judge(retrieval, 9, target=0.99).sentence
    judged = judge(retrieval, 1, target=0.99)
    assert judged.threshold is None
    found = re.fullmatch(r"Cannot tell yet: (about|more than) (\d+) judgments are left for a precision of 99 %"
                         r"(, and fewer for a lower precision)?\. 10 pairs judged\.", judged.sentence)
    assert found is not None, "one sentence, without figures of a share that would tell nothing"
    assert int(found[2]) % 10 == 0
    before = int(found[2])
    again = re.search(r"(\d+) judgments are left", judge(retrieval, 1, target=0.99).sentence)
    assert again is not None
    assert int(again[1]) == before - 1, "each answer counts down"


def test_results_up_to_the_threshold_count_as_the_same(run: Run) -> None:
    retrieval = Retrieval(run)
    judged = judge(retrieval, 60)
    threshold = judged.threshold
    assert threshold is not None
    assert (threshold.measure, threshold.similarity) == ("distance", None)
    for query in (5, 60, 900):
        hits = retrieval.search_item(query, 50)
        marks = [threshold.holds(hit) for hit in hits]
        assert marks == [hit.distance <= threshold.distance for hit in hits]
        assert marks == sorted(marks, reverse=True)
    assert threshold.precision[1] >= 0.6
    assert judged.sentence.startswith(f"Within a distance of {threshold.distance:.3f}, ")
    assert judged.sentence.endswith("60 pairs judged.")
    want_precision(retrieval.dataset, 0.8)
    assert same_threshold(retrieval) == threshold
    assert threshold.describe()["precision"]["low"] == threshold.precision[1]


@pytest.mark.slow
def test_a_unit_embedding_has_a_similarity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = worked(tmp_path / "runs", method="frozen")
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    threshold = judge(Retrieval(run), 50, target=0.7).threshold
    assert threshold is not None
    assert threshold.similarity == pytest.approx(1 - threshold.distance**2 / 2)
    assert threshold.place == f"above a similarity of {threshold.similarity:.3f}"
    assert "of all same pairs are above it" in threshold.sentence or "all pairs are above it" in threshold.sentence


def test_labels_of_the_data_set_change_nothing(run: Run) -> None:
    retrieval = Retrieval(run)
    assert retrieval.dataset.labels is not None
    judged = judge(retrieval, 30)
    for labels in (None, np.roll(retrieval.dataset.labels, 7)):
        poisoned = Retrieval(run, replace(retrieval.dataset, labels=labels))
        for path in (run.folder.parents[1] / "cache").rglob("same/*.npz"):
            path.unlink()
        again = open_same_pairs(poisoned, "final", 0.8)
        assert (again.next(), again.sentence) == (judged.next(), judged.sentence)


def test_the_plan_is_stored_and_computed_again_if_it_is_damaged(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    retrieval = Retrieval(run)
    assert not has_plan(retrieval, "final")
    judged = judge(retrieval, 5)
    assert has_plan(retrieval, "final")
    assert not has_plan(retrieval, "initial")
    with monkeypatch.context() as patch:
        patch.setattr(StoredIndex, "neighbors", None)  # the stored plan takes no search
        assert open_same_pairs(Retrieval(run), "final", 0.8).next() == judged.next()
    path = _plan_path(retrieval.frame("final"))
    for content in (b"no arrays", path.read_bytes()[:2000]):
        path.write_bytes(content)
        assert open_same_pairs(retrieval, "final", 0.8).next() == judged.next()
    assert path.stat().st_size > 10_000


def test_a_pair_judged_in_one_embedding_counts_in_another_that_draws_it(run: Run) -> None:
    retrieval = Retrieval(run)
    judge(retrieval, 60)
    other = open_same_pairs(retrieval, "initial", 0.8)
    drawn = {pair for pair, answer in zip(map(tuple, other.plan.pairs.tolist()), other.answers, strict=True)
             if answer != OPEN}
    assert 0 < other.estimate.judged <= len(drawn) < 60
    pair = other.next()
    assert pair is not None
    assert pair not in judged_pairs(retrieval.dataset).answers()


def test_each_answer_counts_once_where_pairs_were_judged_for_another_embedding(run: Run) -> None:
    """Pairs that wait for their turn are counted from the beginning, so that no answer raises the number by several."""
    retrieval = Retrieval(run)
    judge(retrieval, 60)
    judged = open_same_pairs(retrieval, "initial", 0.8)
    begin, waiting = judged.judged, judged.judged - judged.estimate.judged
    assert waiting > 0
    assert f"{begin} pairs judged, {waiting} judged in another embedding" in judged.sentence
    used = [judged.estimate.judged]
    for count in range(1, 25):
        pair = judged.next()
        assert pair is not None
        judged_pairs(retrieval.dataset).add(*pair, True)
        judged = open_same_pairs(retrieval, "initial", 0.8)
        assert judged.judged == begin + count
        used.append(judged.estimate.judged)
    assert max(np.diff(used)) > 1, "an answer also brings waiting pairs into the estimate"


def test_without_a_judgment_nothing_is_computed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StoredIndex, "neighbors", None)
    assert same_threshold(Retrieval(run)) is None


def test_an_undone_judgment_is_asked_again(run: Run) -> None:
    retrieval = Retrieval(run)
    judged = judge(retrieval, 14)
    following = judged.next()
    assert following is not None
    judged_pairs(retrieval.dataset).add(*following, True)
    assert open_same_pairs(retrieval, "final", 0.8).next() != following
    judged_pairs(retrieval.dataset).undo()
    assert open_same_pairs(retrieval, "final", 0.8).next() == following


@pytest.mark.slow
def test_a_refinement_has_its_own_pairs_and_threshold(run: Run) -> None:
    analysis = keep(run, plan_analysis(kind="refine", recipe="whiten+average:k=5"), lambda _share, _step: None)
    retrieval = Retrieval(run)
    plan = open_same_pairs(retrieval, analysis.id).plan
    assert np.isin(plan.pairs, retrieval.frame(analysis.id).indices).all()
    for pair, distance in list(zip(plan.pairs.tolist(), plan.distances, strict=True))[::200]:
        hits = [{hit.index: hit.distance for hit in retrieval.search_item(first, 60, analysis.id)}.get(second, np.inf)
                for first, second in (pair, pair[::-1])]
        assert min(hits) == pytest.approx(distance, abs=1e-3)
    assert judge(retrieval, 25, analysis.id, 0.6).estimate.judged == 25


def test_a_large_gallery_finds_the_same_neighbors(run: Run, tmp_path: Path) -> None:
    index = Retrieval(run).frame("final").index
    assert isinstance(index, StoredIndex)
    build_gallery(np.asarray(index.rows, np.float32), tmp_path / "gallery")
    stored = replace(index, index=StoredGallery.open(tmp_path / "gallery"))
    searched = np.arange(len(index.rows)) % 3 > 0
    queries = np.flatnonzero(searched)[::7]
    for found, expected in zip(stored.neighbors(queries, 9, searched), index.neighbors(queries, 9, searched),
                               strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-3)
    assert searched[index.neighbors(queries, 9, searched)[0]].all()


@pytest.mark.slow
@pytest.mark.parametrize(("count", "pairs"), [(2, 0), (3, 3), (5, 10)])
def test_few_images_have_few_pairs_or_a_message(count: int, pairs: int, tmp_path: Path,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_digits(tmp_path / "few", 5, by_class=False)
    run = worked(tmp_path / "runs", method="frozen", dataset=str(folder), split=None)
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    excluded = ExclusionList.of(run.dataset().names[count:])
    (run.folder / "spec.json").write_text(run.spec().model_copy(update={"excluded": excluded}).model_dump_json())
    retrieval = Retrieval(run)
    if not pairs:
        with pytest.raises(UserError, match="among at least 3 images, and the plain search can search 2"):
            open_same_pairs(retrieval)
        return
    judged = open_same_pairs(retrieval, "final", 0.9)
    while (pair := judged.next()) is not None:
        judged_pairs(retrieval.dataset).add(*pair, True)
        judged = open_same_pairs(retrieval, "final", 0.9)
    assert judged.estimate.judged == pairs
    assert "100 % of the results show the same thing (100 to 100 %); all pairs are above it" in judged.sentence


def test_shares_are_rounded_without_promising_more_than_is_known() -> None:
    assert [percent(share) for share in (0.949, 0.996, 1.0)] == ["95 %", "99 %", "100 %"]
    assert interval((0.95, 0.909, 0.981)) == "90 to 99 %"
    assert interval((0.3, 0.3, 0.3)) == "30 to 30 %"


def test_the_forecast_counts_down_by_one_within_ten_answers(run: Run) -> None:
    retrieval = Retrieval(run)
    left = []
    for count in range(20):
        judged = judge(retrieval, min(count, 1), target=0.95)
        assert judged.judged == count
        left.append(judged.left)
    known = [number for number in left if number is not None]
    assert len(known) == len(left)
    assert known[:10] == [known[0] - count for count in range(10)]
    assert known[10:20] == [max(1, known[10] - count) for count in range(10)]
