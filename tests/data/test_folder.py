"""Image folders: labels, skipped files, modes, fingerprints and the folder list."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.running import write_digits
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.dataset import skipped_words
from udml_core.data.sources.image_folder import Folder
from udml_core.data.sources.levels import class_levels, first_class_level
from udml_core.data.splits import default_split, make_split, words_of_halves


def test_subfolders_are_the_classes_in_sorted_order(tmp_path: Path) -> None:
    dataset = catalog.load(str(write_digits(tmp_path, 60)))
    assert dataset.class_names == tuple(f"class {digit}" for digit in range(10))
    assert dataset.labels is not None
    assert [dataset.names[index].split("/")[0] for index in range(60)] == [
        dataset.class_names[label] for label in dataset.labels]
    assert (dataset.native_size, dataset.gray, dataset.skipped) == (24, True, ())


@pytest.mark.parametrize("classes", [(), ("only",)])
def test_fewer_than_two_subfolders_give_no_labels(classes: tuple[str, ...], tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*classes)
    write_digits(folder, 5, by_class=False)
    dataset = catalog.load(str(tmp_path))
    assert dataset.labels is None
    assert dataset.class_names == ()
    assert len(dataset) == 5


def test_unreadable_files_are_skipped_and_listed_with_their_reason(tmp_path: Path) -> None:
    write_digits(tmp_path, 40)
    outside = tmp_path / "outside.jpg"
    Image.effect_noise((300, 300), 80).save(outside)
    (tmp_path / "class 1" / "cut.jpg").write_bytes(outside.read_bytes()[:3000])
    (tmp_path / "class 1" / "empty.png").write_bytes(b"")
    (tmp_path / "class 1" / "text.jpg").write_text("hello")
    Image.new("L", (2, 2)).save(tmp_path / "class 1" / "tiny.png")
    (tmp_path / "class 1" / "notes.txt").write_text("a text with the extension of a text")
    (tmp_path / "class 1" / ".hidden.png").write_bytes(b"")
    assert Folder(tmp_path).count_words() == "45 files", "nothing was read yet"
    dataset = catalog.load(str(tmp_path))
    assert Folder(tmp_path).count_words() == "41 images, 4 files cannot be read"
    assert skipped_words(len(dataset), dataset.skipped) == "4 files cannot be read; 1 file not used"
    reasons = {Path(skipped.file).name: skipped.reason for skipped in dataset.skipped}
    assert reasons.keys() == {"cut.jpg", "empty.png", "text.jpg", "tiny.png", "outside.jpg"}
    assert "truncated" in reasons["cut.jpg"]
    assert reasons["text.jpg"] == reasons["empty.png"] == "not an image"
    assert "too small: 2×2" in reasons["tiny.png"]
    assert "not in a class folder" in reasons["outside.jpg"]
    assert len(dataset) == 40


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16"])
def test_every_image_mode_is_read_as_rgb(mode: str, tmp_path: Path) -> None:
    suffix = "tif" if mode in ("CMYK", "I;16") else "png"
    for index in range(2):
        image = Image.new("RGBA", (12, 10), (255, 0, 0, 0)) if mode == "RGBA" else Image.new(
            "L" if mode == "I;16" else mode, (12, 10))
        (image.convert("I;16") if mode == "I;16" else image).save(tmp_path / f"{index} ü.{suffix}")
    read = catalog.load(str(tmp_path)).images[0]
    assert (read.mode, read.size) == ("RGB", (12, 10))
    if mode == "RGBA":
        assert read.getpixel((0, 0)) == (255, 255, 255), "transparent pixels must be white"


def test_a_photograph_is_turned_by_its_exif_orientation(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    for index in range(2):
        Image.new("RGB", (20, 10)).save(tmp_path / f"{index}.jpg", exif=exif)
    assert catalog.load(str(tmp_path)).images[0].size == (10, 20)


def test_the_fingerprint_does_not_depend_on_the_path_or_the_time(tmp_path: Path) -> None:
    first = write_digits(tmp_path / "first", 30)
    before = catalog.load(str(first)).fingerprint
    moved = first.rename(tmp_path / "second")
    assert catalog.load(str(moved)).fingerprint == before
    os.utime(next(moved.rglob("*.png")), (1, 1))
    assert catalog.load(str(moved)).fingerprint == before


def test_images_with_equal_names_sizes_and_times_but_other_content_change_the_fingerprint(tmp_path: Path) -> None:
    for name, gray in (("first", 0), ("second", 200)):
        (tmp_path / name).mkdir()
        for index in range(3):
            Image.new("L", (12, 12), gray + index).save(tmp_path / name / f"{index}.bmp")
            os.utime(tmp_path / name / f"{index}.bmp", (1, 1))
    first, second = (catalog.load(str(tmp_path / name)) for name in ("first", "second"))
    assert first.names == second.names
    assert first.fingerprint != second.fingerprint


def test_the_signature_changes_with_every_file(tmp_path: Path) -> None:
    folder = write_digits(tmp_path, 20)
    signatures = [Folder(folder).signature()]
    image = next((folder / "class 1").iterdir())
    for change in (lambda: image.rename(folder / "class 2" / "moved.png"), lambda: os.utime(folder / "class 2", (1, 1)),
                   lambda: os.utime(folder / "class 2" / "moved.png", (1, 1)),
                   lambda: (folder / "class 2" / "moved.png").write_bytes(b"damaged")):
        change()
        signatures.append(Folder(folder).signature())
    assert signatures[1] == signatures[2], "the time of a folder must not count"
    assert len(set(signatures)) == 4


def test_a_file_name_that_is_not_unicode_is_skipped_with_its_reason(tmp_path: Path) -> None:
    folder = write_digits(tmp_path, 20)
    content = next(folder.rglob("*.png")).read_bytes()
    try:
        (Path(os.fsdecode(bytes(folder) + b"/class 1/caf\xe9.png"))).write_bytes(content)
    except OSError:
        pytest.skip("this file system allows Unicode names only")
    subfolder = Path(os.fsdecode(bytes(folder) + b"/caf\xe9"))
    subfolder.mkdir()
    (subfolder / "1.png").write_bytes(content)
    dataset = catalog.load(str(folder))
    assert len(dataset) == 20
    assert {(skipped.file, skipped.reason.split(":")[0]) for skipped in dataset.skipped} == {
        ("caf\ufffd/1.png", "its name is not valid Unicode text"),
        ("class 1/caf\ufffd.png", "its name is not valid Unicode text")}
    assert "is not valid Unicode text. Rename it" in str(Folder(subfolder).missing())
    for file in folder.rglob("*.png"):
        if file.parent != subfolder:
            file.unlink()
    with pytest.raises(UserError, match=r"got 0 \(1 skipped\). The first skipped file is 'caf\ufffd/1.png': its name "
                                        "is not valid Unicode text: rename it. Expected"):
        catalog.load(str(folder))


def test_links_to_folders_and_files_are_followed_and_cycles_end(tmp_path: Path) -> None:
    write_digits(tmp_path / "elsewhere", 30)
    folder = tmp_path / "linked"
    folder.mkdir()
    for name in ("class 1", "class 2"):
        (folder / name).symlink_to(tmp_path / "elsewhere" / name)
    (folder / "class 3").mkdir()
    (folder / "class 3" / "linked.png").symlink_to(next((tmp_path / "elsewhere" / "class 3").iterdir()))
    (folder / "cycle").symlink_to(folder)
    (folder / "class 3" / "dangling.png").symlink_to(tmp_path / "nowhere")
    dataset = catalog.load(str(folder))
    assert dataset.class_names == ("class 1", "class 2", "class 3")
    assert dataset.class_sizes.tolist() == [3, 3, 1]


@pytest.mark.parametrize(("make", "message"), [
    (lambda path: path, "no data set"),
    (lambda path: path.mkdir() or path, r"has no images. Expected: folder/CLASS/image.jpg"),
    (lambda path: path.write_text("") or path, "must be a folder of images"),
])
def test_a_path_that_is_not_a_folder_of_images_is_an_error(make: object, message: str, tmp_path: Path) -> None:
    make(tmp_path / "path")  # type: ignore[operator]
    with pytest.raises(UserError, match=message):
        catalog.load(str(tmp_path / "path"))


def test_an_image_deleted_after_loading_is_named_in_the_error(tmp_path: Path) -> None:
    dataset = catalog.load(str(write_digits(tmp_path, 20)))
    (tmp_path / dataset.names[3]).unlink()
    with pytest.raises(UserError, match=r"could be read when the data set was opened"):
        dataset.images[3]


def test_folders_are_remembered_and_forgotten(tmp_path: Path) -> None:
    folder = write_digits(tmp_path, 10)
    catalog.remember(folder)
    catalog.remember(folder)
    assert [source.name for source in catalog.sources()].count(str(folder)) == 1
    catalog.forget(folder)
    assert str(folder) not in [source.name for source in catalog.sources()]


def test_imported_files_keep_their_class_folder_and_stay_in_the_import(tmp_path: Path) -> None:
    content = next(write_digits(tmp_path, 1).rglob("*.png")).read_bytes()
    files = [("cats/1.png", content), ("dogs/2.png", content), ("../../../dogs/3.png", content),
             ("readme.md", b"text")]
    folder = catalog.import_files("my/holiday", files)
    assert folder.name == "myholiday"
    dataset = Folder(folder).load(lambda _share, _step: None)
    assert dataset.names == ("cats/1.png", "dogs/2.png", "dogs/3.png")
    for name, uploads, message in (("my holiday!", [], "None of the files"), ("../", files, "needs a name"),
                                   ("myholiday", files, "already")):
        with pytest.raises(UserError, match=message):
            catalog.import_files(name, uploads)
    np.testing.assert_array_equal(dataset.labels, [0, 1, 1])


def nested(folder: Path, *files: str) -> Path:
    """Write a small image to each path below a folder."""
    for number, file in enumerate(files):
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8), number).save(path)
    return folder


def test_the_first_level_with_several_folders_gives_the_classes(tmp_path: Path) -> None:
    folder = nested(tmp_path, "photos/cats/1.png", "photos/cats/2.png", "photos/dogs/old/3.png", "photos/dogs/4.png")
    dataset = catalog.load(str(folder))
    assert dataset.class_names == ("cats", "dogs")
    assert dataset.class_sizes.tolist() == [2, 2]
    assert Folder(folder).classes == 2


@pytest.mark.parametrize(("level", "names", "labels", "skipped"), [
    (None, ("day", "night"), [0, 0, 1], []), (1, ("day", "night"), [0, 0, 1], []),
    (2, ("cats", "dogs"), [0, 1, 0], []), (0, (), None, [])])
def test_a_chosen_level_gives_the_classes(level: int | None, names: tuple[str, ...], labels: list[int] | None,
                                          skipped: list[str], tmp_path: Path) -> None:
    folder = nested(tmp_path, "day/cats/1.png", "day/dogs/2.png", "night/cats/3.png")
    dataset = catalog.load(f"{folder}#level={level}" if level is not None else str(folder))
    assert dataset.class_names == names
    assert (None if dataset.labels is None else dataset.labels.tolist()) == labels
    assert [entry.file for entry in dataset.skipped] == skipped
    assert (dataset.fingerprint == catalog.load(str(folder)).fingerprint) == (level in (None, 1))
    assert catalog.find(dataset.name).name == dataset.name, "a run finds the data set by its name"


def test_folders_of_halves_are_no_classes(tmp_path: Path) -> None:
    files = [f"{half}/{name}/{number}.png" for half, count in (("train", 3), ("test", 2))
             for name in ("a", "b", "c", "d") for number in range(count)]
    folder = nested(tmp_path / "photos", *files)
    dataset = catalog.load(str(folder))
    assert dataset.class_names == ("a", "b", "c", "d")
    assert default_split(dataset) == "seen"
    assert words_of_halves(dataset) == "12 train, 8 test"
    assert Folder(folder).describe() == (
        "20 images in 4 classes, by their folders. Halves given: 12 train, 8 test.")
    assert catalog.load(f"{folder}#level=1").class_names == ("test", "train")
    assert words_of_halves(catalog.load(f"{folder}#level=1")) == ""
    inside = catalog.load(str(nested(tmp_path / "outer", *(f"ds/{file}" for file in files))))
    assert (inside.class_names, words_of_halves(inside)) == (("a", "b", "c", "d"), "12 train, 8 test"), "around them"
    assert catalog.load(f"{tmp_path / 'outer'}#level=2").class_names == ("test", "train")
    under = nested(tmp_path / "deeper", *(f"x/{number}/{file}" for number, file in enumerate(files)))
    deeper = catalog.load(str(under))
    assert words_of_halves(deeper) == "", "only the first level with several folders can be the halves"
    unlabeled = catalog.load(str(nested(tmp_path / "plain", "Train/1.png", "Train/2.png", "val/3.png", "val/4.png")))
    assert (unlabeled.labels, words_of_halves(unlabeled)) == (None, "2 train, 2 test")
    assert default_split(unlabeled) == "all"
    apart = catalog.load(str(nested(tmp_path / "apart", *(f"train/{name}/1.png" for name in "xyz"), "test/b/2.png",
                                    "test/a/3.png")))
    assert default_split(apart) == "zero-shot"
    assert [apart.names[row] for row in make_split(apart, "zero-shot").test] == ["test/a/3.png", "test/b/2.png"]


def test_images_above_the_level_are_skipped(tmp_path: Path) -> None:
    folder = nested(tmp_path, "day/1.png", "day/cats/2.png", "day/dogs/3.png")
    dataset = catalog.load(f"{folder}#level=2")
    assert [entry.file for entry in dataset.skipped] == ["day/1.png"]
    assert dataset.names == ("day/cats/2.png", "day/dogs/3.png")


def test_a_deep_level_is_not_the_default_if_most_images_are_above_it() -> None:
    files = ["1.png", "2.png", "3.png", "a/b/4.png", "a/c/5.png"]
    assert first_class_level(class_levels(files)) == 0
    assert first_class_level(class_levels(files[1:])) == 2
    assert class_levels(files)[1].loose == 3


def test_a_level_without_two_classes_is_an_error_that_lists_the_levels(tmp_path: Path) -> None:
    folder = nested(tmp_path, "photos/cats/1.png", "photos/dogs/2.png")
    for level in (1, 3):
        with pytest.raises(UserError, match=f"class level must be 0, 2 in .*; got {level}"):
            catalog.load(f"{folder}#level={level}")
    with pytest.raises(UserError, match="Only a folder of images has class levels"):
        catalog.find("digits#level=2")


def test_a_folder_is_remembered_once_with_its_last_level(tmp_path: Path) -> None:
    folder = nested(tmp_path, "day/cats/1.png", "night/dogs/2.png")
    for name in (str(folder), f"{folder}#level=2"):
        catalog.remember(name)
    assert [source.name for source in catalog.sources() if source.name.startswith(str(folder))] == [f"{folder}#level=2"]
    catalog.forget(folder)
    assert str(folder) not in "".join(catalog.remembered_folders())


def test_a_folder_is_missing_until_it_lists_an_image(tmp_path: Path) -> None:
    for file in (".hidden.png", "__MACOSX.png", "notes.txt", ".thumbnails/1.png"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
        assert Folder(tmp_path).missing()
    (tmp_path / "inner" / "cats").mkdir(parents=True)
    (tmp_path / "inner" / "cats" / "1.PNG").touch()
    assert Folder(tmp_path).missing() is None
    (tmp_path / "link.png").symlink_to(tmp_path / "inner" / "cats" / "1.PNG")
    (tmp_path / "inner" / "cats" / "1.PNG").unlink()
    assert Folder(tmp_path).missing(), "a link to nothing is no image"
