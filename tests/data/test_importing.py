"""Imports of uploaded files: every image is stored, and only in the import folder."""

from __future__ import annotations

import io
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from udml_core.base.errors import UserError
from udml_core.data import catalog


def png(index: int) -> bytes:
    content = io.BytesIO()
    Image.fromarray((load_digits().images[index] * 15).astype(np.uint8)).save(content, "PNG")
    return content.getvalue()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache in an otherwise empty folder.

    A file outside of the cache is noticed.
    """
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "outer" / "cache"))
    return tmp_path / "outer" / "cache"


@pytest.mark.parametrize(("path", "stored"), [
    ("//{name}", "{name}"), ("/{name}", "{name}"), ("///a/{name}", "a/{name}"), ("/etc/a/{name}", "etc/a/{name}"),
    ("../../../../{name}", "{name}"), ("a/../../{name}", "a/{name}"), ("..\\..\\a\\{name}", "a/{name}"),
    ("\\\\{name}", "{name}"), ("C:\\a\\{name}", "C_/a/{name}"), ("C:{name}", "C_{name}"), ("./{name}", "{name}"),
])
def test_no_path_leads_out_of_the_import(path: str, stored: str, cache: Path) -> None:
    name = f"udml-{cache.parent.parent.name}.png"
    outside = Path("/") / name
    try:
        folder = catalog.import_files("mine", [(path.format(name=name), png(0)), ("beside.png", png(1))])
        assert not outside.exists()
        assert {file.relative_to(folder).as_posix() for file in folder.rglob("*.png")} == {
            "beside.png", stored.format(name=name)}
        assert {file.name for file in cache.parent.parent.rglob("*.png")} == {
            "beside.png", stored.format(name=name).split("/")[-1]}
    finally:
        outside.unlink(missing_ok=True)


def test_images_with_the_same_name_and_class_are_all_stored(cache: Path) -> None:
    files = [("holiday/cats/1.png", png(year)) for year in range(4)] + [("holiday/dogs/1.png", png(9))]
    folder = catalog.import_files("holiday", files)
    dataset = catalog.load(str(folder))
    assert dataset.class_sizes.tolist() == [4, 1]
    assert {(folder / name).read_bytes() for name in dataset.names} == {content for _, content in files}


def test_a_dropped_folder_equals_the_same_folder_opened_by_its_path(cache: Path, tmp_path: Path) -> None:
    files = [(f"pets/{kind}/{year}/{index}.png", png(index)) for kind in ("cat", "dog") for year in (2024, 2025)
             for index in range(2)] + [("__MACOSX/pets/._1.png", b""), ("pets/.thumbnails/1.png", png(5))]
    for path, content in files:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    dropped = catalog.load(str(catalog.import_files("pets", files)))
    by_path = catalog.load(str(tmp_path / "pets"))
    assert by_path.class_sizes.tolist() == [4, 4]
    assert (dropped.class_names, dropped.names, dropped.fingerprint) == (
        by_path.class_names, by_path.names, by_path.fingerprint)
    assert not list((cache / "imports").glob(".*"))


@pytest.mark.parametrize(("name", "file", "message"), [
    ("n" * 300, "1.png", "needs a name of 1 to 60 letters"), ("mine", "1" * 300 + ".png", "could not be stored in"),
])
def test_names_that_are_too_long_are_rejected(name: str, file: str, message: str, cache: Path) -> None:
    with pytest.raises(UserError, match=message):
        catalog.import_files(name, [(file, png(0))])
    assert not list(cache.rglob("*.png*"))


def test_a_temporarily_disconnected_folder_is_not_forgotten(cache: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    catalog.remember(disk)
    disk.rename(tmp_path / "disconnected")
    catalog.remember(tmp_path)
    assert catalog.remembered_folders() == [str(tmp_path.resolve())]
    (tmp_path / "disconnected").rename(disk)
    assert catalog.remembered_folders() == [str(disk.resolve()), str(tmp_path.resolve())]


def test_a_rejected_import_leaves_no_files_and_can_be_repeated(cache: Path) -> None:
    with pytest.raises(UserError, match="None of the files is an image"):
        catalog.import_files("mine", [("readme.md", b"text"), ("..", b""), ("", b"")])
    folder = catalog.import_files("mine", [("1.png", png(0)), ("2.png", png(1))])
    assert catalog.load(str(folder)).labels is None
    assert catalog.remembered_folders() == [str(folder.resolve())]
    before = {file: file.read_bytes() for file in folder.rglob("*.png")}
    with pytest.raises(UserError, match="'mine' exists already"):
        catalog.import_files("mine", [("1.png", png(5))])
    assert {file: file.read_bytes() for file in folder.rglob("*.png")} == before


@pytest.mark.parametrize("content", ["", "not json", "5", "{}", "[1]", '["/no/such/folder"]'])
def test_a_damaged_list_of_folders_counts_as_empty(content: str, cache: Path, tmp_path: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "folders.json").write_text(content)
    assert catalog.remembered_folders() == []
    catalog.remember(tmp_path)
    assert catalog.remembered_folders() == [str(tmp_path.resolve())]


def test_forgotten_folders_keep_their_images_and_missing_folders_are_not_listed(cache: Path, tmp_path: Path) -> None:
    folders = [catalog.import_files(name, [("1.png", png(0))]) for name in ("first", "second", "third")]
    catalog.forget(folders[0])
    assert (folders[0] / "1.png").exists()
    folders[1].rename(tmp_path / "elsewhere")
    assert catalog.remembered_folders() == [str(folders[2].resolve())]


def test_a_killed_import_can_be_repeated(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", kill)
        with pytest.raises(KeyboardInterrupt):
            catalog.import_files("mine", [("1.png", png(0)), ("2.png", png(1))])
    with monkeypatch.context() as patched:
        patched.setattr(catalog, "remember", kill)
        with pytest.raises(KeyboardInterrupt):
            catalog.import_files("mine", [("1.png", png(0)), ("2.png", png(1))])
    folder = catalog.import_files("mine", [("1.png", png(0)), ("2.png", png(1))])
    assert catalog.remembered_folders() == [str(folder.resolve())]


def test_a_folder_without_access_is_skipped(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before Python 3.13 Path.is_dir raises PermissionError.

    It also raises any error of a disconnected network disk.
    """
    catalog.remember(tmp_path)
    stat = os.stat

    def deny(path: Any, *arguments: Any, **options: Any) -> os.stat_result:
        if str(path) == str(tmp_path):
            raise PermissionError(13, "Permission denied")
        return stat(path, *arguments, **options)

    monkeypatch.setattr(os, "stat", deny)
    assert catalog.remembered_folders() == []
    assert len(catalog.load("digits")) == 1797
    monkeypatch.undo()


def test_folders_remembered_at_the_same_time_are_all_stored(cache: Path, tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(24)]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(catalog.remember, folders))
    assert set(catalog.remembered_folders()) == {str(folder.resolve()) for folder in folders}
