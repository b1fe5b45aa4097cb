"""The log of judged pairs: skipped pairs, undo, damaged lines, and the precision that the user chose."""

from __future__ import annotations

from pathlib import Path

import pytest

from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.given.judged_pairs import (
    KIND,
    answers_elsewhere,
    choose_meaning,
    chosen_meaning,
    judged_pairs,
    keep_answers,
    log_version,
    want_precision,
    wanted_precision,
)
from udml_core.data.given.judgments import Judgment, JudgmentLog
from udml_core.data.given.log import log_path_of
from udml_core.data.given.pair_sets import PairLog


@pytest.fixture
def digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    return catalog.load("digits")


def given(dataset: Dataset) -> dict[tuple[int, int], bool | None]:
    return {pair: answer.same for pair, answer in judged_pairs(dataset).answers().items()}


def test_a_skipped_pair_is_an_answer_but_no_label_and_undo_reverts_it(digits: Dataset) -> None:
    log = judged_pairs(digits)
    log.add(9, 3, True)
    log.add(4, 5, None)
    log.add(4, 6, False)
    assert given(digits) == {(3, 9): True, (4, 5): None, (4, 6): False}
    assert log.read().pairs.tolist() == [[3, 9], [4, 6]]
    assert log.undo() == (4, 6, False)
    assert log.undo() == (4, 5, None)
    assert given(digits) == {(3, 9): True}
    assert log.answers()[3, 9].time > 1.7e9
    log.add(3, 9, None)
    assert not len(log.read()), "a skip replaces the answer"


def test_judged_pairs_are_no_labeled_pairs(digits: Dataset) -> None:
    judged_pairs(digits).add(1, 2, True)
    assert not len(PairLog(digits).read())
    PairLog(digits).add(3, 4, True)
    assert list(given(digits)) == [(1, 2)]


@pytest.mark.parametrize("damaged", [b'{"first": "digit 1", "second": "digit 2"}', b'{"first": "digit 1", "sec',
                                     b'{"precision": "much"}', b'{"precision": 7}', b"\xff"])
def test_a_damaged_line_does_not_affect_other_lines(digits: Dataset, damaged: bytes) -> None:
    judged_pairs(digits).add(1, 2, True)
    want_precision(digits, 0.8)
    with log_path_of(digits, KIND).open("ab") as file:
        file.write(damaged)
    judged_pairs(digits).add(1, 3, False)
    assert given(digits) == {(1, 2): True, (1, 3): False}
    assert wanted_precision(digits) == 0.8


def test_the_chosen_precision_stays_when_judgments_are_undone(digits: Dataset) -> None:
    assert wanted_precision(digits) == 0.95
    judged_pairs(digits).add(1, 2, True)
    want_precision(digits, 0.9)
    judged_pairs(digits).undo()
    assert (given(digits), wanted_precision(digits)) == ({}, 0.9)
    lines = log_path_of(digits, KIND).read_bytes().count(b"\n")
    want_precision(digits, 0.9)
    assert log_path_of(digits, KIND).read_bytes().count(b"\n") == lines, "an equal choice is not stored again"


def test_what_counts_as_the_same_stays_with_the_pairs(digits: Dataset) -> None:
    assert chosen_meaning(digits) == ""
    choose_meaning(digits, "  one   species ")
    judged_pairs(digits).add(1, 2, True)
    judged_pairs(digits).undo()
    assert (chosen_meaning(digits), given(digits), wanted_precision(digits)) == ("one species", {}, 0.95)
    with pytest.raises(UserError, match="at most 80 letters; got 81"):
        choose_meaning(digits, "x" * 81)
    with log_path_of(digits, KIND).open("ab") as file:
        file.write(b'{"meaning": 3}\n')
    assert chosen_meaning(digits) == "one species"
    choose_meaning(digits, "")
    assert chosen_meaning(digits) == ""


def test_answers_count_under_the_words_they_were_given(digits: Dataset) -> None:
    log = judged_pairs(digits)
    log.add(1, 2, True)
    choose_meaning(digits, "one species")
    log.add(3, 4, True)
    assert given(digits) == {(1, 2): True, (3, 4): True}, "the first words describe the answers before them"
    choose_meaning(digits, "one family")
    assert given(digits) == {}
    assert answers_elsewhere(digits)["pair"] == {"one species": 2}
    assert log.undo() is None, "no answer is in view that could be undone"
    log.add(1, 2, False)
    log.add(5, 6, False)
    assert log.undo() == (5, 6, False)
    choose_meaning(digits, "one species")
    assert given(digits) == {(1, 2): True, (3, 4): True}
    assert answers_elsewhere(digits)["pair"] == {"one family": 1}
    choose_meaning(digits, "one species of bird")
    keep_answers(digits)
    assert given(digits) == {(1, 2): False, (3, 4): True}, "of two answers about a pair, the last counts"
    assert answers_elsewhere(digits) == {"pair": {}, "blind judgment": {}}
    choose_meaning(digits, "")
    choose_meaning(digits, "one family")
    assert given(digits) == {}


@pytest.mark.parametrize("precision", [0.5, 1.0, -1, float("nan")])
def test_a_precision_out_of_range_is_rejected(digits: Dataset, precision: float) -> None:
    with pytest.raises(UserError, match=r"between 0\.55 and 0\.99; got"):
        want_precision(digits, precision)
    assert log_version(digits) == ()


def test_the_version_changes_with_every_judgment(digits: Dataset) -> None:
    versions = [log_version(digits)]
    for second in (2, 3, 4):
        judged_pairs(digits).add(1, second, True)
        versions.append(log_version(digits))
    assert versions[0] == ()
    assert len(set(versions)) == 4


def test_blind_judgments_before_the_first_words_count_under_them_and_wait_under_others(digits: Dataset) -> None:
    logs = [JudgmentLog(digits, name) for name in ("one comparison", "another")]
    for query, log in zip(digits.names[:2], logs, strict=True):
        log.add(Judgment("me", query, (digits.names[5], digits.names[6]), digits.names[5]))
    choose_meaning(digits, "one species")
    assert [[given.meaning for given in log.read()] for log in logs] == [["one species"], ["one species"]]
    choose_meaning(digits, "one family")
    assert answers_elsewhere(digits)["blind judgment"] == {"one species": 2}, "second words ask another question"
    choose_meaning(digits, "")
    assert answers_elsewhere(digits)["blind judgment"] == {"one species": 2}
    choose_meaning(digits, "one genus")
    assert [given.meaning for log in logs for given in log.read()] == ["one species"] * 2, "not the first words"
    keep_answers(digits)
    assert [given.meaning for log in logs for given in log.read()] == ["one genus"] * 2
