"""Labels that people give: what stands after giving, giving again and undoing, and what a broken file loses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.given.labels import classes, give, given, labels_by_index, undo
from udml_core.data.given.log import log_path_of
from udml_core.errors import UserError


@pytest.fixture
def digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    return catalog.load("digits")


def test_the_last_label_of_an_image_counts_and_undo_goes_back_act_by_act(digits: Dataset) -> None:
    assert given(digits) == {}
    assert undo(digits) == []
    give(digits, [3, 5], "  three\tor  five ")
    give(digits, [5], "five")
    names = digits.names
    assert given(digits) == {names[3]: "three or five", names[5]: "five"}
    assert labels_by_index(digits, given(digits)) == {3: "three or five", 5: "five"}
    assert undo(digits) == [5]
    assert given(digits) == {names[3]: "three or five", names[5]: "three or five"}
    give(digits, [9], "nine")
    assert undo(digits) == [9]
    assert undo(digits) == [3, 5]
    assert undo(digits) == []
    assert given(digits) == {}
    assert len(log_path_of(digits, "labels").read_bytes().splitlines()) == 6  # nothing given is ever lost


def test_a_class_keeps_its_place_whatever_is_renamed_or_taken_back(digits: Dataset) -> None:
    assert classes(digits) == ()
    for image, name in ((0, "shirt"), (1, "bag"), (2, "shirt")):
        give(digits, [image], name)
    assert classes(digits) == ("shirt", "bag")
    give(digits, [0], "coat")
    assert classes(digits) == ("shirt", "bag", "coat")
    for _ in range(3):
        undo(digits)  # coat, the second shirt, the only bag
    give(digits, [3], "hat")
    give(digits, [1], "bag")
    assert classes(digits) == ("shirt", "bag", "coat", "hat")
    assert given(digits) == {digits.names[0]: "shirt", digits.names[3]: "hat", digits.names[1]: "bag"}


def test_a_class_is_spelled_as_it_stands_or_as_the_data_set_has_it(digits: Dataset) -> None:
    assert give(digits, [0], "Shirt") == "Shirt"
    assert give(digits, [1], " sHIRT ") == "Shirt"
    assert set(given(digits).values()) == {"Shirt"}
    undo(digits)
    undo(digits)
    assert give(digits, [0], "shirt") == "shirt", "a spelling that was taken back binds nobody"
    assert give(replace(digits, class_names=tuple("ABCDEFGHIJ")), [2], "c") == "C"


@pytest.mark.parametrize("name", ["", "  ", "x" * 101])
def test_a_class_needs_a_name(digits: Dataset, name: str) -> None:
    with pytest.raises(UserError, match="A class needs a name of 1 to 100 letters"):
        give(digits, [1], name)
    assert not log_path_of(digits, "labels").exists()


def test_giving_to_no_image_is_no_act(digits: Dataset) -> None:
    give(digits, [], "nothing")
    assert not log_path_of(digits, "labels").exists()


def test_broken_and_foreign_lines_are_passed_over_and_a_cut_line_spoils_no_later_one(digits: Dataset) -> None:
    give(digits, [1], "one")
    path = log_path_of(digits, "labels")
    whole = path.read_bytes()
    foreign = [{"images": "image 1", "class": "x"}, {"images": [1], "class": "x"}, {"images": ["gone"], "class": "x"},
               {"images": ["image 1"]}, ["list"], 3, {"undo": False}]
    path.write_bytes(whole + b"".join(json.dumps(one).encode() + b"\n" for one in foreign) + b'\xff\n{"images": ["im')
    assert given(digits) == {digits.names[1]: "one"}
    give(digits, [2], "two")
    assert given(digits) == {digits.names[1]: "one", digits.names[2]: "two"}
    assert undo(digits) == [2]


def test_two_windows_that_label_at_once_lose_nothing(digits: Dataset) -> None:
    windows = [Thread(target=lambda base=base: [give(digits, [base + one], "x") for one in range(20)])  # type: ignore[misc]
               for base in (0, 100, 200)]
    for window in windows:
        window.start()
    for window in windows:
        window.join()
    assert len(given(digits)) == 60


def test_a_cache_that_cannot_be_written_is_said(digits: Dataset, tmp_path: Path,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match="What you gave could not be kept"):
        give(digits, [1], "one")
