"""Folders with metadata.csv or metadata.parquet: labels, halves, other columns and damaged tables."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.data.test_official_lists import classes_of, halves_of, write_images
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.dataset import FileImages
from udml_core.data.dataset_columns import as_column, class_columns, is_numeric
from udml_core.data.sources.image_folder import Folder
from udml_core.data.sources.metadata import unused_table

FILES = ["a.png", "below/b.png", "c.png", "d.png"]
COLUMNS: dict[str, list[Any]] = {"file_name": FILES, "label": ["cat", "dog", "cat", "dog"],
                                 "color": ["red", "red", "blue", "red"], "split": ["train", "train", "test", "test"]}


def write_table(folder: Path, name: str = "metadata.csv", separator: str = ",", **columns: list[Any]) -> Path:
    """Write the images and a table of them; a column of None is left out."""
    write_images(folder, *FILES)
    used = {key: values for key, values in (COLUMNS | columns).items() if values is not None}
    if name.endswith(".parquet"):
        parquet.write_table(pa.table(used), folder / name)
    else:
        lines = [separator.join(used), *(separator.join(map(str, row)) for row in zip(*used.values(), strict=True))]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize(("name", "separator"), [("metadata.csv", ","), ("metadata.csv", ";"), ("metadata.csv", "\t"),
                                                 ("metadata.parquet", ",")])
def test_the_table_gives_labels_and_the_official_halves(name: str, separator: str, tmp_path: Path) -> None:
    folder = write_table(tmp_path, name, separator)
    dataset, source = catalog.load(str(folder)), catalog.find(str(folder))
    assert dataset.names == tuple(FILES)
    assert classes_of(dataset) == ["cat", "dog", "cat", "dog"]
    assert halves_of(dataset, "seen") == [["a.png", "b.png"], ["c.png", "d.png"]]
    assert (source.images, source.classes) == (4, 2)
    assert catalog.folder_of(str(folder)).describe() == f"4 images in 2 classes, from {name}. Other columns: color."


@pytest.mark.parametrize("words", [("train", "validation"), ("Training", "dev"), ("train", "val"), ("val", "test")])
def test_a_validation_half_beside_a_training_half_is_the_test_half(words: tuple[str, str], tmp_path: Path) -> None:
    folder = write_table(tmp_path, split=[words[0], words[0], words[1], words[1]])
    assert halves_of(catalog.load(str(folder)), "seen") == [["a.png", "b.png"], ["c.png", "d.png"]]
    several = write_table(tmp_path / "three", split=["train", "val", "val", "test"])
    assert halves_of(catalog.load(str(several)), "seen") == [["a.png", "b.png", "c.png"], ["d.png"]]
    other = write_table(tmp_path / "other", split=["left", "left", "right", "right"])
    assert "The column split does not say train and test for the images" in catalog.folder_of(str(other)).describe()


def test_tables_in_folders_of_a_training_and_a_validation_half_are_halves(tmp_path: Path) -> None:
    for half, files in (("train", FILES[:2]), ("validation", FILES[2:])):
        write_images(tmp_path / half, *files)
        (tmp_path / half / "metadata.csv").write_text("file_name,label\n" + "".join(
            f"{file},{kind}\n" for file, kind in zip(files, "ab", strict=True)))
    assert [len(part) for part in halves_of(catalog.load(str(tmp_path)), "seen")] == [2, 2]


@pytest.mark.parametrize("file", ["File_Name", "filename", "Image"])
def test_names_of_columns_may_have_capitals(file: str, tmp_path: Path) -> None:
    columns: dict[str, Any] = dict.fromkeys(COLUMNS) | {file: FILES, "Label": COLUMNS["label"],
                                                                  "SPLIT": COLUMNS["split"]}
    folder = write_table(tmp_path, separator=";", **columns)
    dataset = catalog.load(str(folder))
    assert classes_of(dataset) == ["cat", "dog", "cat", "dog"]
    assert halves_of(dataset, "seen") == [["a.png", "b.png"], ["c.png", "d.png"]]
    assert not dataset.columns
    assert catalog.load(f"{folder}#label=SPLIT").class_names == ("train", "test"), "both halves have their own class"


def test_a_chosen_column_gives_the_labels_and_another_fingerprint(tmp_path: Path) -> None:
    folder = write_table(tmp_path)
    colors = catalog.load(f"{folder}#label=color")
    assert classes_of(colors) == ["red", "red", "blue", "red"]
    assert colors.fingerprint != catalog.load(str(folder)).fingerprint
    assert catalog.find(colors.name).name == colors.name, "a run finds the data set by its name"
    with pytest.raises(UserError, match=r"has no column 'size' for labels. Its columns: label, color, split."):
        catalog.load(f"{folder}#label=size")


def test_a_message_lists_some_of_many_columns(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{number}" for number in range(15_000)) + "\n")
    with pytest.raises(UserError, match=r"its columns: c0, c1, .*, c19 and 14,980 more\. Name the column file_name"):
        catalog.load(str(path))


def test_other_columns_are_kept_in_the_order_of_the_images(tmp_path: Path) -> None:
    labels = ["cat", "", "cat", "dog"]
    folder = write_table(tmp_path, size=["3", "", "1.5", "2"], label=labels, note=["", "b", "c", "d"])
    dataset = catalog.load(str(folder))
    assert dataset.names == ("a.png", "c.png", "d.png")
    assert list(dataset.columns) == ["color", "size", "note"]
    assert dataset.columns["color"].tolist() == ["red", "blue", "red"]
    np.testing.assert_array_equal(dataset.columns["size"], [3, 1.5, 2])
    assert dataset.columns["note"].tolist() == [None, "c", "d"]
    assert "label" in catalog.load(f"{folder}#label=color").columns
    content = (folder / "a.png").read_bytes()
    (folder / "a.png").write_bytes(b"damaged")
    assert catalog.load(str(folder)).columns["color"].tolist() == ["blue", "red"]
    (folder / "a.png").write_bytes(content)
    assert dataset.fingerprint == catalog.load(str(write_table(tmp_path, label=labels))).fingerprint


@pytest.mark.parametrize(("values", "expected"), [
    ([1, None, 2.5], [1.0, np.nan, 2.5]), (["7", "-1e3", None], [7.0, -1000.0, np.nan]), (["1" * 400], [np.inf]),
    ([True, False], ["True", "False"]), (["1", "a"], ["1", "a"]), ([None, None], [None, None]),
    ([[1], None], ["[1]", None]), ([10**400], [str(10**400)]),
])
def test_a_column_is_numbers_if_all_its_values_are(values: list[Any], expected: list[Any]) -> None:
    column = as_column(values)
    assert is_numeric(column) == isinstance(expected[0], float)
    assert all(one == other or (one != one and other != other) for one, other in zip(column, expected, strict=True))


def test_a_column_of_few_repeated_values_is_offered_as_classes_before_free_text() -> None:
    columns = {"note": [f"note {row // 2}" for row in range(40)], "year": [2000 + row % 2 for row in range(40)],
               "caption": [f"photo {max(row - 21, 0)}" for row in range(40)], "species": list("abcd") * 10}
    assert class_columns({name: as_column(values) for name, values in columns.items()}) == {
        "species": 4, "note": 20, "year": 2}, "most captions occur once"


def test_halves_without_a_common_class_are_the_zero_shot_split(tmp_path: Path) -> None:
    dataset = catalog.load(str(write_table(tmp_path, label=["z", "y", "a", "a"])))
    assert dataset.class_names == ("y", "z", "a")
    assert halves_of(dataset, "zero-shot") == [["a.png", "b.png"], ["c.png", "d.png"]]
    assert dataset.official_test is None


def test_numbers_are_classes_in_the_order_of_their_values(tmp_path: Path) -> None:
    dataset = catalog.load(str(write_table(tmp_path, "metadata.parquet", label=[10.0, 9.0, None, 10.0])))
    assert dataset.class_names == ("9", "10")
    assert classes_of(dataset) == ["10", "9", "10"]
    assert [(skipped.file, skipped.reason) for skipped in dataset.skipped] == [
        ("c.png", "has no value in the column label of metadata.parquet")]


def test_without_a_column_of_labels_the_images_are_unlabeled(tmp_path: Path) -> None:
    folder = write_table(tmp_path, label=None)  # type: ignore[arg-type]
    dataset = catalog.load(str(folder))
    assert dataset.labels is None
    assert halves_of(dataset, "seen") == [["a.png", "b.png"], ["c.png", "d.png"]]
    assert classes_of(catalog.load(f"{folder}#label=color")) == ["red", "red", "blue", "red"]


def test_an_unknown_word_for_a_half_leaves_the_division_out(tmp_path: Path) -> None:
    dataset = catalog.load(str(write_table(tmp_path, split=["train", "fold 2", "test", "test"])))
    assert dataset.official_test is None
    assert dataset.training_classes is None


def test_images_without_a_row_are_left_out_with_the_reason(tmp_path: Path) -> None:
    folder = write_table(tmp_path)
    write_images(folder, "extra.png")
    dataset = catalog.load(str(folder))
    assert len(dataset) == 4
    assert [(skipped.file, skipped.reason) for skipped in dataset.skipped] == [
        ("extra.png", "has no row in metadata.csv")]


def test_missing_images_are_left_out_and_named_until_they_are_there(tmp_path: Path) -> None:
    names = [*FILES[:2], "absent.png", FILES[3]]
    folder = write_table(tmp_path, file_name=names)
    table = folder / "list.csv"
    (folder / "metadata.csv").rename(table)
    source = catalog.folder_of(str(table))
    assert source.describe() == (
        "3 images in 2 classes, from list.csv. Other columns: color. 1 of 4 files is missing: absent.png.")
    dataset, before = catalog.load(str(table)), source.signature()
    assert dataset.names == (FILES[0], FILES[1], FILES[3])
    assert [(skipped.file, skipped.kind) for skipped in dataset.skipped] == [("absent.png", "missing")]
    write_images(folder, "absent.png")
    assert catalog.folder_of(str(table)).signature() != before
    assert catalog.load(str(table)).names == tuple(names)


def test_each_half_can_have_its_own_table(tmp_path: Path) -> None:
    for half in ("train", "test"):
        write_table(tmp_path / half, split=None)  # type: ignore[arg-type]
    dataset = catalog.load(str(tmp_path))
    assert dataset.names[0] == "train/a.png"
    assert [len(part) for part in halves_of(dataset, "seen")] == [4, 4]
    assert classes_of(dataset) == ["cat", "dog", "cat", "dog"] * 2


def test_the_tables_of_both_halves_need_the_column_of_labels(tmp_path: Path) -> None:
    write_table(tmp_path / "train")
    write_table(tmp_path / "test", label=None)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"test/metadata.csv has no column 'label'"):
        catalog.load(str(tmp_path))


@pytest.mark.parametrize(("columns", "message"), [
    ({"file_name": [*FILES[:3], "../secret.png"]}, "only their paths, such as '../secret.png'. For safety, only"),
    ({"file_name": [*FILES[:3], FILES[0]]}, "name the image 'a.png' twice"),
    ({"file_name": [*FILES[:3], ""]}, "must name an image in the column file_name of each row, got None in line 5"),
    ({"label": ["cat", "dog,", "cat", "dog"]}, "must have 4 values in each row, as in its first line, got 5 in line 3"),
])
def test_a_damaged_table_is_one_message(columns: dict[str, list[Any]], message: str, tmp_path: Path) -> None:
    folder = write_table(tmp_path / "inside", **columns)
    write_images(tmp_path, "secret.png")
    with pytest.raises(UserError, match=message):
        catalog.load(str(folder))


@pytest.mark.parametrize("name", ["metadata.csv", "metadata.parquet"])
def test_a_file_that_is_no_table_is_one_message(name: str, tmp_path: Path) -> None:
    write_images(tmp_path, *FILES)
    (tmp_path / name).write_bytes(b"\xff\xfe PAR1 \x00")
    with pytest.raises(UserError, match=f"The table .*{name} could not be read"):
        catalog.load(str(tmp_path))
    assert len(catalog.load(f"{tmp_path}#level=0")) == 4


def test_a_table_in_another_encoding_names_its_line_and_how_to_go_on_without_it(tmp_path: Path) -> None:
    folder = write_table(tmp_path, label=["cat", "chien", "café", "dog"])
    text = (folder / "metadata.csv").read_text(encoding="utf-8")
    (folder / "metadata.csv").write_bytes(text.replace("\n", "\n\n", 1).encode("latin1"))
    with pytest.raises(UserError, match=r"line 5 is not UTF-8 text, because it has the byte 0xE9\. Save it again .* "
                                        r"add #level=1 to the name of the folder .* or else #level=0"):
        catalog.load(str(folder))
    assert len(catalog.load(f"{folder}#level=0")) == 4


@pytest.mark.parametrize("column", ["kind/size", "#1", "a\\b", "50%25", "kind=a&b"])
def test_a_column_of_any_letters_can_be_chosen(column: str, tmp_path: Path) -> None:
    folder = write_table(tmp_path / "my#photos", **{column: ["small", "big", "small", "big"]})
    dataset = catalog.load(f"{folder}#label={column}")
    assert dataset.class_names == ("big", "small")
    assert catalog.find(dataset.name).name == dataset.name
    catalog.remember(dataset.name)
    catalog.remember(str(folder))
    assert dataset.name not in catalog.remembered_folders(), "a folder is listed once"
    catalog.forget(folder)


def test_lists_of_labels_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"A label must be a text or a number, got \['a', 'b'\]"):
        catalog.load(str(write_table(tmp_path, "metadata.parquet", label=[["a", "b"], ["a"], ["b"], []])))


@pytest.mark.parametrize(("content", "is_said"), [("{", True), ("[]", False), ('{"mine": 1}', False)])
def test_a_damaged_list_in_json_is_named_and_a_list_of_another_kind_is_not(content: str, is_said: bool, tmp_path: Path
                                                                           ) -> None:
    write_images(tmp_path, "cats/1.png", "dogs/2.png")
    (tmp_path / "labels.json").write_text(content)
    assert catalog.load(str(tmp_path)).class_names == ("cats", "dogs")
    assert ("labels.json is not used, because it could not be read as JSON" in unused_table(tmp_path)) == is_said


def test_a_table_without_file_names_is_no_table_of_images(tmp_path: Path) -> None:
    write_images(tmp_path, "cats/1.png", "dogs/2.png")
    (tmp_path / "metadata.csv").write_text("name,label\n1.png,cat\n")
    assert isinstance(catalog.find(str(tmp_path)), Folder)
    assert catalog.load(str(tmp_path)).class_names == ("cats", "dogs")


@pytest.mark.parametrize("column", ["path", "File", "image", "file_name", "image_path"])
@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_a_table_of_paths_is_opened_by_its_own_path(column: str, ending: str, tmp_path: Path) -> None:
    folder = write_table(tmp_path / "pics")
    (folder / "metadata.csv").unlink()
    write_images(folder, "other.png")
    forms = [FILES, [f"./{file}" for file in FILES], [f"pics/{file}" for file in FILES],
             [str(folder / file) for file in FILES]]
    for number, files in enumerate(forms):
        path = folder / f"abs {number}.{ending}"
        if ending == "parquet":
            parquet.write_table(pa.table({column: files, "species": list("abab")}), path)
            lines = None
        elif ending == "jsonl":
            lines = [json.dumps({column: file, "species": kind}) for file, kind in zip(files, "abab", strict=True)]
        else:
            separator = "\t" if ending == "tsv" else ","
            lines = [f"{column}{separator}species", *(f"{file}{separator}{kind}" for file, kind in
                                                      zip(files, "abab", strict=True))]
        if lines is not None:
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        dataset, source = catalog.load(str(path)), catalog.find(str(path))
        assert dataset.names == tuple(FILES)
        assert (dataset.skipped, dataset.labels) == ((), None), "other images of the folder are not part of it"
        assert (dataset.name, dataset.title) == (str(path), path.name)
        assert classes_of(catalog.load(f"{path}#label=species")) == ["a", "b", "a", "b"]
        before = source.signature()
        write_images(folder, "new.png")
        assert source.signature() == before
    catalog.remember(f"{path}#label=species")
    assert f"{path}#label=species" in [source.name for source in catalog.sources()]
    catalog.forget(path)
    assert not [name for name in catalog.remembered_folders() if name.startswith(str(path))]


@pytest.mark.parametrize("name", ["abs.csv", "abs.tsv", "abs.jsonl", "metadata.csv"])
def test_a_table_reads_images_below_the_folders_that_were_opened(name: str, tmp_path: Path) -> None:
    folder, table = write_table(tmp_path / "pics"), tmp_path / "lists" / name
    table.parent.mkdir()
    write_images(table.parent, "own.png")

    def write(*files: str) -> str:
        rows = [{"file_name": file, "label": kind} for file, kind in zip(files, "abacd", strict=False)]
        separator = "\t" if name.endswith("tsv") else ","
        lines = map(json.dumps, rows) if name.endswith("jsonl") else map(
            separator.join, [("file_name", "label"), *(row.values() for row in rows)])
        table.write_text("\n".join(lines))
        return str(table if name.startswith("abs") else table.parent)

    opens = write(*(str(folder / file) for file in FILES), f"{tmp_path}/pics/absent.png")
    message = (f"The rows of {table} have no images, only their paths, such as '{folder}/a.png'. For safety, only "
               f"files below {table.parent} and below the folders that you opened are read. Open the folder of the "
               f"images first, on the page Data or with `udml datasets --remember FOLDER`, or move {name} to {folder}, "
               "and open it there.")
    with pytest.raises(UserError, match=re.escape(message)):
        catalog.load(opens)
    catalog.remember(f"{folder}#level=0")
    try:
        dataset, source = catalog.load(opens), catalog.folder_of(opens)
        assert (dataset.names, classes_of(dataset)) == (tuple(FILES), ["a", "b", "a", "c"])
        assert isinstance(dataset.images, FileImages)
        assert dataset.images.root == folder
        assert dataset.images[1].tobytes() == catalog.load(f"{folder}#level=0").images[1].tobytes()
        assert [(skipped.file, skipped.kind) for skipped in dataset.skipped] == [("absent.png", "missing")]
        assert source.describe() == (f"4 images in 3 classes, from {name}. 1 of 5 files is missing: absent.png.")
        if opens == str(table):
            before = source.signature()
            write_images(folder, "absent.png")
            assert catalog.folder_of(opens).signature() != before, "images elsewhere are watched"
        assert catalog.load(write("own.png", "../pics/a.png")).names == ("lists/own.png", "pics/a.png")
        (folder / "link.png").symlink_to("/etc/hostname")
        for secret in ("/etc/hostname", "../pics/../../x.png", str(folder / "link.png")):
            with pytest.raises(UserError, match="For safety, only files below"):
                catalog.load(write(str(folder / "a.png"), secret))
    finally:
        catalog.forget(folder)


def test_a_table_that_names_no_images_below_its_folder_says_what_to_do(tmp_path: Path) -> None:
    table = tmp_path / "lists" / "abs.csv"
    table.parent.mkdir()
    table.write_text("path\n/etc/passwd\n/home/a.png\n")
    with pytest.raises(UserError, match=f"or copy the images below {table.parent}, and correct the paths"):
        catalog.load(str(table))
    table.write_text("kind,size\na,3\n")
    with pytest.raises(UserError, match=r"abs\.csv has no column of paths of images; its columns: kind, size\. Name"):
        catalog.load(str(table))


def test_an_exposed_server_opens_no_table_outside_of_its_folders(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_table(tmp_path / "pics")
    monkeypatch.setenv("UDML_EXPOSED", "1")
    with pytest.raises(UserError, match="There is no data set"):
        catalog.load(str(folder / "metadata.csv"))
