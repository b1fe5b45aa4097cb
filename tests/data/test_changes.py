"""Folders that change between two loads, and folders with too few readable images."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from tests.running import write_digits
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.sources import scanning
from udml_core.data.sources.image_folder import Folder


def add(folder: Path) -> None:
    Image.effect_noise((30, 30), 50).save(folder / "class 1" / "new.png")


def remove(folder: Path) -> None:
    next(folder.rglob("*.png")).unlink()


def repaint(folder: Path) -> None:
    Image.effect_noise((30, 30), 50).save(next(folder.rglob("*.png")))


def change_class(folder: Path) -> None:
    next((folder / "class 1").iterdir()).rename(folder / "class 2" / "moved.png")


@pytest.mark.parametrize("change", [add, remove, repaint, change_class])
def test_every_change_of_the_images_changes_the_fingerprint(change: Callable[[Path], None], tmp_path: Path) -> None:
    folder = write_digits(tmp_path, 30)
    before = catalog.load(str(folder)).fingerprint
    assert catalog.load(str(folder)).fingerprint == before
    change(folder)
    assert catalog.load(str(folder)).fingerprint != before


@pytest.mark.parametrize("name", ["class 1/notes.txt", "class 1/.hidden.png", ".trash/1.png", "broken.jpg"])
def test_files_that_are_not_images_do_not_change_the_data_set(name: str, tmp_path: Path) -> None:
    folder = write_digits(tmp_path, 30)
    before = catalog.load(str(folder))
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(b"text")
    after = catalog.load(str(folder))
    assert (after.fingerprint, after.names, after.class_names) == (before.fingerprint, before.names, before.class_names)


def test_a_second_load_decodes_only_changed_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_digits(tmp_path, 30)
    damaged = folder / "class 1" / "damaged.png"
    damaged.write_bytes(next(folder.rglob("*.png")).read_bytes()[:60])
    assert [skipped.file for skipped in catalog.load(str(folder)).skipped] == ["class 1/damaged.png"]
    Image.effect_noise((30, 30), 50).save(damaged)
    decoded: list[str] = []
    open_image = scanning.open_image
    monkeypatch.setattr(scanning, "open_image", lambda file: decoded.append(Path(file.name).name) or open_image(file))
    dataset = catalog.load(str(folder))
    assert decoded == ["damaged.png"]
    assert (len(dataset), dataset.skipped) == (31, ())


@pytest.mark.parametrize(("readable", "damaged"), [(0, 3), (1, 0), (1, 2)])
def test_too_few_readable_images_are_an_error_with_their_number(readable: int, damaged: int, tmp_path: Path) -> None:
    if readable:
        write_digits(tmp_path, readable, by_class=False)
    for index in range(damaged):
        (tmp_path / f"damaged {index}.jpg").write_text("text")
    first = " The first skipped file is 'damaged 0.jpg': not an image." if damaged else ""
    message = rf"at least 2 readable images, got {readable} \({damaged} skipped\).{first} Expected: folder/CLASS"
    with pytest.raises(UserError, match=message):
        catalog.load(str(tmp_path))


def test_a_missing_folder_or_a_folder_without_images_raises_an_error_with_the_expected_layout(tmp_path: Path) -> None:
    folder = write_digits(tmp_path / "folder", 4)
    source = Folder(folder)
    folder.rename(tmp_path / "renamed")
    with pytest.raises(UserError, match=r"does not exist. Expected: folder/CLASS"):
        source.load(lambda _share, _step: None)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "film.mp4").write_bytes(b"film")
    with pytest.raises(UserError, match=r"has no images. Expected: .*with the extensions .avif, .bmp, .gif, .heic"):
        catalog.load(str(tmp_path / "folder"))


def test_an_unknown_name_raises_an_error_with_the_known_names() -> None:
    with pytest.raises(UserError, match=r"no data set 'digitz'.* Known: fashion-mini, digits, emoji, fashion-mnist"):
        catalog.find("digitz")
