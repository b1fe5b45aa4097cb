"""Assigned labels: assigning, reassigning and undoing.

Also class spelling, damaged logs and concurrent windows.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.given.exclusions import exclude, include
from udml_core.data.given.labels import (
    answer_names,
    assign,
    assigned_classes,
    assigned_labels,
    assigned_now,
    judged_names,
    labels_by_index,
    merge_classes,
    refused_classes,
    undo,
)
from udml_core.data.given.log import log_path_of


@pytest.fixture
def digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    return catalog.load("digits")


def test_the_last_label_of_an_image_counts_and_undo_reverts_one_action(digits: Dataset) -> None:
    assert assigned_labels(digits) == {}
    assert undo(digits) == []
    assign(digits, [3, 5], "  three\tor  five ")
    assign(digits, [5], "five")
    names = digits.names
    assert assigned_labels(digits) == {names[3]: "three or five", names[5]: "five"}
    assert labels_by_index(digits, assigned_labels(digits)) == {3: "three or five", 5: "five"}
    assert undo(digits) == [5]
    assert assigned_labels(digits) == {names[3]: "three or five", names[5]: "three or five"}
    assign(digits, [9], "nine")
    assert undo(digits) == [9]
    assert undo(digits) == [3, 5]
    assert undo(digits) == []
    assert assigned_labels(digits) == {}
    assert len(log_path_of(digits, "labels").read_bytes().splitlines()) == 6  # the log is never rewritten


def test_classes_keep_their_order_after_reassigning_and_undoing(digits: Dataset) -> None:
    assert assigned_classes(digits) == ()
    for image, name in ((0, "shirt"), (1, "bag"), (2, "shirt")):
        assign(digits, [image], name)
    assert assigned_classes(digits) == ("shirt", "bag")
    assign(digits, [0], "coat")
    assert assigned_classes(digits) == ("shirt", "bag", "coat")
    for _ in range(3):
        undo(digits)  # reverts the coat, the second shirt and the only bag
    assign(digits, [3], "hat")
    assign(digits, [1], "bag")
    assert assigned_classes(digits) == ("shirt", "hat", "bag"), "an undone class leaves no gap and takes no place"
    assert assigned_labels(digits) == {digits.names[0]: "shirt", digits.names[3]: "hat", digits.names[1]: "bag"}


def test_a_class_takes_the_spelling_of_an_assigned_class_or_of_the_data_set(digits: Dataset) -> None:
    assert assign(digits, [0], "Shirt") == "Shirt"
    assert assign(digits, [1], " sHIRT ") == "Shirt"
    assert set(assigned_labels(digits).values()) == {"Shirt"}
    undo(digits)
    undo(digits)
    assert assign(digits, [0], "shirt") == "shirt", "a reverted spelling must not count"
    assert assign(replace(digits, class_names=tuple("ABCDEFGHIJ")), [2], "c") == "C"


@pytest.mark.parametrize("name", ["", "  ", "x" * 101])
def test_an_empty_or_too_long_class_name_is_rejected(digits: Dataset, name: str) -> None:
    with pytest.raises(UserError, match="A class needs a name of 1 to 100 letters"):
        assign(digits, [1], name)
    assert not log_path_of(digits, "labels").exists()


def test_an_excluded_image_counts_nowhere_and_has_its_label_again_when_it_is_included(digits: Dataset) -> None:
    assign(digits, [1, 2], "one", certainties=[0.9, 0.8])
    assign(digits, [3], "Three")
    exclude(digits, [2, 3])
    assert assigned_now(digits) == {1: "one"}
    assert [name.certainty for name in judged_names(digits)] == [0.9]
    assert assign(digits, [4], "three") == "Three", "the spelling stays known"
    merge_classes(digits, "one", "uno")
    include(digits, [2, 3])
    assert assigned_now(digits) == {1: "uno", 2: "uno", 3: "Three", 4: "Three"}


def test_assigning_no_images_writes_no_action(digits: Dataset) -> None:
    assign(digits, [], "nothing")
    assert not log_path_of(digits, "labels").exists()


def test_damaged_and_invalid_lines_are_skipped_and_do_not_affect_later_lines(digits: Dataset) -> None:
    assign(digits, [1], "one")
    path = log_path_of(digits, "labels")
    whole = path.read_bytes()
    invalid = [{"images": "image 1", "class": "x"}, {"images": [1], "class": "x"},
               {"images": ["unknown"], "class": "x"}, {"images": ["image 1"]}, ["list"], 3, {"undo": False}]
    path.write_bytes(whole + b"".join(json.dumps(row).encode() + b"\n" for row in invalid) + b'\xff\n{"images": ["im')
    assert assigned_labels(digits) == {digits.names[1]: "one"}
    assign(digits, [2], "two")
    assert assigned_labels(digits) == {digits.names[1]: "one", digits.names[2]: "two"}
    assert undo(digits) == [2]


def test_windows_that_assign_at_the_same_time_lose_no_labels(digits: Dataset) -> None:
    windows = [Thread(target=lambda base=base: [assign(digits, [base + offset], "x") for offset in range(10)])  # type: ignore[misc]
               for base in (0, 100, 200)]
    for window in windows:
        window.start()
    for window in windows:
        window.join()
    assert len(assigned_labels(digits)) == 30


def test_a_folder_that_cannot_be_written_is_a_user_error(digits: Dataset, tmp_path: Path,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match="Your labels could not be stored in"):
        assign(digits, [1], "one")


def test_a_page_of_answers_is_one_decision_and_a_class_without_a_yes_comes_last(digits: Dataset) -> None:
    assign(digits, [0], "heron")
    answer_names(digits, "heron", {1: (0.9, True), 2: (0.8, False)})
    assert refused_classes(digits) == (), "an image got the class"
    assert assigned_now(digits) == {0: "heron", 1: "heron"}
    answer_names(digits, "egret", {3: (0.5, False)})
    answer_names(digits, "heron", {3: (0.5, False), 4: (0.4, False)})
    assert refused_classes(digits) == ("egret", "heron")
    undo(digits)
    assert refused_classes(digits) == ("egret",)
    undo(digits)
    assert sorted(undo(digits)) == [1, 2], "yes and no are reverted together"
    assert assigned_now(digits) == {0: "heron"}
