"""Known copies: where they are read from, and what they change for blind judgments and pairs of the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.running import worked
from udml_core.base.arrays import Integers
from udml_core.data.given.duplicate_decisions import decide
from udml_core.data.given.judged_pairs import judged_pairs
from udml_core.exploration.audit import Audit
from udml_core.numerics.same_pairs import OPEN, SAME
from udml_core.runs import Run
from udml_core.runs.analyses import create_analysis, plan_analysis
from udml_core.runs.analyses.kinds.audit import DataAudit
from udml_core.runs.search import Query, Retrieval
from udml_core.runs.search.copies import known_copies
from udml_core.runs.search.differing import Results, Side, compare
from udml_core.runs.search.judging import Judging
from udml_core.runs.search.same import open_same_pairs


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run of frozen features of the digits, in places of its own."""
    trained = worked(tmp_path / "runs", method="frozen")
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    return trained


def store_audit(run: Run, content: Integers, checked: list[tuple[int, int]], agreements: list[float]) -> None:
    """Store an audit that found these copies."""
    count, none = len(content), np.zeros((0, 2), np.int64)
    audit = Audit(content, none, none[:, 0], np.zeros(0, np.float32), np.arange(count)[:, None][::-1].copy(),
                  np.zeros((count, 1), np.float32), np.array(checked, np.int64), np.array(agreements, np.float32))
    create_analysis(run, plan_analysis(DataAudit), state="done", result=vars(audit))


def test_copies_are_known_from_an_audit_and_from_decisions(run: Run) -> None:
    dataset = run.dataset()
    own = np.arange(len(dataset))
    np.testing.assert_array_equal(known_copies(dataset, run.root), own)
    decide(dataset, np.array([[4, 9]]), same=True)
    assert known_copies(dataset, run.root)[9] == 4
    content = own.copy()
    content[30] = 20
    store_audit(run, content, [(1, 2), (2, 3), (5, 6), (7, 8), (10, 11), (12, 13)], [0.95, 0.97, 0.2, 0.1, 0.3, 0.2])
    first = known_copies(dataset, run.root)
    assert [first[image] for image in (1, 2, 3, 4, 5, 6, 9, 20, 30)] == [1, 1, 1, 4, 5, 6, 4, 20, 20]
    assert (first != own).sum() == 4
    decide(dataset, np.array([[2, 3]]), same=False)
    assert known_copies(dataset, run.root)[3] == 3, "a decision counts more than the audit"


@pytest.mark.parametrize("results", ["first", "ten", "group"])
def test_known_copies_of_a_query_are_left_out_of_both_results(results: Results, run: Run) -> None:
    retrieval = Retrieval(run)
    epoch = Retrieval(worked(run.root, seed=1), retrieval.dataset)
    sides = Side(retrieval, "final"), Side(epoch, "final")
    before = compare(*sides, "all", results)
    assert not before.with_copies
    session = Judging(before)
    for _ in range(4):
        question = session.question()
        assert question is not None
        session.answer(question, "left")
    first, second = (int(before.differing[at]) for at in (0, 2))
    pairs = [(query, image) for at, query in ((0, first), (2, second))
             for image in before.candidates[at].reshape(2, -1)[:, 0].tolist()]
    decide(retrieval.dataset, np.array(pairs), same=True)
    after, copies = compare(*sides, "all", results), known_copies(retrieval.dataset, run.root)
    count = 10 if results == "first" else after.candidates.shape[-1]
    candidates = dict(zip(after.differing.tolist(), after.candidates.tolist(), strict=True))
    for query in (first, second):
        others = copies != copies[query]
        expected = [[hit.index for hit in side.retrieval.search(Query((query,)), count, side.frame, "all", others)]
                    for side in sides]
        shown = candidates.get(query)
        if results == "first":
            nearest = [row[0] for row in expected]
            assert shown == nearest if copies[nearest[0]] != copies[nearest[1]] else shown is None
        else:
            assert shown == expected if set(expected[0]) != set(expected[1]) else shown is None
    assert after.with_copies >= 2
    kept = {judgment.query for judgment in Judging(after).judgments("me")}
    unchanged = {judgment.query for judgment in session.judgments("me")
                 if (at := after.positions.get(judgment.query)) is not None
                 and after.options(at) == before.options(before.positions[judgment.query])}
    assert kept == unchanged
    assert kept, "judgments whose results stay the same stay valid"


def test_pairs_of_known_copies_count_as_the_same_without_a_question(run: Run) -> None:
    retrieval = Retrieval(run)
    plain = open_same_pairs(retrieval, "final", 0.8)
    asked = plain.next()
    assert asked is not None
    decide(retrieval.dataset, np.array([asked]), same=True)
    known = open_same_pairs(retrieval, "final", 0.8)
    assert known.next() != asked
    assert (known.judged, known.counted, int(known.is_known.sum())) == (0, 0, 1)
    assert known.answers[known.is_known].tolist() == [SAME]
    assert (known.answers == OPEN).sum() == len(known.answers) - 1
    np.testing.assert_array_equal(known.plan.sizes, plain.plan.sizes, "copies stay in the population")
    judged_pairs(retrieval.dataset).add(*asked, False)
    told = open_same_pairs(retrieval, "final", 0.8)
    assert (told.judged, told.counted, int(told.is_known.sum())) == (1, 1, 0), "the user's own answer counts more"
