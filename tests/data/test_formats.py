"""Formats of other libraries, read from small files that the libraries wrote; see formats/write.py."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import sys
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet

from tests.data.formats.write import CLASSES, COLORS, FORMATS, image, png
from tests.data.test_idx import DIGITS, idx_content
from tests.data.test_official_lists import classes_of, halves_of
from udml_core.base import bounded
from udml_core.base.errors import UserError
from udml_core.cli.output import audit_lines
from udml_core.data import catalog
from udml_core.data.dataset import Dataset, Skipped, read_user_image
from udml_core.data.sources.arrow_rows import ParquetRows
from udml_core.data.sources.image_folder import Folder
from udml_core.data.sources.image_rows import ImageRows, RowImages
from udml_core.data.sources.metadata import MetadataFolder
from udml_core.data.splits import default_split, words_of_split
from udml_core.exploration.audit import AuditSettings, audit_of, report_of

FOLDER = Path(__file__).parent / "formats"
ROOT = Path(__file__).parents[2]
NUMBERS = {"parquet": [4, 5, 0, 1, 2, 3], "arrow": range(6), "webdataset": [4, 5, 0, 1, 2, 3], "lance": range(6),
           "imagefolder": range(4), "fiftyone": range(4), "croissant": range(4), "heic": [0, 2, 1, 3],
           "avif": [0, 2, 1, 3], "webdataset-gz": range(4), "croissant-paths": range(4),
           "croissant-parquet": [4, 5, 0, 1, 2, 3]}
"""Numbers of the images in `write.py`, in the order of the data set."""
COLUMNS = {"parquet": ["size"], "arrow": ["size"], "webdataset": ["size"], "lance": [], "imagefolder": ["size"],
           "fiftyone": ["confidence"], "croissant": ["size"], "heic": [], "avif": [], "webdataset-gz": [],
           "croissant-paths": [], "croissant-parquet": ["size"]}
NEEDED = {"lance": "lancedb", "heic": "pi_heif"}
"""Packages without which a format cannot be read."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def copied(name: str, folder: Path) -> Path:
    return Path(shutil.copytree(FOLDER / name, folder / name))


def colors_of(dataset: Dataset) -> list[tuple[int, ...]]:
    return [dataset.images[row].getpixel((5, 5)) for row in range(len(dataset))]


@pytest.mark.parametrize("name", NUMBERS)
def test_a_data_set_that_the_library_wrote_has_its_images_labels_halves_and_columns(name: str) -> None:
    if name in NEEDED:
        pytest.importorskip(NEEDED[name])
    dataset, source = catalog.load(str(FOLDER / name)), catalog.find(str(FOLDER / name))
    numbers = list(NUMBERS[name])
    wanted = [CLASSES[number % 2] for number in numbers]
    names = dict(zip("01", CLASSES, strict=True)) if name.startswith("webdataset") else {word: word for word in CLASSES}
    assert [names[word] for word in classes_of(dataset)] == wanted
    expected = [np.subtract(COLORS[word], 5 * number) for word, number in zip(wanted, numbers, strict=True)]
    np.testing.assert_allclose(colors_of(dataset), expected, atol=3)  # AVIF and HEIC are lossy
    assert list(dataset.columns) == COLUMNS[name]
    if "size" in dataset.columns:
        np.testing.assert_array_equal(dataset.columns["size"], np.array(numbers) / 2)
    assert (source.images, source.classes) == (len(numbers), 2)
    assert not dataset.skipped
    assert len(set(dataset.names)) == len(numbers)
    if name in ("parquet", "arrow", "webdataset", "croissant-parquet"):
        assert [len(half) for half in halves_of(dataset, default_split(dataset))] == [4, 2]
        assert words_of_split(dataset, "seen") == (
            "The split 'seen' uses the given halves (4 train, 2 test); the split 'zero-shot' divides the classes, and "
            "the split 'all' trains and tests on all images.")
        assert words_of_split(dataset, "all", "--split {}") == (
            "The split 'all' does not use the given halves (4 train, 2 test); --split seen does.")
        assert dataset.official_test is not None
        assert dataset.official_test.tolist() == [number > 3 for number in numbers]


def test_lists_of_classes_judge_the_evaluation_and_names_have_no_path_of_a_computer() -> None:
    path = str(FOLDER / "several-classes" / "photos.parquet")
    dataset, source = catalog.load(path), catalog.find(path)
    assert dataset.labels is None
    assert dataset.class_names == CLASSES
    assert dataset.evaluation_classes is not None
    assert dataset.evaluation_classes.tolist() == [[True, False], [False, True], [True, True], [False, False]]
    assert dataset.names == ("cat/0.png", "dog/0.png", "cat/1.png", "dog/1.png")
    assert colors_of(dataset) == [image(number).getpixel((5, 5)) for number in range(4)]
    assert isinstance(source, ImageRows)
    assert source.describe() == (
        "4 images in 2 classes, from photos.parquet. An image can have several classes, so methods train without "
        "labels, and the evaluation counts an image as a hit for each class that it shares with the query. The images "
        "are in the column photo; not used: mask.")


def test_lists_of_one_class_are_labels(tmp_path: Path) -> None:
    table = parquet.read_table(FOLDER / "several-classes" / "photos.parquet").slice(0, 2)
    parquet.write_table(pa.concat_tables([table, table, table.slice(0, 0)]), tmp_path / "rows.parquet")
    dataset = catalog.load(str(tmp_path))
    assert classes_of(dataset) == ["cat", "dog"] * 2
    assert dataset.names == tuple(f"rows/{number}" for number in range(4)), "the paths are not unique"


def test_the_table_of_formats_names_the_libraries_that_wrote_the_files() -> None:
    versions = json.loads((FOLDER / "versions.json").read_text(encoding="utf-8"))
    assert versions.keys() == FORMATS.keys()
    table = (ROOT / "docs" / "data-sets.md").read_text(encoding="utf-8")
    for name, version in versions.items():
        assert version.startswith(FORMATS[name][0])
        assert f"| {name} | {version} |" in table


@pytest.mark.parametrize("name", ["webdataset", "arrow"])
def test_uncompressed_images_are_read_where_the_file_holds_them(name: str, cache: Path) -> None:
    images = catalog.load(str(FOLDER / name)).images
    assert isinstance(images, RowImages)
    assert all(file.is_relative_to(FOLDER) for file in images.files[:-1])
    assert images.files[-1].stat().st_size == 0, "nothing is copied"
    for row, number in enumerate(NUMBERS[name]):
        assert images.source(row).read() == png(number)


def test_compressed_images_are_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = catalog.load(str(FOLDER / "parquet"))
    assert isinstance(first.images, RowImages)
    assert first.images.files[-1].read_bytes() == b"".join(map(png, NUMBERS["parquet"]))
    monkeypatch.setattr(ImageRows, "_describe", None)
    again = catalog.load(f"{FOLDER / 'parquet'}#label=size")
    assert again.class_names == ("0", "1", "0.5", "1.5", "2", "2.5")
    assert again.fingerprint != first.fingerprint
    assert again.images.source(0).read() == png(4)  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", ["parquet/data/train-00000-of-00001.parquet", "webdataset/photos-train-000000.tar",
                                  "arrow/train/data-00000-of-00001.arrow", "arrow/train",
                                  "webdataset-gz/photos-train-000000.tar.gz"])
def test_a_single_file_is_found_remembered_and_forgotten_by_its_path(path: str) -> None:
    name = str(FOLDER / path)
    dataset = catalog.load(name)
    assert (len(dataset), dataset.name) == (4, name)
    catalog.remember(name)
    assert name in catalog.remembered_folders()
    assert name in [source.name for source in catalog.sources()]
    assert catalog.find(f"{name}#label=size").name == f"{name}#label=size"
    catalog.forget(Path(name))
    assert not catalog.remembered_folders()


def test_a_server_reads_rows_in_a_process_of_its_own_and_a_changed_file_again(tmp_path: Path) -> None:
    folder = copied("webdataset", tmp_path)
    bounded.start()
    try:
        assert len(catalog.load(str(folder))) == 6
        (folder / "photos-test-000000.tar").unlink()
        assert len(catalog.load(str(folder))) == 4
    finally:
        bounded.stop()


def test_a_damaged_file_beside_others_is_skipped_by_name(tmp_path: Path) -> None:
    whole = FOLDER / "webdataset-gz" / "photos-train-000000.tar.gz"
    for name in ("0.tar.gz", "1.tar.gz"):
        (tmp_path / name).write_bytes(whole.read_bytes())
    (tmp_path / "0.tar.gz").write_bytes(whole.read_bytes()[:-200])
    dataset = catalog.load(str(tmp_path))
    assert colors_of(dataset) == [image(number).getpixel((5, 5)) for number in range(4)]
    assert [(skipped.file, skipped.reason.partition(":")[0]) for skipped in dataset.skipped] == [
        ("0.tar.gz", "could not be read")]
    assert "0.tar.gz could not be read" in catalog.folder_of(str(tmp_path)).describe()


def test_a_file_that_may_not_be_read_now_is_not_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(reader: ParquetRows, name: str) -> list[Any]:
        if "train" in reader.path.name:
            raise PermissionError(13, "Permission denied")
        return [None] * reader.count

    monkeypatch.setattr(ParquetRows, "read", read)
    with pytest.raises(UserError, match=r"train-00000-of-00001\.parquet could not be read: .*Permission denied"):
        catalog.load(str(FOLDER / "parquet"))


def test_a_full_disk_is_no_damage_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("udml_core.data.sources.row_writer.RowWriter.take", fail)
    with pytest.raises(UserError, match="Free some space"):
        catalog.load(str(FOLDER / "parquet"))


def test_a_shard_that_ends_between_two_members_says_so(tmp_path: Path) -> None:
    path = copied("webdataset", tmp_path) / "photos-train-000000.tar"
    with tarfile.open(path) as archive:
        third = archive.getmembers()[6]
    path.write_bytes(path.read_bytes()[:third.offset])
    reason = "has no mark of its end, so it may be cut short; 2 images of it can be read"
    for name in (path, path.parent):
        assert catalog.load(str(name)).skipped == (Skipped(path.name, reason),)
    many = write_tar(tmp_path / "many.tar", {f"{number:02}.{ending}": content for number in range(20)
                                             for ending, content in (("png", png(number)), ("cls", b"1"))})
    many.write_bytes(many.read_bytes()[:40 * 1024 - 400])
    with pytest.raises(UserError, match=r"many\.tar could not be read: 'unexpected end of data'"):
        catalog.load(str(many))


def test_a_table_of_lancedb_that_is_cut_short_is_one_message(tmp_path: Path) -> None:
    pytest.importorskip("lancedb")
    path = copied("lance", tmp_path) / "photos.lance"
    data = next((path / "data").iterdir())
    data.write_bytes(data.read_bytes()[:100])
    with pytest.raises(UserError, match=r"photos\.lance could not be read"):
        catalog.load(str(path))


def test_the_files_of_hugging_face_open_without_their_description(tmp_path: Path) -> None:
    folder = copied("croissant-parquet", tmp_path)
    (folder / "croissant.json").unlink()
    dataset = catalog.load(str(folder))
    assert dataset.official_test is not None
    assert dataset.official_test.tolist() == [False] * 4 + [True] * 2


def test_the_column_of_paths_may_begin_with_any_word(tmp_path: Path) -> None:
    path = copied("imagefolder", tmp_path) / "metadata.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace("file_name", "photo_file_name"), encoding="utf-8")
    assert classes_of(catalog.load(str(path.parent))) == list(CLASSES * 2)


@pytest.mark.parametrize("name", ["webdataset/photos-train-000000.tar", "webdataset-gz/photos-train-000000.tar.gz"])
def test_a_shard_that_is_uploaded_is_not_extracted(name: str) -> None:
    path = FOLDER / name
    with path.open("rb") as file:
        folder = catalog.import_archive("shard", file, path.name)
    assert [stored.name for stored in folder.iterdir()] == [f"images{''.join(path.suffixes)}"]
    assert catalog.load(str(folder)).class_names == ("0", "1")


@pytest.mark.parametrize("name", ["imagefolder", "fiftyone", "croissant", "parquet", "arrow"])
def test_an_archive_of_a_format_equals_its_folder(name: str, tmp_path: Path) -> None:
    shutil.make_archive(str(tmp_path / name), "zip", FOLDER / name)
    assert catalog.load(str(tmp_path / f"{name}.zip")).fingerprint == catalog.load(str(FOLDER / name)).fingerprint


def write_tar(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


@pytest.mark.parametrize(("members", "is_shard"), [
    ({"0.png": png(0), "0.cls": b"1"}, True), ({"a/0.png": png(0), "a/0.cls": b"1"}, True),
    ({"0.json": b"{}", "0.jpg": b"?"}, True), ({"a/0.png": png(0), "a/0.json": b"{}"}, False),
    ({"0.png": png(0), "0.txt": b"a dog"}, False), ({"0.png": png(0), "1.cls": b"1"}, False), ({"0.cls": b"1"}, False)])
def test_only_an_archive_with_classes_or_records_beside_images_is_a_shard(
        members: dict[str, bytes], is_shard: bool, tmp_path: Path) -> None:
    path = write_tar(tmp_path / "some.tar", members)
    assert (catalog.archive_levels(str(path)) is None) == is_shard


@pytest.mark.parametrize(("name", "columns"), [("captions", {"txt": ["a cat", "a dog"] * 2}), ("images", {})])
def test_shards_of_a_folder_need_no_classes(name: str, columns: dict[str, list[str]], tmp_path: Path) -> None:
    dataset = catalog.load(str(FOLDER / "webdataset-gz" / name))
    assert colors_of(dataset) == [image(number).getpixel((5, 5)) for number in range(4)]
    assert dataset.labels is None
    assert {key: list(values) for key, values in dataset.columns.items()} == columns
    write_tar(tmp_path / "some.tar", {"a/0.png": png(0), "b/1.png": png(1)})
    with pytest.raises(UserError, match="no images"):  # its folders can be the classes, which rows would not have
        catalog.load(str(tmp_path))


def test_a_compressed_shard_cannot_fill_the_disk(tmp_path: Path) -> None:
    plain = write_tar(tmp_path / "some.tar", {"0.png": png(0), "0.cls": b"1", "1.png": bytes(2**28), "1.cls": b"1"})
    (tmp_path / "rows.tar.gz").write_bytes(gzip.compress(plain.read_bytes(), 1))
    plain.unlink()
    with pytest.raises(UserError, match=r"extracts to more than|no images"):
        catalog.load(str(tmp_path))


def test_damaged_rows_are_skipped_and_rows_without_a_class_left_out(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "some.tar", {
        "0.png": png(0), "0.cls": b"cat", "1.png": b"damaged", "1.cls": b"dog", "2.png": png(2), "2.json": b"[[[[",
        "3.png": png(3), "3.cls": b"dog", "4.cls": b"cat", "5.png": png(5), "5.cls": b"\xff" * 9})
    dataset = catalog.load(str(path))
    assert dataset.names == ("0.png", "3.png", "5.png")
    assert {skipped.file: skipped.reason for skipped in dataset.skipped} == {
        "1.png": "not an image", "2.png": "has no value in the column cls"}


def write_rows(path: Path, images: list[dict[str, object] | None], **columns: list[object]) -> Path:
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    parquet.write_table(pa.table({"image": pa.array(images, kind), **columns}), path)
    return path


def test_a_row_may_name_a_file_below_the_folder_only(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "0.png").write_bytes(png(0))
    (tmp_path / "secret.png").write_bytes(png(1))
    (inside / "link.png").symlink_to(tmp_path / "secret.png")
    paths = ["0.png", "../secret.png", str(tmp_path / "secret.png"), "link.png", "absent.png", "a\0b", None]
    path = write_rows(inside / "rows.parquet", [*({"bytes": None, "path": path} for path in paths), None,
                                                {"bytes": png(4), "path": "../4.png"}])
    dataset = catalog.load(str(path))
    assert colors_of(dataset) == [(200, 40, 40), (180, 20, 20)]
    assert len(dataset.skipped) == 7
    assert all("names no file below this folder or one" in skipped.reason for skipped in dataset.skipped)


def test_equal_images_of_a_small_file_do_not_fill_the_disk(tmp_path: Path) -> None:
    content = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (600, 600, 3), dtype=np.uint8)).save(content, "PNG")
    path = write_rows(tmp_path / "rows.parquet", [{"bytes": content.getvalue(), "path": None}] * 300)
    assert path.stat().st_size < 300 * len(content.getvalue()) / 200, "it compresses to nearly nothing"
    with pytest.raises(UserError, match="extracts to more than"):
        catalog.load(str(path))
    assert not list((tmp_path / "cache" / "rows").glob("*.part"))


def test_a_table_of_embeddings_with_images_beside_stays_a_table(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.parquet", [None] * 3, embedding=[[1.0, 2.0]] * 3)
    assert catalog.find(str(path)).title == "rows.parquet"
    assert catalog.load(str(path)).is_table


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda content: content[:len(content) * 2 // 3], "empty": lambda _: b"",
    "changed": lambda content: content[:700] + b"\xff" * 200 + content[900:], "a web page": lambda _: b"<html>"}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("path", ["parquet/data/train-00000-of-00001.parquet", "webdataset/photos-train-000000.tar",
                                  "arrow/train/data-00000-of-00001.arrow"])
def test_damaged_files_are_one_message_or_skipped_images(path: str, damage: str, tmp_path: Path) -> None:
    folder = copied(path.partition("/")[0], tmp_path)
    file = folder / path.partition("/")[2]
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    with suppress(UserError):  # any other error fails
        assert len(catalog.load(str(file))) >= 2


def test_arrow_offsets_that_lead_out_of_the_file_are_refused(tmp_path: Path) -> None:
    path = copied("arrow", tmp_path) / "train" / "data-00000-of-00001.arrow"
    content = bytearray(path.read_bytes())
    offsets = np.arange(0, 5 * 80, 80, dtype=np.int32).tobytes()
    assert content.count(offsets) == 1, "the offsets of the images"
    content[content.index(offsets) + 8:content.index(offsets) + 12] = (2**30).to_bytes(4, "little")
    path.write_bytes(bytes(content))
    with pytest.raises(UserError, match="could not be read"):
        catalog.load(str(path))


@pytest.mark.parametrize(("line", "message"), [
    ('{"file_name": "9.png", "label": "dog"}', "got 1 .4 skipped.* '9.png': is missing"),
    ('["0.png"]', r"Line 2 of .* must be an object in JSON"),
    ("{", r"Line 2 of .*metadata.jsonl must be an object in JSON, but could not be read"),
    ('{"file_name": "../1.png", "label": "dog"}', "For safety, only files below"), ("[" * 100_000, "Line 2"),
    ('{"label": "cat"}', "must name an image in the column file_name of each row, got None in line 2")])
def test_a_damaged_list_of_lines_names_the_line(line: str, message: str, tmp_path: Path) -> None:
    folder = copied("imagefolder", tmp_path)
    first = (folder / "metadata.jsonl").read_text(encoding="utf-8").splitlines()[0]
    (folder / "metadata.jsonl").write_text(f"{first}\n{line}\n", encoding="utf-8")
    with pytest.raises(UserError, match=message):
        catalog.load(str(folder))
    assert len(catalog.load(f"{folder}#level=0")) == 4


@pytest.mark.parametrize("content", ['{"classes": 3}', "[]", "{", "[" * 100_000,
                                     '{"labels": {"0": 1}, "classes": "ab"}'])
@pytest.mark.parametrize("name", ["labels.json", "samples.json", "croissant.json", "metadata.json"])
def test_other_files_of_these_names_are_ignored(name: str, content: str, tmp_path: Path) -> None:
    for number, word in enumerate(CLASSES * 2):
        (tmp_path / word).mkdir(exist_ok=True)
        (tmp_path / word / f"{number}.png").write_bytes(png(number))
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert isinstance(catalog.find(str(tmp_path)), Folder)
    assert catalog.load(str(tmp_path)).class_names == CLASSES


@pytest.mark.parametrize("address", ["https://example.org/photos.csv", "../photos.csv", "/etc/passwd", "absent.csv"])
def test_a_description_reads_only_tables_below_its_folder(address: str, tmp_path: Path) -> None:
    folder = copied("croissant", tmp_path)
    path = folder / "croissant.json"
    path.write_text(path.read_text(encoding="utf-8").replace("photos.csv", address), encoding="utf-8")
    shutil.copy(folder / "photos.csv", tmp_path)
    with pytest.raises(UserError, match="must be a file below its folder"):
        catalog.load(str(folder))


def test_names_of_classes_without_numbers_and_missing_labels_of_fiftyone(tmp_path: Path) -> None:
    folder = copied("fiftyone", tmp_path)
    labels = {"classes": None, "labels": {"0": "cat", "1": "dog", "2": None, "3": {"label": "dog"}}}
    (folder / "labels.json").write_text(json.dumps(labels), encoding="utf-8")
    dataset = catalog.load(str(folder))
    assert classes_of(dataset) == ["cat", "dog", "dog"]
    assert isinstance(catalog.find(str(folder)), MetadataFolder)
    (folder / "labels.json").write_text(json.dumps({**labels, "labels": {"0": ["cat", "dog"]}}), encoding="utf-8")
    with pytest.raises(UserError, match="An image can have one class only"):
        catalog.load(str(folder))


def test_samples_of_fiftyone_have_their_classification_and_the_halves_of_their_tags(tmp_path: Path) -> None:
    """The layout of `FiftyOneDataset`, whose exporter needs MongoDB and so wrote no file here."""
    (tmp_path / "data").mkdir()
    samples: list[dict[str, Any]] = []
    for number in range(4):
        (tmp_path / "data" / f"{number}.png").write_bytes(png(number))
        samples.append({"_id": {"$oid": f"{number:024x}"}, "filepath": f"data/{number}.png",
                        "tags": ["seen", "train" if number < 2 else "test"], "_media_type": "image",
                        "ground_truth": {"_cls": "Classification", "tags": [], "label": CLASSES[number % 2]},
                        "guess": {"_cls": "Classification", "label": "cat", "confidence": 0.5}})
    (tmp_path / "metadata.json").write_text('{"name": "photos", "media_type": "image"}', encoding="utf-8")
    (tmp_path / "samples.json").write_text(json.dumps({"samples": samples}), encoding="utf-8")
    dataset = catalog.load(str(tmp_path))
    assert classes_of(dataset) == list(CLASSES * 2)
    assert [len(half) for half in halves_of(dataset, "seen")] == [2, 2]
    assert list(dataset.columns) == ["guess"]
    samples[0]["tags"] = []
    (tmp_path / "data" / "cat").mkdir()
    (tmp_path / "data" / "3.png").rename(tmp_path / "data" / "cat" / "3.png")
    samples[2]["filepath"], samples[3]["filepath"] = "/home/ann/data/2.png", "data/dog/3.png"
    (tmp_path / "samples.json").write_text(json.dumps({"samples": samples}), encoding="utf-8")
    dataset = catalog.load(str(tmp_path))
    assert dataset.official_test is None
    assert dataset.names == ("data/0.png", "data/1.png"), "no name of another folder is taken"
    no_row, no_image = "has no row in samples.json", "is in samples.json, but is no image of this folder"
    assert {skipped.file: skipped.reason for skipped in dataset.skipped} == {
        "data/2.png": no_row, "data/cat/3.png": no_row, "/home/ann/data/2.png": no_image, "data/dog/3.png": no_image}
    for sample, name in zip(samples, ("0.png", "1.png", "3.png", "2.png"), strict=True):
        sample["filepath"] = name
    (tmp_path / "samples.json").write_text(json.dumps({"samples": samples}), encoding="utf-8")
    assert len(catalog.load(str(tmp_path))) == 4
    (tmp_path / "data" / "dog").mkdir()
    (tmp_path / "data" / "dog" / "3.png").write_bytes(png(1))
    assert len(catalog.load(str(tmp_path))) == 3, "two images have the name"


@pytest.mark.parametrize("pattern", ["../*.parquet", "/etc/*.parquet", "https://example.org/a.parquet"])
def test_a_description_names_only_parquet_files_below_its_folder(pattern: str, tmp_path: Path) -> None:
    folder = copied("croissant-parquet", tmp_path)
    (folder / "default" / "train" / "0000.parquet").rename(tmp_path / "0000.parquet")
    shutil.rmtree(folder / "default")
    path = folder / "croissant.json"
    path.write_text(path.read_text(encoding="utf-8").replace("default/*/*.parquet", pattern), encoding="utf-8")
    with pytest.raises(UserError, match="no images"):
        catalog.load(str(folder))


def test_without_its_package_a_heic_image_names_the_commands_and_a_shared_cache_follows_the_package(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pi_heif")
    folder = copied("heic", tmp_path)
    for number in range(2):
        (folder / "cat" / f"{number}.png").write_bytes(png(number))
    assert len(catalog.load(str(folder))) == 6
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "pi_heif", None)
        with pytest.raises(UserError, match="package pi-heif: pip install pi-heif"):
            read_user_image(folder / "cat" / "0.heic", "0.heic")
        dataset = catalog.load(str(folder))
        assert dataset.names == ("cat/0.png", "cat/1.png")
        assert all("need the package pi-heif" in skipped.reason for skipped in dataset.skipped)
        report = report_of(audit_of(dataset, None), dataset, np.zeros(0, np.int64), AuditSettings.make({}))
        lines = audit_lines(report | {"classes_column": None, "other_levels": []})
        assert lines[1].startswith("4 files not read, because HEIC images need the package pi-heif: pip")
        assert lines[2] == "0 broken files", "they are not damaged"
    assert len(catalog.load(str(folder))) == 6


@pytest.mark.parametrize("kind", ["avif", "heic"])
def test_damaged_images_of_new_formats_are_one_message(kind: str) -> None:
    if kind in NEEDED:
        pytest.importorskip(NEEDED[kind])
    content = (FOLDER / kind / "cat" / f"0.{kind}").read_bytes()
    for damaged in (content[:40], content[:-40], content[:200] + b"\0" * 40 + content[240:]):
        with pytest.raises(UserError, match="must be an image"):
            read_user_image(io.BytesIO(damaged), "it")


@pytest.mark.parametrize("dash", "-.")
@pytest.mark.parametrize("halves", [("train", "t10k"), ("train",), ("test",)])
def test_a_folder_of_idx_files_is_read_by_its_path(halves: tuple[str, ...], dash: str, tmp_path: Path) -> None:
    for number, half in enumerate(halves):
        (tmp_path / f"{half}-images{dash}idx3-ubyte").write_bytes(idx_content(DIGITS[10 * number:10 * number + 10]))
        (tmp_path / f"{half}-labels{dash}idx1-ubyte").write_bytes(idx_content(np.arange(10, dtype=np.uint8)))
    dataset = catalog.load(str(tmp_path))
    np.testing.assert_array_equal([np.asarray(image)[..., 0] for image in dataset.images], DIGITS[:10 * len(halves)])
    assert classes_of(dataset) == list("0123456789") * len(halves)
    assert (dataset.official_test is not None) == (len(halves) == 2)
    division = " Official division: 10 training and 10 test images." if len(halves) == 2 else ""
    assert catalog.folder_of(str(tmp_path)).describe() == f"IDX: {10 * len(halves)} images in 10 classes.{division}"


def test_idx_files_that_do_not_fit_are_one_message(tmp_path: Path) -> None:
    (tmp_path / "train-images-idx3-ubyte").write_bytes(idx_content(DIGITS[:10]))
    with pytest.raises(UserError, match="train-labels-idx1-ubyte is missing"):
        catalog.load(str(tmp_path))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx_content(np.arange(9, dtype=np.uint8)))
    with pytest.raises(UserError, match="a label of each"):
        catalog.load(str(tmp_path))
    (tmp_path / "train-images-idx3-ubyte").write_bytes(b"\x00\x00\x08\x03short")
    with pytest.raises(UserError, match=r"could not be read|must"):
        catalog.load(str(tmp_path))


def renamed(table: pa.Table, **names: str) -> pa.Table:
    """Return a table of `datasets` with other names of columns, in the description of its features too."""
    described = json.loads(table.schema.metadata[b"huggingface"])
    features = described["info"]["features"]
    described["info"]["features"] = {names.get(name, name): feature for name, feature in features.items()}
    named = table.rename_columns([names.get(name, name) for name in table.column_names])
    return named.replace_schema_metadata({b"huggingface": json.dumps(described).encode()})


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_the_only_column_that_is_declared_as_classes_names_them(ending: str, tmp_path: Path) -> None:
    table = parquet.read_table(FOLDER / "parquet" / "data" / "train-00000-of-00001.parquet")
    path = tmp_path / f"photos.{ending}"

    def write(table: pa.Table) -> str:
        if ending == "parquet":
            parquet.write_table(table, path)
        else:
            with pa.ipc.new_stream(path, table.schema) as file:
                file.write_table(table)
        return str(path)

    name = write(renamed(table, label="species"))
    assert classes_of(catalog.load(name)) == ["cat", "dog"] * 2
    assert catalog.find(name).describe() == (  # type: ignore[attr-defined]
        f"4 images in 2 classes, from photos.{ending}. Other columns: size.")
    two = renamed(table, label="species").append_column("kind", table["label"])
    described = json.loads(two.schema.metadata[b"huggingface"])
    described["info"]["features"]["kind"] = described["info"]["features"]["species"]
    name = write(two.replace_schema_metadata({b"huggingface": json.dumps(described).encode()}))
    assert catalog.load(name).labels is None, "either could be the classes"
    assert catalog.load(f"{name}#label=kind").class_names == CLASSES


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_rows_may_name_images_in_a_folder_that_was_opened(ending: str, tmp_path: Path) -> None:
    """`Dataset.to_parquet` writes only the paths of images that were given as paths."""
    pictures, rows = tmp_path / "pics", tmp_path / "rows"
    for folder in (pictures, rows):
        folder.mkdir()
    for number in range(3):
        (pictures / f"{number}.png").write_bytes(png(number))
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    images = pa.array([{"bytes": None, "path": str(pictures / f"{number}.png")} for number in range(3)], kind)
    path, table = rows / f"photos.{ending}", pa.table({"image": images, "label": list("aba")})
    if ending == "parquet":
        parquet.write_table(table, path)
    else:
        with pa.ipc.new_stream(path, table.schema) as file:
            file.write_table(table)
    message = (f"have no images, only their paths, such as '{pictures}/0.png'. For safety, only files below {rows} and "
               "below the folders that you opened are read. Open the folder of the images first, on the page")
    source = catalog.folder_of(str(path))
    for read in (source.describe, lambda: catalog.load(str(path))):
        with pytest.raises(UserError, match=message):
            read()
    catalog.remember(f"{pictures}#level=0")
    try:
        assert source.describe() == f"3 images in 2 classes, from photos.{ending}."
        dataset = catalog.load(str(path))
        assert colors_of(dataset) == [image(number).getpixel((5, 5)) for number in range(3)]
        assert dataset.names == ("0.png", "1.png", "2.png")
    finally:
        catalog.forget(pictures)
