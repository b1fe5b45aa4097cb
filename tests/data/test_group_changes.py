"""Changes of groups by hand: stored beside the names, undone with them, and checked when read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.given import group_changes as changes
from udml_core.data.given.labels import assign, assigned_labels, can_undo, undo
from udml_core.data.given.log import log_path_of


@pytest.fixture
def digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    return catalog.load("digits")


def stored(dataset: Dataset) -> list[tuple[list[int], list[int]]]:
    return [(change.images.tolist(), change.parts.tolist()) for change in changes.group_changes(dataset).changes]


def split(*images: int) -> changes.GroupChange:
    return changes.GroupChange(np.array(images), np.arange(len(images)))


def test_changes_and_names_are_undone_in_their_order(digits: Dataset) -> None:
    assert not can_undo(digits)
    changes.change_groups(digits, changes.GroupChange(np.array([9, 2, 5]), np.array([1, 0, 1])))
    assign(digits, [2], "two")
    changes.change_groups(digits, split(7, 8))
    assert stored(digits) == [([2, 5, 9], [0, 1, 1]), ([7, 8], [0, 1])]
    assert undo(digits) == [7, 8]
    assert undo(digits) == [2]
    assert assigned_labels(digits) == {}
    assert stored(digits) == [([2, 5, 9], [0, 1, 1])]
    assert sorted(undo(digits)) == [2, 5, 9]
    assert stored(digits) == []
    assert not can_undo(digits)


def test_dropped_changes_come_back_by_undo(digits: Dataset) -> None:
    changes.drop_changes(digits)
    assert not log_path_of(digits, "labels").exists()
    changes.change_groups(digits, split(1, 2))
    changes.drop_changes(digits)
    changes.change_groups(digits, split(3, 4))
    assert stored(digits) == [([3, 4], [0, 1])]
    assert undo(digits) == [3, 4]
    assert undo(digits) == []
    assert stored(digits) == [([1, 2], [0, 1])]


def test_images_that_are_gone_leave_the_changes(digits: Dataset) -> None:
    changes.change_groups(digits, split(1, 2))
    changes.change_groups(digits, split(3))
    path = log_path_of(digits, "labels")
    for image in (2, 3):
        path.write_text(path.read_text().replace(json.dumps(digits.names[image]), f'"gone {image}"'))
    assert stored(digits) == [([1], [0])]
    assert changes.group_changes(digits).problem == ""


@pytest.mark.parametrize("row", [
    {"groups": "all"}, {"groups": [["a"], []]}, {"groups": [["a", 3]]}, {"groups": [["a"], ["b", "a"]]},
    {"groups": [["a", "a"]]}, {"groups": [[f"{number}"] for number in range(301)]}, {"groups": None},
    {"groups": {"a": 1}}, ["groups"], 3])
def test_an_invalid_line_is_ignored_with_a_message(row: Any, digits: Dataset) -> None:
    changes.change_groups(digits, split(1, 2))
    with log_path_of(digits, "labels").open("a") as file:
        file.write(json.dumps(row) + "\n\n")
    found = changes.group_changes(digits)
    assert len(found.changes) == 1
    assert found.problem.startswith("1 line of your stored names and changes of groups could not be read")
    assert undo(digits) == [1, 2], "what is ignored is not undone either"


@pytest.mark.parametrize("content", [b"\x00\x01\xff" * 100, b"[" * 100_000, b'{"groups": [["a"'])
def test_a_damaged_file_changes_no_groups_and_is_named(content: bytes, digits: Dataset) -> None:
    assign(digits, [1], "one")
    path = log_path_of(digits, "labels")
    path.write_bytes(content + b"\n" + path.read_bytes())
    found = changes.group_changes(digits)
    assert found.changes == ()
    assert "the file labels.jsonl is damaged" in found.problem
    assert assigned_labels(digits) == {digits.names[1]: "one"}


def test_too_many_changes_are_neither_stored_nor_applied(digits: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    for image in range(4):
        changes.change_groups(digits, split(image))
    monkeypatch.setattr(changes, "MOST_CHANGES", 3)
    found = changes.group_changes(digits)
    assert len(found.changes) == 3
    assert "beyond the first 3" in found.problem
    with pytest.raises(UserError, match="no more changes are stored"):
        changes.change_groups(digits, split(9))
