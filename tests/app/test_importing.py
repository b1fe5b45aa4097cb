"""Importing on the page Data: official layouts, tables, and archives by path and by upload."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.shell.run_status import escaped_message
from tests.app.opening import opened, texts
from tests.data.test_archives import PHOTOS, write_archive
from tests.data.test_formats import FOLDER as FORMATS
from tests.data.test_metadata import write_table
from tests.data.test_official_lists import write_cub
from tests.data.test_official_packed import write_cifar100, write_stl10
from tests.running import write_digits
from udml_core.data import catalog
from udml_core.data.sources.table_files import ColumnFile


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the imports and the list of folders of each test."""
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))


def click(test: AppTest, label: str) -> None:
    next(button for button in test.button if button.label == label).click().run()
    assert not test.exception


def test_a_path_is_previewed_by_its_layout_and_an_archive_is_extracted(tmp_path: Path) -> None:
    whole, damaged = write_cub(tmp_path / "whole"), write_cub(tmp_path / "damaged")
    (damaged / "classes.txt").unlink()
    table, archive = write_table(tmp_path / "pets"), write_archive(tmp_path / "pets.tgz", PHOTOS)
    test = opened("data", **{"import": "1"})

    def preview(path: Path) -> str:
        test.text_input(key="import-path").set_value(str(path)).run()
        assert not test.radio, "only a plain folder has levels to choose from"
        return " ".join(info.value for info in test.info)

    assert preview(whole) == escaped_message(
        "CUB-200-2011: 4 images in 3 classes (published: 11,788 images in 200 classes). Official division: 2 training "
        "and 2 test images. Add #crop=box (each image is cropped to its bounding box) to the name.")
    assert preview(damaged) == ""
    assert "looks like CUB-200-2011, but classes.txt is missing" in test.error[0].value
    assert preview(table) == escaped_message("4 images in 2 classes, from metadata.csv. Other columns: color.")
    cut = tmp_path / "cut.tgz"
    cut.write_bytes(archive.read_bytes()[:-40])
    assert preview(cut) == ""
    assert "cut.tgz" in test.error[0].value
    assert preview(archive) == ""
    assert not test.error
    assert test.session_state["import-form"]
    click(test, "Open")
    assert not test.session_state["import-form"], "the form makes room for the gallery"
    assert "import" not in test.query_params
    (folder,) = (tmp_path / "cache" / "imports").iterdir()
    assert test.query_params["dataset"] == str(folder)
    assert "4 images" in texts(test)


def test_the_list_of_a_folder_is_used_unless_its_box_is_off(tmp_path: Path) -> None:
    folder = write_digits(tmp_path / "digits", 40)
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.png"))
    rows = [f"{file},{'even' if number % 2 else 'odd'}" for number, file in enumerate(files)]
    (folder / "metadata.csv").write_text("\n".join(["file_name,label", *rows]) + "\n")
    subfolders = sorted(path.name for path in folder.iterdir() if path.is_dir())
    for is_on, classes in ((True, ["even", "odd"]), (False, subfolders)):
        test = opened("data", **{"import": "1"})
        test.text_input(key="import-path").set_value(str(folder)).run()
        (box,) = [box for box in test.checkbox if box.label == "Use this list"]
        assert box.value, "the list counts until the user leaves it out"
        box.set_value(is_on).run()
        click(test, "Open")
        dataset = catalog.load(test.query_params["dataset"])
        assert sorted(dataset.class_names) == classes
        assert len(dataset) == 40
    test = opened("data", **{"import": "1"})
    test.text_input(key="import-path").set_value(str(write_digits(tmp_path / "plain", 20))).run()
    assert not [box for box in test.checkbox if box.label == "Use this list"], "without a list there is no box"


def test_an_uploaded_archive_is_extracted_under_its_own_name(tmp_path: Path) -> None:
    test = opened("data", **{"import": "1"})
    test.file_uploader(key="import-archive").set_value(("pets.zip", b"<html>", "application/zip")).run()
    click(test, "Import these files")
    (error,) = test.error
    assert "pets.zip could not be extracted" in error.value
    content = write_archive(tmp_path / "pets.zip", PHOTOS).read_bytes()
    test.file_uploader(key="import-archive").set_value(("pets.zip", content, "application/zip")).run()
    assert not test.error, "the message belongs to the other file"
    click(test, "Import these files")
    assert test.query_params["dataset"] == str(tmp_path / "cache" / "imports" / "pets")
    assert "4 images" in texts(test)


@pytest.mark.parametrize("suffix", [".zip", ".tar.gz"])
@pytest.mark.parametrize("uploaded", [False, True])
def test_the_class_level_of_an_archive_is_chosen(suffix: str, uploaded: bool, tmp_path: Path) -> None:
    images = list(PHOTOS.values())
    names = [f"set/{alphabet}/{alphabet}{number}/x.png" for alphabet in "ab" for number in (1, 2)]
    archive = write_archive(tmp_path / f"omni{suffix}", dict(zip(names, images, strict=True)))
    test = opened("data", **{"import": "1"})
    if uploaded:
        content = archive.read_bytes()
        test.file_uploader(key="import-archive").set_value((archive.name, content, "application/zip")).run()
    else:
        test.text_input(key="import-path").set_value(str(archive)).run()
    (levels,) = test.radio
    assert [option.partition(":")[0] for option in levels.options] == ["No classes", "Level 1", "Level 2"]
    levels.set_value(2).run()
    click(test, "Import these files" if uploaded else "Open")
    assert test.query_params["dataset"].endswith("#level=2")
    assert "4 images** · 4 classes" in texts(test)


def test_the_column_of_the_classes_is_chosen_and_the_others_filter_the_gallery(tmp_path: Path) -> None:
    folder = write_table(tmp_path / "pets", size=["1", "2", "3", ""])
    test = opened("data", **{"import": "1"})
    test.text_input(key="import-path").set_value(str(folder)).run()
    box = test.selectbox(key=f"import-label-{folder}")
    assert (box.value, box.options) == ("label", ["label", "color", "size"])
    box.select("color").run()
    click(test, "Open")
    assert test.query_params["dataset"] == f"{folder}#label=color"
    column = next(box for box in test.selectbox if box.label == "Column")
    assert column.options == ["all", "label", "size"]
    column.select("label").run()
    next(box for box in test.multiselect if box.label == "Values").select("dog").run()
    assert "2 of 4 images. Click an image" in texts(test)
    next(box for box in test.selectbox if box.label == "Column").select("size").run()
    next(slider for slider in test.slider if slider.label == "Values").set_range(2.0, 3.0).run()
    assert "2 of 4 images. Click an image" in texts(test)
    next(slider for slider in test.slider if slider.label == "Values").set_range(1.0, 3.0).run()
    assert "4 of 4 images. Click an image" in texts(test)


def test_a_column_that_is_not_declared_as_the_classes_is_offered_where_there_are_none(tmp_path: Path) -> None:
    folder = write_table(tmp_path / "pets", label=None, species=["cat", "dog", "cat", "dog"], color=None)
    catalog.remember(folder)
    test = opened("data", dataset=str(folder), view="classes")
    assert "These images have no classes." in texts(test)
    box = test.selectbox(key="data-class-column")
    assert (box.value, box.options) == ("species", ["species (2 values)"])
    lab = opened("train", dataset=str(folder), method="nca")
    assert "Choose the column species as the classes on Data" in texts(lab)
    test.button(key="data-use-classes").click().run()
    assert test.query_params["dataset"] == f"{folder}#label=species"
    assert "4 images** · 2 classes · halves given: 2 train, 2 test" in texts(test)
    assert not any(box.key == "data-class-column" for box in test.selectbox)


def test_the_option_of_a_layout_is_chosen_before_its_import(tmp_path: Path) -> None:
    birds, tiny, stl = write_cub(tmp_path), write_cifar100(tmp_path / "tiny"), write_stl10(tmp_path / "stl")
    test = opened("data", **{"import": "1"})
    for folder, key, usual, options in ((birds, "crop", None, ["box"]), (tiny, "label", "fine", ["coarse", "fine"]),
                                        (stl, "part", "labeled", ["labeled", "unlabeled", "all"])):
        test.text_input(key="import-path").set_value(str(folder)).run()
        box = test.selectbox(key=f"import-{key}-{folder}")
        assert (box.value, box.options) == (usual, options)
    box.select("all").run()
    click(test, "Open")
    assert test.query_params["dataset"] == f"{stl}#part=all"
    assert "6 images" in texts(test)


def test_the_columns_of_a_table_are_read_once_until_a_file_changes(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "t.npy", np.eye(4))
    (tmp_path / "t.csv").write_text("label,kind\na,b\na,b\nc,d\nc,d\n")
    reads, read = [], ColumnFile.read
    monkeypatch.setattr(ColumnFile, "read", lambda self, name: reads.append(name) or read(self, name))
    test = opened("data", **{"import": "1"})
    test.text_input(key="import-path").set_value(str(tmp_path / "t.npy")).run()
    box = test.selectbox(key=f"import-label-{tmp_path / 't.npy'}")
    assert (box.value, box.options) == ("label", ["none", "label", "kind"])
    assert reads
    reads.clear()
    box.select("kind").run()
    assert not reads
    (tmp_path / "t.csv").write_text("label,sort\na,b\na,b\nc,d\nc,d\n\n")
    test.run()
    assert test.selectbox(key=f"import-label-{tmp_path / 't.npy'}").options == ["none", "label", "sort"]
    assert reads


def test_the_columns_of_an_uploaded_table_are_chosen_before_its_import(tmp_path: Path) -> None:
    vectors = io.BytesIO()
    np.save(vectors, np.eye(4))
    test = opened("data", **{"import": "1"})
    columns = b"label,kind\na,b\n,b\nc,d\nc,d\n"
    test.file_uploader(key="import-table").set_value([("t.npy", vectors.getvalue(), "application/octet-stream"),
                                                      ("t.csv", columns, "text/csv")]).run()
    box = next(box for box in test.selectbox if box.label == "Classes")
    assert (box.value, box.options) == ("label", ["none", "label", "kind"])
    click(test, "Import embeddings")
    assert "names the class of every row" in test.error[0].value or "must name the class" in test.error[0].value
    next(box for box in test.selectbox if box.label == "Classes").select("kind").run()
    assert not test.error, "another choice hides the message"
    click(test, "Import embeddings")
    assert test.query_params["dataset"] == f"{tmp_path / 'cache' / 'imports' / 't' / 't.npy'}#label=kind"
    assert "2 classes" in texts(test)


def test_a_table_of_images_that_is_not_used_is_named(tmp_path: Path) -> None:
    folder = write_table(tmp_path / "pets")
    (folder / "metadata.csv").write_text("name;label\na.png;cat\n")
    test = opened("data", **{"import": "1"})
    test.text_input(key="import-path").set_value(str(folder)).run()
    assert "metadata.csv is not used, because it has no column file_name; its columns: name, label." in [
        info.value.replace("\\", "") for info in test.info]
    (folder / "metadata.csv").unlink()
    (folder / "paths.csv").write_text("path,species\na.png,cat\nc.png,dog\n")
    test.text_input(key="import-path").set_value(f"{folder}/").run()
    assert (f"paths.csv is not used. To use it, open it by its path {folder / 'paths.csv'}, or name it metadata.csv "
            "with a column file_name.") in [info.value.replace("\\", "") for info in test.info]


def test_the_only_column_of_a_table_is_offered_as_the_classes_and_a_link_may_name_it(tmp_path: Path) -> None:
    folder = write_table(tmp_path / "pets", label=None, color=None, split=None,  # type: ignore[arg-type]
                         species=["cat", "dog", "cat", "dog"])
    test = opened("data", **{"import": "1"})
    test.text_input(key="import-path").set_value(str(folder)).run()
    assert test.selectbox(key=f"import-label-{folder}").value is None
    test.selectbox(key=f"import-label-{folder}").set_value("species").run()
    click(test, "Open")
    assert test.query_params["dataset"] == f"{folder}#label=species"
    assert "2 classes" in texts(test)
    catalog.forget(folder)
    test = opened("data", dataset=f"{folder}#label=species")
    assert test.text_input(key="import-path").value == f"{folder}#label=species"
    click(test, "Open")
    assert "2 classes" in texts(test)


def test_the_audit_of_the_folder_that_the_app_was_started_with_starts_once(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audited: list[str] = []
    monkeypatch.setattr("udml_core.work.jobs.auditing.start_auditing", lambda data, *_: audited.append(data.name))
    monkeypatch.setenv("UDML_MAPS", "1")
    folder, other = (str(write_digits(tmp_path / name, 60)) for name in ("photos", "other"))
    for name in (folder, other):
        catalog.remember(name)
    monkeypatch.setenv("UDML_BROWSE", folder)
    for name in (other, folder, folder):
        assert "60 images" in texts(opened("data", dataset=name))
    assert audited == [folder]


@pytest.mark.parametrize(("path", "preview"), [
    ("parquet", "6 images in 2 classes, from data/test-00000-of-00001.parquet and 1 more. Other columns: size."),
    ("parquet/data/train-00000-of-00001.parquet",
     "4 images in 2 classes, from train-00000-of-00001.parquet. Other columns: size."),
    ("webdataset/photos-train-000000.tar", "4 images in 2 classes, from photos-train-000000.tar. Other columns: size."),
    ("fiftyone", "4 images in 2 classes, from labels.json. Other columns: confidence.")])
def test_formats_of_other_libraries_are_previewed_and_their_labels_chosen(path: str, preview: str) -> None:
    folder = FORMATS / path
    test = opened("data", **{"import": "1"})
    test.text_input(key="import-path").set_value(str(folder)).run()
    assert [info.value for info in test.info] == [escaped_message(preview)]
    column = "confidence" if path == "fiftyone" else "size"
    test.selectbox(key=f"import-label-{folder}").set_value(column).run()
    click(test, "Open")
    assert test.query_params["dataset"] == f"{folder}#label={column}"
    assert f"{preview.partition(' ')[0]} images" in texts(test)


def test_half_a_parquet_file_of_images_is_one_message_and_opens_nothing(tmp_path: Path) -> None:
    whole = (FORMATS / "parquet" / "data" / "train-00000-of-00001.parquet").read_bytes()
    half = tmp_path / "photos.parquet"
    half.write_bytes(whole[:len(whole) // 2])
    test = opened("data", **{"import": "1"})
    test.text_input(key="import-path").set_value(str(half)).run()
    assert not test.exception
    (message,) = [error.value.replace("\\", "") for error in test.error]
    assert "could not be read" in message
    assert message.endswith("It may be cut short: copy or write it again.")
    assert ".." not in message
    click(test, "Open")
    assert test.query_params["dataset"] == "fashion-mini"
