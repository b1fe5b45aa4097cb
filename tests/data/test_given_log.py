"""Logs of labels and pairs belong to a folder.

They follow its images when the folder is moved.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.given.labels import assign, assigned_labels, undo
from udml_core.data.given.log import log_path_of
from udml_core.data.given.pair_sets import PairLog
from udml_core.data.sources.fashion_mnist import FashionMini


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of ten images, a.png to j.png, with an empty cache."""
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "mine"
    folder.mkdir()
    images = FashionMini().load(lambda _share, _step: None).images
    for number, letter in enumerate("abcdefghij"):
        images[number].save(folder / f"{letter}.png")
    return folder


def load(folder: Path) -> Dataset:
    return catalog.load(str(folder))


def pairs(dataset: Dataset) -> set[tuple[str, str, bool]]:
    answers = PairLog(dataset).read()
    return {(dataset.names[first], dataset.names[second], bool(same))
            for (first, second), same in zip(answers.pairs, answers.same, strict=True)}


@pytest.mark.parametrize("change", [
    lambda folder: shutil.copy(folder / "a.png", folder / "0.png"), lambda folder: (folder / "j.png").unlink(),
    lambda folder: shutil.copy(folder / "a.png", folder / "j.png")], ids=["added", "removed", "changed"])
def test_labels_and_pairs_stay_when_an_image_is_added_removed_or_changed(change: Callable[[Path], object],
                                                                         folder: Path) -> None:
    before = load(folder)
    assign(before, [1, 2], "coat")
    PairLog(before).add(3, 4, True)
    change(folder)
    after = load(folder)
    assert after.fingerprint != before.fingerprint
    assert assigned_labels(after) == {"b.png": "coat", "c.png": "coat"}
    assert pairs(after) == {("d.png", "e.png", True)}
    assign(after, [after.names.index("d.png")], "bag")
    assert undo(after) == [after.names.index("d.png")]


def test_labels_and_pairs_of_a_removed_image_return_with_the_image(folder: Path) -> None:
    assign(load(folder), [0], "coat")
    PairLog(load(folder)).add(1, 2, False)
    PairLog(load(folder)).add(0, 5, True)
    (folder / "a.png").rename(folder.parent / "a.png")
    without = load(folder)
    assert assigned_labels(without) == {}
    assert pairs(without) == {("b.png", "c.png", False)}
    (folder.parent / "a.png").rename(folder / "a.png")
    assert assigned_labels(load(folder)) == {"a.png": "coat"}
    assert pairs(load(folder)) == {("b.png", "c.png", False), ("a.png", "f.png", True)}
    (folder / "a.png").unlink()
    assert PairLog(load(folder)).undo() is None  # the pair contains the deleted image
    assert pairs(load(folder)) == {("b.png", "c.png", False)}


def test_a_moved_or_copied_folder_keeps_its_labels(folder: Path) -> None:
    assign(load(folder), [1], "coat")
    copied = Path(shutil.copytree(folder, folder.with_name("copy")))
    assign(load(copied), [2], "bag")
    assert assigned_labels(load(copied)) == {"b.png": "coat", "c.png": "bag"}
    assert assigned_labels(load(folder)) == {"b.png": "coat"}
    moved = copied.rename(folder.with_name("moved"))
    expected = {"b.png": "coat", "c.png": "bag"}
    assert assigned_labels(load(moved)) == expected, "the newest labels of these images must be copied"
    (folder / "j.png").unlink()
    assert assigned_labels(load(folder)) == {"b.png": "coat"}
    elsewhere = folder.rename(folder.with_name("elsewhere"))
    assert assigned_labels(load(elsewhere)) == {"b.png": "coat"}, "labels assigned before the change must be copied too"


@pytest.mark.parametrize("name", ["digits", "fashion-mini"])
def test_image_names_are_unique(name: str) -> None:
    names = catalog.load(name).names
    assert len(set(names)) == len(names)


def test_logs_are_stored_in_the_users_data_folder_by_default(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = load(folder)
    monkeypatch.delenv("UDML_CACHE")
    monkeypatch.setenv("XDG_DATA_HOME", str(folder.parent / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.parent / "caches"))
    assign(dataset, [0], "coat")
    assert log_path_of(dataset, "labels").is_relative_to(folder.parent / "data")
