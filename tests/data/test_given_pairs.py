"""Given pairs: appended, taken back, read after a cut; and pairs from a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from udml_core.data import catalog
from udml_core.data.given.log import log_path_of
from udml_core.data.given.pairs import PairLog, PairSet, pairs_file, parse_pairs, read_pairs
from udml_core.errors import UserError


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PairLog:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    return PairLog(catalog.load("digits"))


def told(given: PairLog) -> list[tuple[int, int, bool]]:
    found = given.read()
    return [(*pair, same) for pair, same in zip(found.pairs.tolist(), found.same.tolist(), strict=True)]


def test_answers_are_kept_and_the_last_is_taken_back(given: PairLog) -> None:
    assert len(given.read()) == 0
    assert given.undo() is None
    given.give(3, 17, True)
    given.give(9, 2, False)
    assert told(given) == [(3, 17, True), (2, 9, False)]
    assert given.undo() == (9, 2, False)
    assert told(given) == [(3, 17, True)]
    assert given.undo() == (3, 17, True)
    assert given.undo() is None
    assert told(given) == []
    assert log_path_of(given.dataset, "pairs").read_bytes().count(b"\n") == 4, "only ever appended to"


def test_an_answer_that_is_given_again_counts_as_last_and_its_undo_brings_the_first_back(given: PairLog) -> None:
    given.give(3, 17, True)
    given.give(17, 3, False)
    assert told(given) == [(3, 17, False)]
    given.undo()
    assert told(given) == [(3, 17, True)]


def test_what_is_known_is_left_out_either_way_round_unless_it_is_of_the_other_kind() -> None:
    found = PairSet(np.array([[3, 17], [9, 2], [4, 5], [17, 4]]), np.array([True, False, True, False]))
    known = PairSet(np.array([[17, 3], [2, 9], [4, 6]]), np.array([True, True, True]))
    further = found.without(known)
    assert further.pairs.tolist() == [[9, 2], [4, 5], [17, 4]]
    assert further.same.tolist() == [False, True, False]
    assert len(found.without(PairSet(np.zeros((0, 2), np.int64), np.zeros(0, bool)))) == 4
    assert len(found.without(found)) == 0


@pytest.mark.parametrize("cut", [
    b'{"first": 5, "sec', b"\xff\xfe", b'["a"]', b'{"first": 1, "second": "x", "same": 1}'])
def test_a_line_that_was_cut_spoils_no_other(given: PairLog, cut: bytes) -> None:
    given.give(3, 17, True)
    with log_path_of(given.dataset, "pairs").open("ab") as file:
        file.write(cut)
    assert told(given) == [(3, 17, True)]
    given.give(4, 5, False)
    assert told(given) == [(3, 17, True), (4, 5, False)]


def test_an_image_that_is_not_there_or_alone_is_refused(given: PairLog) -> None:
    for first, second in ((3, 3), (-1, 4), (4, 1797)):
        with pytest.raises(UserError, match="two different images, numbered 0 to 1796"):
            given.give(first, second, True)


def test_a_file_names_images_by_number_or_name(given: PairLog, tmp_path: Path) -> None:
    name = given.dataset.names[7]
    path = tmp_path / "pairs.csv"
    path.write_text(f'second,first,same,remark\n4,3,same,\n"{name}",9,0,"so, so"\n1,2,TRUE,\n')
    found = read_pairs(path, given.dataset)
    assert found.pairs.tolist() == [[3, 4], [9, 7], [2, 1]]
    assert found.same.tolist() == [True, False, True]


def test_a_file_that_was_written_is_read_as_it_was(given: PairLog) -> None:
    given.give(3, 17, True)
    given.give(9, 2, False)
    found = parse_pairs(pairs_file(given.read(), given.dataset), "mine.csv", given.dataset)
    assert found.pairs.tolist() == [[3, 17], [2, 9]]
    assert found.same.tolist() == [True, False]
    with pytest.raises(UserError, match=r"pairs in mine\.csv could not be read"):
        parse_pairs(b"\xff\xfe", "mine.csv", given.dataset)


def test_spaces_behind_commas_and_empty_lines_are_no_fault(given: PairLog) -> None:
    found = parse_pairs(b"first, second, same\n\n1, 2, same\n3, 4, different\n", "mine.csv", given.dataset)
    assert found.pairs.tolist() == [[1, 2], [3, 4]]
    assert found.same.tolist() == [True, False]


@pytest.mark.parametrize(("content", "message"), [
    ("", "must have the columns"), ("first,second,same\n", "at least one pair"),
    ("a,b,c\n1,2,1\n", "must have the col"),
    ("first,second,same\n1,2,1\n1,1797,1\n", "line 3: needs two different images"),
    ("first,second,same\n1,1,1\n", "line 2"), ("first,second,same\n1,2,maybe\n", "'maybe'"),
    ("first;second;same\n1;2;1\n", "parted by commas.*got the columns first;second;same and 1 lines"),
    ("first,second,same\n\n\n1,2,maybe\n", "line 4: needs"),
    ("first,second,same\n1,2\n", "line 2"), ("first,second,same\n1,²,1\n", "line 2")])
def test_a_file_that_names_no_pairs_is_refused_with_its_line(
        given: PairLog, tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        read_pairs(path, given.dataset)
    with pytest.raises(UserError, match="could not be read"):
        read_pairs(tmp_path, given.dataset)


def test_pairs_within_a_half_are_numbered_there_and_both_kinds_are_needed() -> None:
    whole = PairSet(np.array([[2, 5], [5, 7], [7, 9], [1, 2]]), np.array([True, False, True, True]))
    inside = whole.within(np.array([2, 5, 7]))
    assert inside.pairs.tolist() == [[0, 1], [1, 2]]
    inside.check()
    for kept in ([0], [1], []):
        with pytest.raises(UserError, match="pairs of both kinds"):
            PairSet(inside.pairs[kept], inside.same[kept]).check()
