"""What people said of a folder's images stays with the folder, and goes with the images where the folder is moved."""

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
    place = tmp_path / "mine"
    place.mkdir()
    images = FashionMini().load(lambda _share, _what: None).images
    for number, letter in enumerate("abcdefghij"):
        images[number].save(place / f"{letter}.png")
    return place


def opened(folder: Path) -> Dataset:
    return catalog.load(str(folder))


def pairs(dataset: Dataset) -> set[tuple[str, str, bool]]:
    found = PairLog(dataset).read()
    return {(dataset.names[one], dataset.names[other], bool(same))
            for (one, other), same in zip(found.pairs, found.same, strict=True)}


@pytest.mark.parametrize("change", [
    lambda folder: shutil.copy(folder / "a.png", folder / "0.png"), lambda folder: (folder / "j.png").unlink(),
    lambda folder: shutil.copy(folder / "a.png", folder / "j.png")], ids=["added", "removed", "saved anew"])
def test_what_was_said_stays_where_an_image_comes_goes_or_changes(change: Callable[[Path], object],
                                                                  folder: Path) -> None:
    before = opened(folder)
    give(before, [1, 2], "coat")
    PairLog(before).give(3, 4, True)
    change(folder)
    after = opened(folder)
    assert after.fingerprint != before.fingerprint
    assert given(after) == {"b.png": "coat", "c.png": "coat"}
    assert pairs(after) == {("d.png", "e.png", True)}
    give(after, [after.names.index("d.png")], "bag")
    assert undo(after) == [after.names.index("d.png")]


def test_what_was_said_of_an_image_waits_until_it_comes_back(folder: Path) -> None:
    give(opened(folder), [0], "coat")
    PairLog(opened(folder)).give(1, 2, False)
    PairLog(opened(folder)).give(0, 5, True)
    (folder / "a.png").rename(folder.parent / "a.png")
    without = opened(folder)
    assert given(without) == {}
    assert pairs(without) == {("b.png", "c.png", False)}
    (folder.parent / "a.png").rename(folder / "a.png")
    assert given(opened(folder)) == {"a.png": "coat"}
    assert pairs(opened(folder)) == {("b.png", "c.png", False), ("a.png", "f.png", True)}
    (folder / "a.png").unlink()
    assert PairLog(opened(folder)).undo() is None  # it was about an image that is gone
    assert pairs(opened(folder)) == {("b.png", "c.png", False)}


def test_a_folder_that_was_moved_or_copied_takes_it_along(folder: Path) -> None:
    give(opened(folder), [1], "coat")
    copied = Path(shutil.copytree(folder, folder.with_name("copy")))
    give(opened(copied), [2], "bag")
    assert given(opened(copied)) == {"b.png": "coat", "c.png": "bag"}
    assert given(opened(folder)) == {"b.png": "coat"}
    moved = copied.rename(folder.with_name("moved"))
    assert given(opened(moved)) == {"b.png": "coat", "c.png": "bag"}, "what was said last about these images"
    (folder / "j.png").unlink()
    assert given(opened(folder)) == {"b.png": "coat"}
    elsewhere = folder.rename(folder.with_name("elsewhere"))
    assert given(opened(elsewhere)) == {"b.png": "coat"}, "also where nothing was said since the images changed"


@pytest.mark.parametrize("name", ["digits", "fashion-mini"])
def test_no_two_images_have_one_name(name: str) -> None:
    names = catalog.load(name).names
    assert len(set(names)) == len(names)


def test_it_lies_beside_no_cache_unless_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = opened(folder)
    monkeypatch.delenv("UDML_CACHE")
    monkeypatch.setenv("XDG_DATA_HOME", str(folder.parent / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.parent / "caches"))
    give(dataset, [0], "coat")
    assert log_path_of(dataset, "labels").is_relative_to(folder.parent / "data")
