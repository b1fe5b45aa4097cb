"""Logs of labels and pairs belong to the folder and follow its images when the folder is moved."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.given.labels import give, given, undo
from udml_core.data.given.log import log_path_of
from udml_core.data.given.pairs import PairLog
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
    give(before, [1, 2], "coat")
    PairLog(before).give(3, 4, True)
    change(folder)
    after = load(folder)
    assert after.fingerprint != before.fingerprint
    assert given(after) == {"b.png": "coat", "c.png": "coat"}
    assert pairs(after) == {("d.png", "e.png", True)}
    give(after, [after.names.index("d.png")], "bag")
    assert undo(after) == [after.names.index("d.png")]


def test_labels_and_pairs_of_a_removed_image_return_with_the_image(folder: Path) -> None:
    give(load(folder), [0], "coat")
    PairLog(load(folder)).give(1, 2, False)
    PairLog(load(folder)).give(0, 5, True)
    (folder / "a.png").rename(folder.parent / "a.png")
    without = load(folder)
    assert given(without) == {}
    assert pairs(without) == {("b.png", "c.png", False)}
    (folder.parent / "a.png").rename(folder / "a.png")
    assert given(load(folder)) == {"a.png": "coat"}
    assert pairs(load(folder)) == {("b.png", "c.png", False), ("a.png", "f.png", True)}
    (folder / "a.png").unlink()
    assert PairLog(load(folder)).undo() is None  # the pair contains the deleted image
    assert pairs(load(folder)) == {("b.png", "c.png", False)}


def test_a_moved_or_copied_folder_keeps_its_labels(folder: Path) -> None:
    give(load(folder), [1], "coat")
    copied = Path(shutil.copytree(folder, folder.with_name("copy")))
    give(load(copied), [2], "bag")
    assert given(load(copied)) == {"b.png": "coat", "c.png": "bag"}
    assert given(load(folder)) == {"b.png": "coat"}
    moved = copied.rename(folder.with_name("moved"))
    assert given(load(moved)) == {"b.png": "coat", "c.png": "bag"}, "the newest labels of these images must be copied"
    (folder / "j.png").unlink()
    assert given(load(folder)) == {"b.png": "coat"}
    elsewhere = folder.rename(folder.with_name("elsewhere"))
    assert given(load(elsewhere)) == {"b.png": "coat"}, "labels assigned before the change must be copied too"


@pytest.mark.parametrize("name", ["digits", "fashion-mini"])
def test_image_names_are_unique(name: str) -> None:
    names = catalog.load(name).names
    assert len(set(names)) == len(names)


def test_logs_are_stored_in_the_users_data_folder_by_default(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = load(folder)
    monkeypatch.delenv("UDML_CACHE")
    monkeypatch.setenv("XDG_DATA_HOME", str(folder.parent / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.parent / "caches"))
    give(dataset, [0], "coat")
    assert log_path_of(dataset, "labels").is_relative_to(folder.parent / "data")
