"""Labeled pairs: the log, undo, damaged lines, and pairs from a CSV file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.given.log import log_path_of
from udml_core.data.given.pair_sets import PairLog, PairSet, parse_pairs, read_pairs, write_pairs


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PairLog:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    return PairLog(catalog.load("digits"))


def answers(log: PairLog) -> list[tuple[int, int, bool]]:
    pair_set = log.read()
    return [(*pair, same) for pair, same in zip(pair_set.pairs.tolist(), pair_set.same.tolist(), strict=True)]


def test_answers_are_stored_and_undo_reverts_the_last(log: PairLog) -> None:
    assert len(log.read()) == 0
    assert log.undo() is None
    log.add(3, 17, True)
    log.add(9, 2, False)
    assert answers(log) == [(3, 17, True), (2, 9, False)]
    assert log.undo() == (9, 2, False)
    assert answers(log) == [(3, 17, True)]
    assert log.undo() == (3, 17, True)
    assert log.undo() is None
    assert answers(log) == []
    assert log_path_of(log.dataset, "pairs").read_bytes().count(b"\n") == 4, "the log must never be rewritten"


def test_the_last_answer_about_a_pair_counts_and_undo_restores_the_first(log: PairLog) -> None:
    log.add(3, 17, True)
    log.add(17, 3, False)
    assert answers(log) == [(3, 17, False)]
    log.undo()
    assert answers(log) == [(3, 17, True)]


def test_known_pairs_are_removed_in_either_order_unless_their_label_differs() -> None:
    pair_set = PairSet(np.array([[3, 17], [9, 2], [4, 5], [17, 4]]), np.array([True, False, True, False]))
    known = PairSet(np.array([[17, 3], [2, 9], [4, 6]]), np.array([True, True, True]))
    further = pair_set.without(known)
    assert further.pairs.tolist() == [[9, 2], [4, 5], [17, 4]]
    assert further.same.tolist() == [False, True, False]
    assert len(pair_set.without(PairSet(np.zeros((0, 2), np.int64), np.zeros(0, bool)))) == 4
    assert len(pair_set.without(pair_set)) == 0


@pytest.mark.parametrize("damaged", [
    b'{"first": 5, "sec', b"\xff\xfe", b'["a"]', b'{"first": 1, "second": "x", "same": 1}'])
def test_a_damaged_line_does_not_affect_other_lines(log: PairLog, damaged: bytes) -> None:
    log.add(3, 17, True)
    with log_path_of(log.dataset, "pairs").open("ab") as file:
        file.write(damaged)
    assert answers(log) == [(3, 17, True)]
    log.add(4, 5, False)
    assert answers(log) == [(3, 17, True), (4, 5, False)]


def test_equal_or_unknown_images_are_rejected(log: PairLog) -> None:
    for first, second in ((3, 3), (-1, 4), (4, 1797)):
        with pytest.raises(UserError, match="two different images with indices from 0 to 1796"):
            log.add(first, second, True)


def test_a_file_names_images_by_index_or_name(log: PairLog, tmp_path: Path) -> None:
    name = log.dataset.names[7]
    path = tmp_path / "pairs.csv"
    path.write_text(f'second,first,same,remark\n4,3,same,\n"{name}",9,0,"so, so"\n1,2,TRUE,\n')
    pair_set = read_pairs(path, log.dataset)
    assert pair_set.pairs.tolist() == [[3, 4], [9, 7], [2, 1]]
    assert pair_set.same.tolist() == [True, False, True]


def test_written_pairs_are_read_unchanged(log: PairLog) -> None:
    log.add(3, 17, True)
    log.add(9, 2, False)
    pair_set = parse_pairs(write_pairs(log.read(), log.dataset), "mine.csv", log.dataset)
    assert pair_set.pairs.tolist() == [[3, 17], [2, 9]]
    assert pair_set.same.tolist() == [True, False]
    with pytest.raises(UserError, match=r"pairs in mine\.csv could not be read"):
        parse_pairs(b"\xff\xfe", "mine.csv", log.dataset)


@pytest.mark.parametrize("separator", [b",", b";", b"\t"])
def test_spaces_after_separators_and_empty_lines_are_accepted(separator: bytes, log: PairLog) -> None:
    content = b"first, second, same\n\n1, 2, same\n3, 4, different\n".replace(b",", separator)
    pair_set = parse_pairs(content, "mine.csv", log.dataset)
    assert pair_set.pairs.tolist() == [[1, 2], [3, 4]]
    assert pair_set.same.tolist() == [True, False]


@pytest.mark.parametrize(("content", "message"), [
    ("", "must have the columns"), ("first,second,same\n", "at least one pair"),
    ("a,b,c\n1,2,1\n", "must have the col"),
    ("first,second,same\n1,2,1\n1,1797,1\n", "line 3: expected two different images"),
    ("first,second,same\n1,1,1\n", "line 2"), ("first,second,same\n1,2,maybe\n", "'maybe'"),
    ("first second same\n1 2 1\n", "separated by commas.*got the columns first second same with 1 below"),
    ("first,second,same\n\n\n1,2,maybe\n", "line 4: expected"),
    ("first,second,same\n1,2\n", "line 2"), ("first,second,same\n1,²,1\n", "line 2")])
def test_a_file_without_valid_pairs_is_rejected_with_the_line(
        log: PairLog, tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        read_pairs(path, log.dataset)
    with pytest.raises(UserError, match="could not be read"):
        read_pairs(tmp_path, log.dataset)


def test_pairs_within_a_half_get_indices_of_the_half_and_both_kinds_are_required() -> None:
    whole = PairSet(np.array([[2, 5], [5, 7], [7, 9], [1, 2]]), np.array([True, False, True, True]))
    inside = whole.within(np.array([2, 5, 7]))
    assert inside.pairs.tolist() == [[0, 1], [1, 2]]
    inside.check()
    for kept in ([0], [1], []):
        with pytest.raises(UserError, match="pairs of both kinds"):
            PairSet(inside.pairs[kept], inside.same[kept]).check()
