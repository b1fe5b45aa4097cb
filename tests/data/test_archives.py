"""ZIP and TAR archives: what is extracted, what is refused, and that a failed import leaves nothing."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from tests.data.test_official_lists import write_cub
from tests.running import spec
from udml_core.base.errors import UserError
from udml_core.cli.commands import app
from udml_core.data import catalog
from udml_core.data.sources import archive
from udml_core.data.sources.official.layout import OfficialLayout


def png(gray: int) -> bytes:
    content = io.BytesIO()
    Image.new("L", (12, 12), gray).save(content, "PNG")
    return content.getvalue()


PHOTOS = {"photos/cats/1.png": png(10), "photos/cats/2.png": png(20), "photos/dogs/1.png": png(30),
          "photos/dogs/2.png": png(40)}


@pytest.mark.parametrize("suffix", [".zip", ".tar.xz"])
def test_the_images_of_an_archive_are_listed_without_extracting_it(suffix: str, tmp_path: Path) -> None:
    def listed(files: dict[str, bytes]) -> list[str]:
        with write_archive(tmp_path / f"list{suffix}", files).open("rb") as file:
            return archive.image_paths(file, "list")

    assert listed(PHOTOS) == ["cats/1.png", "cats/2.png", "dogs/1.png", "dogs/2.png"]
    assert listed({"../up/cats/1.png": png(1), ".hidden/2.png": png(2), "up/3.png": png(3)}) == ["cats/1.png", "3.png"]
    assert listed({**PHOTOS, "photos/metadata.csv": b"image,class\n"}) == [], "a table can name the classes"
    assert [path.name for path in tmp_path.iterdir()] == [f"list{suffix}"]


@pytest.fixture(autouse=True)
def imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of imports, in an otherwise empty folder."""
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "imports"


def write_archive(path: Path, files: dict[str, bytes]) -> Path:
    """Write a ZIP or TAR file by the extension of its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, content in files.items():
                packed.writestr(name, content)
        return path
    mode = {".gz": "w:gz", ".tgz": "w:gz", ".bz2": "w:bz2", ".xz": "w:xz"}.get(path.suffix, "w")
    with tarfile.open(path, mode) as packed:  # type: ignore[call-overload]
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    return path


def stored(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


@pytest.mark.parametrize("ending", ["zip", "tar", "tar.gz", "tgz", "tar.bz2", "tar.xz"])
def test_an_archive_equals_its_folder_and_is_extracted_once(
        ending: str, tmp_path: Path, imports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content in PHOTOS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    path, steps = write_archive(tmp_path / f"my photos.{ending}", PHOTOS), []
    dataset = catalog.load(str(path), lambda share, step: steps.append((share, step)))
    assert dataset.fingerprint == catalog.load(str(tmp_path / "photos")).fingerprint
    assert dataset.class_names == ("cats", "dogs")
    shares = [share for share, step in steps if step == f"extracting my photos.{ending}"]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    (folder,) = imports.iterdir()
    assert folder.name.startswith("my photos-")
    assert catalog.find(dataset.name).name == dataset.name == str(folder.resolve()), "a run finds the folder"
    assert dataset.name in catalog.remembered_folders()
    monkeypatch.setattr(catalog, "extract", None)
    assert catalog.load(str(path)).name == dataset.name
    assert catalog.load(f"{path}#level=0").labels is None


def test_another_archive_of_the_same_name_is_another_data_set(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "a" / "photos.zip", PHOTOS)
    other = write_archive(tmp_path / "b" / "photos.zip", PHOTOS | {"photos/cats/3.png": png(50)})
    assert [len(catalog.load(str(each))) for each in (path, other)] == [4, 5]


@pytest.mark.parametrize("ending", ["zip", "tar"])
@pytest.mark.parametrize("name", ["../../../{}", "/{}", "a/../../{}", "..\\..\\{}", "C:\\{}", "//{}", "./../{}"])
def test_no_path_leads_out_of_the_import(name: str, ending: str, tmp_path: Path, imports: Path) -> None:
    own = f"udml-{tmp_path.name}.png"
    try:
        catalog.load(str(write_archive(tmp_path / f"a.{ending}", {name.format(own): png(0), "beside.png": png(1)})))
        (folder,) = imports.iterdir()
        assert {Path(file).name for file in stored(folder)} == {own, "beside.png"}
        assert [path for path in tmp_path.rglob(own) if not path.is_relative_to(imports)] == []
        assert not (Path("/") / own).exists()
    finally:
        (Path("/") / own).unlink(missing_ok=True)


def test_links_devices_hidden_files_and_programs_are_left_out(tmp_path: Path, imports: Path) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(png(99))
    path = write_archive(tmp_path / "a.tar", PHOTOS | {"photos/.hidden.png": png(1), "photos/run.sh": b"touch attacked",
                                                       "photos/run.py": b"1", "photos/notes.txt": b"text"})
    with tarfile.open(path, "a") as packed:
        for kind, name in ((tarfile.SYMTYPE, "link"), (tarfile.LNKTYPE, "hard"), (tarfile.FIFOTYPE, "pipe"),
                           (tarfile.CHRTYPE, "device")):
            member = tarfile.TarInfo(f"photos/{name}.png")
            member.type, member.linkname = kind, str(secret)
            packed.addfile(member)
        folder_link = tarfile.TarInfo("photos/birds")
        folder_link.type, folder_link.linkname = tarfile.SYMTYPE, str(tmp_path)
        packed.addfile(folder_link)
        through = tarfile.TarInfo("photos/birds/through.png")
        through.size = len(png(5))
        packed.addfile(through, io.BytesIO(png(5)))
    catalog.load(str(path))
    (folder,) = imports.iterdir()
    assert stored(folder) == {*(name.removeprefix("photos/") for name in PHOTOS), "notes.txt", "birds/through.png"}
    assert not any(file.is_symlink() for file in folder.rglob("*"))
    assert not (tmp_path / "through.png").exists()
    assert not any(os.access(file, os.X_OK) for file in folder.rglob("*") if file.is_file())


def test_a_link_in_a_zip_file_is_left_out(tmp_path: Path, imports: Path) -> None:
    path = write_archive(tmp_path / "a.zip", PHOTOS)
    with zipfile.ZipFile(path, "a") as packed:
        link = zipfile.ZipInfo("photos/cats/link.png")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        packed.writestr(link, str(tmp_path / "secret.png"))
    catalog.load(str(path))
    (folder,) = imports.iterdir()
    assert stored(folder) == {name.removeprefix("photos/") for name in PHOTOS}


def zeros(count: int) -> dict[str, bytes]:
    return PHOTOS | {"photos/zeros.txt": bytes(count)}


@pytest.mark.parametrize(("ending", "files"), [
    ("zip", zeros(2_000_000)), ("tar.gz", zeros(2_000_000)), ("tar.xz", zeros(2_000_000)),
    ("tar.gz", PHOTOS | {"photos/left.out": bytes(2_000_000)})])
def test_an_archive_that_extracts_to_far_more_than_its_length_is_refused(
        ending: str, files: dict[str, bytes], tmp_path: Path, imports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "FREE_BYTES", 100_000)
    path = write_archive(tmp_path / f"bomb.{ending}", files)
    with pytest.raises(UserError, match=rf"bomb.{ending} has {path.stat().st_size:,} bytes and extracts to more than"):
        catalog.load(str(path))
    assert list(imports.iterdir()) == []
    assert catalog.remembered_folders() == []


def test_too_many_files_or_bytes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_archive(tmp_path / "a.zip", PHOTOS)
    with monkeypatch.context() as patched:
        patched.setattr(archive, "MOST_FILES", 3)
        with pytest.raises(UserError, match="more than 3 files"):
            catalog.load(str(path))
    with monkeypatch.context() as patched:
        patched.setattr(archive, "MOST_BYTES", 100)
        with pytest.raises(UserError, match="extracts to more than 100"):
            catalog.load(str(path))
    assert len(catalog.load(str(path))) == 4


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def changed(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes(byte ^ 255 for byte in content[middle: middle + 40]) + content[middle + 40:]


@pytest.mark.parametrize("ending", ["zip", "tar.gz", "tar.bz2", "tar.xz"])
@pytest.mark.parametrize("damage", [cut, changed, lambda _: b"<html>404</html>", lambda _: b""])
def test_a_damaged_archive_is_one_message_and_leaves_nothing(
        ending: str, damage: Callable[[bytes], bytes], tmp_path: Path, imports: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, 40_000, dtype=np.uint8).tobytes()
    path = write_archive(tmp_path / f"a.{ending}", PHOTOS | {"photos/noise.bin": noise})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UserError, match=rf"a.{ending} could not be extracted: .* Download or pack it again"):
        catalog.load(str(path))
    assert list(imports.iterdir()) == []
    assert catalog.remembered_folders() == []


@pytest.mark.parametrize("damage", [
    lambda content: content[: 3 * 1024 + 10] + b"!" + content[3 * 1024 + 11 :],
    lambda content: content[: 2 * 1024 + 100], lambda content: content[: 4 * 1024],
], ids=["header", "cut in a header", "no end"])
def test_a_damaged_plain_tar_file_loses_no_image_silently(
        damage: Callable[[bytes], bytes], tmp_path: Path, imports: Path) -> None:
    path = write_archive(tmp_path / "photos.tar", PHOTOS)  # a header and a block of content for each image
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UserError, match=r"photos\.tar could not be extracted"):
        catalog.extracted(str(path))
    assert stored(imports) == set()


def test_the_last_copy_of_a_path_counts_and_a_file_is_no_folder(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "photos.tar", PHOTOS)
    with tarfile.open(path, "a") as packed:
        member = tarfile.TarInfo("photos/cats/1.png")
        member.size = len(png(99))
        packed.addfile(member, io.BytesIO(png(99)))
    dataset = catalog.load(catalog.extracted(str(path)))
    assert len(dataset) == len(PHOTOS)
    assert dataset.images[0].getpixel((0, 0)) == (99, 99, 99)
    with pytest.raises(UserError, match=r"a file and a folder of the same name on the way to 'cats/1\.png'"):
        catalog.extracted(str(write_archive(tmp_path / "clash.tar", {"cats": b"", "cats/1.png": png(1)})))


def test_an_archive_without_images_names_what_was_expected(tmp_path: Path, imports: Path) -> None:
    path = write_archive(tmp_path / "texts.zip", {"a/readme.txt": b"text"})
    with pytest.raises(UserError, match=r"The folder texts.zip has no images. Expected: folder/CLASS/image.jpg"):
        catalog.load(str(path))
    assert list(imports.iterdir()) == []


@pytest.mark.parametrize(("names", "found"), [(("a/v.npy", "a/v.csv"), "'a/v.npy', which"), (
    ("v.parquet", "w.npz"), "'v.parquet' and 1 more, which")])
def test_an_archive_of_a_table_says_to_extract_it_and_to_open_the_table(
        names: tuple[str, ...], found: str, tmp_path: Path, imports: Path) -> None:
    path = write_archive(tmp_path / "v.zip", dict.fromkeys(names, b"content"))
    with pytest.raises(UserError, match=rf"v.zip has no images, but {found} .* Extract the archive, and open"):
        catalog.load(str(path))
    assert list(imports.iterdir()) == []


def test_an_encrypted_archive_is_refused(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "a.zip", PHOTOS)
    content = bytearray(path.read_bytes())
    for start, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(start) + flags] |= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match="is encrypted"):
        catalog.load(str(path))


def test_a_killed_import_leaves_nothing_listed_and_can_be_repeated(
        tmp_path: Path, imports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_archive(tmp_path / "a.zip", PHOTOS)

    for target, name in ((catalog, "remember"), (Path, "rename"), (archive, "_write")):
        with monkeypatch.context() as patched:
            def kill(*_: object, patched: pytest.MonkeyPatch = patched) -> None:
                patched.setattr(catalog.shutil, "rmtree", lambda *_, **__: None)  # a kill does not clean up
                raise KeyboardInterrupt

            patched.setattr(target, name, kill)
            with pytest.raises(KeyboardInterrupt):
                catalog.load(str(path))
        assert catalog.remembered_folders() == []
        assert [entry.name[:3] for entry in imports.iterdir()] == [".a-"]
    assert len(catalog.load(str(path))) == 4
    assert [entry.name[:2] for entry in imports.iterdir()] == ["a-"]


def test_two_imports_of_one_archive_at_once_give_one_folder(tmp_path: Path, imports: Path) -> None:
    path = write_archive(tmp_path / "a.tar", PHOTOS)
    with ThreadPoolExecutor(4) as pool:
        datasets = list(pool.map(catalog.load, [str(path)] * 4))
    assert {len(dataset) for dataset in datasets} == {4}
    assert len(list(imports.iterdir())) == 1


def test_an_official_layout_in_an_archive_keeps_its_lists(tmp_path: Path) -> None:
    root = write_cub(tmp_path / "disk")
    files = {path.relative_to(root.parent).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    path = write_archive(tmp_path / "CUB_200_2011.tgz", files | {"attributes.txt": b"1 bill\n"})
    dataset = catalog.load(str(path))
    assert dataset.fingerprint == catalog.load(str(root)).fingerprint
    assert isinstance(catalog.find(dataset.name), OfficialLayout)
    catalog.remember(dataset.name)
    catalog.remember(f"{dataset.name}#crop=box")
    assert catalog.remembered_folders() == [f"{dataset.name}#crop=box"], "it is listed once"
    assert catalog.load(f"{path}#crop=box").images[0].size == (5, 4)


def test_an_uploaded_archive_gets_the_given_name(tmp_path: Path, imports: Path) -> None:
    content = io.BytesIO(write_archive(tmp_path / "a.tar.gz", PHOTOS).read_bytes())
    folder = catalog.import_archive("Holiday", content, "a.tar.gz")
    assert folder == imports / "Holiday"
    with pytest.raises(UserError, match="'Holiday' exists already"):
        catalog.import_archive("Holiday", content, "a.tar.gz")


def test_an_exposed_server_extracts_no_archive_outside_of_its_folders(
        tmp_path: Path, imports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_archive(tmp_path / "a.zip", PHOTOS)
    monkeypatch.setenv("UDML_EXPOSED", "1")
    monkeypatch.setenv("UDML_DATA", str(tmp_path / "data"))
    with pytest.raises(UserError, match="There is no data set"):
        catalog.load(str(path))
    assert not imports.exists()


def test_a_run_and_the_list_of_data_sets_name_the_imported_folder(tmp_path: Path, imports: Path) -> None:
    path = write_archive(tmp_path / "pets.zip", PHOTOS)
    planned = spec("frozen", str(path), split="all")
    (folder,) = imports.iterdir()
    assert planned.dataset == str(folder)
    answer = CliRunner().invoke(app, ["datasets", "--remember", str(path)])
    assert answer.exit_code == 0
    assert str(folder) in answer.output
