"""Images that the audit lists under Quality are left out of the questions of Judge and of "the same"."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.running import worked
from udml_core.base.arrays import Integers
from udml_core.base.files import replace_arrays
from udml_core.base.paths import dataset_cache
from udml_core.data.dataset import Dataset
from udml_core.data.given.exclusions import exclude
from udml_core.data.given.judged_pairs import judged_pairs
from udml_core.data.image_facts import FILE, TYPES
from udml_core.numerics.same_pairs import LEFT_OUT, OPEN
from udml_core.runs import Run
from udml_core.runs.search import Retrieval
from udml_core.runs.search.asked import asked_images, left_out_words
from udml_core.runs.search.copies import known_copies
from udml_core.runs.search.differing import Comparison, Side, compare
from udml_core.runs.search.judging import Judging
from udml_core.runs.search.same import open_same_pairs
from udml_core.runs.search.stored_comparison import stored_comparison


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    run = worked(tmp_path / "runs")
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    return run


def store_facts(dataset: Dataset, poor: Integers) -> None:
    """Store facts by which some images have one plain color."""
    good = {"width": 32, "height": 32, "entropy": 9.0, "dark": 0.9, "light": 0.1, "detail": 0.9}
    facts = {name: np.full(len(dataset), good.get(name, 1), kind) for name, kind in TYPES.items()}
    facts["entropy"][poor] = 0.0
    path = dataset_cache(dataset.fingerprint) / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_arrays(path, facts)


def test_poor_images_are_not_asked_unless_all_are_poor(run: Run) -> None:
    dataset = run.dataset()
    assert asked_images(dataset).all(), "without an audit"
    store_facts(dataset, np.arange(4))
    assert np.flatnonzero(~asked_images(dataset)).tolist() == [0, 1, 2, 3]
    exclude(dataset, np.arange(4, len(dataset)))
    assert asked_images(dataset).all(), "every image that is left is poor"
    assert left_out_words(0) == ""
    assert left_out_words(1).endswith("is left out of the questions.")


def compared(retrieval: Retrieval) -> Comparison:
    sides = Side(retrieval, "initial"), Side(retrieval, "final")
    names = sides[0].name, sides[1].name
    copies = known_copies(retrieval.dataset, retrieval.run.root)
    return stored_comparison(retrieval.dataset, names, "test", "first", copies, (0.0, 0.0), lambda: compare(*sides))


def test_judge_asks_neither_about_a_poor_query_nor_about_a_poor_first_result(run: Run) -> None:
    retrieval = Retrieval(run)
    before = compared(retrieval)
    judging = Judging(before)
    for _query in range(12):
        question = judging.question()
        assert question is not None
        judging.answer(question, "left")
    poor = np.array([before.differing[3], before.candidates[7, 1], before.differing[40]])
    store_facts(retrieval.dataset, poor)
    after = compared(retrieval)
    assert after.not_asked == 3, "the stored comparison is replaced"
    assert not np.isin(after.differing, poor).any()
    assert not np.isin(after.candidates, poor).any()
    gone = np.isin(before.differing, poor) | np.isin(before.candidates, poor).any(axis=1)
    assert before.differing[~gone].tolist() == after.differing.tolist(), "in the same order"
    assert Judging(after).count("me") == 12 - gone[:12].sum(), "other answers stay, without a gap"


def test_no_pair_with_a_poor_image_is_asked_and_answers_count_beyond_it(run: Run) -> None:
    retrieval = Retrieval(run)
    before = open_same_pairs(retrieval)
    pair = before.next()
    assert pair is not None
    judged_pairs(retrieval.dataset).add(*pair, True, before.name)
    poor = np.unique(before.plan.pairs[:40])
    poor = poor[~np.isin(poor, pair)]
    store_facts(retrieval.dataset, poor)
    after = open_same_pairs(retrieval)
    assert after.not_asked == np.isin(poor, np.flatnonzero(retrieval.searched())).sum() > 0
    assert after.judged == 1, "an answer that was given stays"
    is_poor = np.isin(after.plan.pairs, poor).any(axis=1)
    assert (after.answers[is_poor] == LEFT_OUT).sum() == is_poor.sum() > 0
    for _pair in range(30):
        following = after.next()
        assert following is not None
        assert not np.isin(following, poor).any()
        judged_pairs(retrieval.dataset).add(*following, True, after.name)
        after = open_same_pairs(retrieval)
    assert after.counted == 31, "a pair that is left out holds up no answer"
    store_facts(retrieval.dataset, np.unique(after.plan.pairs)[1:])
    assert (open_same_pairs(retrieval).answers == OPEN).any(), "all pairs are asked if each has a poor image"
