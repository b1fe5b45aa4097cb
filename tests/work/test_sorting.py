"""Named images as folders: hostile names, plans, copies and links, interruptions, and the lists of other programs."""

from __future__ import annotations

import csv
import json
import os
import shutil
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import pytest
from PIL import Image

from udml_core.base.errors import UserError
from udml_core.base.spreadsheets import guarded
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.given.exclusions import exclude
from udml_core.data.given.labels import assign
from udml_core.exploration.naming import GAMMA, Naming, Reached
from udml_core.numerics.neighbors import nearest
from udml_core.runs.search.naming import NamedImages, name_images, reach_along
from udml_core.work.exporting import plan_sorting, write_plan
from udml_core.work.exporting.safe_names import MOST_BYTES, Names, key_of, safe_name
from udml_core.work.exporting.sorting_plan import Plan
from udml_core.work.exporting.sorting_record import EARLIER, UNFINISHED

HOSTILE = ("../x", "..", "/etc/passwd", "CON", "con.txt", "COM1", "a/b\\c", "a:b*c?", "e\u0301t\u00e9", "\u00e9t\u00e9",
           "Heron", "heron", "HERON", "x" * 300, "\u00e4" * 300, "trailing. ", " leading", ".hidden", "",
           "\x00\n\u202e",
           "metadata.csv", "unnamed", "UNFINISHED.CSV", "STRASSE", "stra\u00dfe", "fiftyone", "=1+1",
           "-2 degrees", "@home", "+x", "'=2", "-" + "x" * 125, "=" + "\u6c34" * 60, "." + "y" * 130)


def naming_without_walks(codes: np.ndarray, classes: int) -> Naming:
    return Naming(Reached(codes, classes, lambda labeled: np.zeros(len(labeled))), np.zeros((0, 2), int))


def named(dataset: Dataset, labels: dict[int, str], classes: tuple[str, ...]) -> NamedImages:
    """Return names that are the labels alone."""
    codes = np.array([classes.index(labels[image]) if image in labels else -1 for image in range(len(dataset))])
    naming = naming_without_walks(codes, len(classes))
    return NamedImages(dataset, np.arange(len(dataset)), labels, classes, codes, naming, chosen=1.01)


@pytest.fixture
def photos(tmp_path: Path) -> Dataset:
    """Images in two folders with equal file names, as cameras write them."""
    for folder in ("a", "b"):
        (tmp_path / "photos" / folder).mkdir(parents=True)
        for number in range(20):
            shade = Image.new("RGB", (8, 8), (number * 9, 200 if folder == "a" else 90, 40))
            shade.save(tmp_path / "photos" / folder / f"IMG_{number:02}.jpg")
    return catalog.load(f"{tmp_path / 'photos'}#level=0")


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_name_stays_one_name_in_its_folder(text: str, tmp_path: Path) -> None:
    name = safe_name(text)
    assert (tmp_path / name).resolve().parent == tmp_path.resolve()
    assert guarded(name) == name, "a table names the folder as it is"
    assert not set(name) & set('/\\:*?"<>|\x00\n\u202e')
    assert name == name.strip(" ").rstrip(".")
    assert name.split(".")[0].upper() not in ("CON", "COM1")
    assert len(name.encode()) <= MOST_BYTES
    assert safe_name(name) == name, "an export finds its own files again"
    assert Names().give_file(Names().give_file(f"{text}.jpg")) == Names().give_file(f"{text}.jpg")
    assert name == unicodedata.normalize("NFC", name)
    (tmp_path / name).mkdir()


def test_names_that_are_one_on_some_system_get_numbers() -> None:
    names = Names()
    given = [names.give(text) for text in HOSTILE]
    assert len({key_of(name) for name in given}) == len(HOSTILE)
    assert given[HOSTILE.index("heron")] == "heron (2)"
    assert given[HOSTILE.index("\u00e9t\u00e9")] == "\u00e9t\u00e9 (2)", "two normal forms of one word"
    assert Names().give_file("a/IMG.JPG") == "IMG.JPG"
    assert Names().give_file("..\\..\\x.png") == "x.png"
    assert len(Names().give_file("y" * 300 + ".jpeg").encode()) <= MOST_BYTES
    assert Names().give_file("y" * 300 + ".jpeg").endswith(".jpeg")


def test_an_export_of_hostile_classes_stays_inside_the_target(photos: Dataset, tmp_path: Path) -> None:
    classes = tuple(text for text in HOSTILE if text)
    labels = {image: classes[image] for image in range(len(classes))}
    before = {path: path.read_bytes() for path in (tmp_path / "photos").rglob("*.jpg")}
    plan = plan_sorting(named(photos, labels, classes), tmp_path / "out")
    assert not (tmp_path / "out").exists(), "a plan writes nothing"
    write_plan(plan)
    assert {entry.name for entry in tmp_path.iterdir()} == {"photos", "out"}
    images = {file for file in files_in(tmp_path / "out") if file.endswith(".jpg")}
    assert len({key_of(file) for file in images}) == len(classes)
    for item in plan.items:
        assert (tmp_path / "out" / item.file).read_bytes() == before[tmp_path / "photos" / item.image]
    assert {path: path.read_bytes() for path in before} == before, "the user's files stay"


def write(photos: Dataset, target: Path, how: Any, **options: Any) -> Plan:
    labels = {0: "red", 1: "red", 20: "red", 5: "=1+1"}
    plan = plan_sorting(named(photos, labels, ("red", "=1+1")), target, how, **options)
    write_plan(plan)
    return plan


def test_copies_links_and_lists(photos: Dataset, tmp_path: Path) -> None:
    for how in ("copies", "links", "list"):
        plan = write(photos, tmp_path / how, how)
        assert plan.left_out == 36
        folder = tmp_path / how
        found = {file for file in files_in(folder) if file.endswith(".jpg")}
        expected = {"red/IMG_00.jpg", "red/IMG_01.jpg", "red/IMG_00 (2).jpg", "_=1+1/IMG_05.jpg"}
        assert found == (set() if how == "list" else expected)
        renamed = "1 file gets another name, because the old one is taken or some program would change it: "
        assert (f"{renamed}'IMG_00.jpg' becomes 'IMG_00 (2).jpg'." in plan.notes) == (how != "list")
        assert (how == "links") == (folder / "red" / "IMG_00.jpg").is_symlink()
        assert not (folder / UNFINISHED).exists()
        with (folder / "metadata.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["label"] for row in rows] == ["red", "red", "'=1+1", "red"], "no cell is a formula"
        assert all((folder if how != "list" else Path("/")).joinpath(row["file_name"]).is_file() for row in rows), (
            "Hugging Face opens the paths as they are")
        table = parquet.read_table(folder / "images.parquet").to_pylist()
        assert [row["label"] for row in table] == ["red", "red", "=1+1", "red"]
        assert all(Path(row["path"]).is_file() for row in table)
        manifest, labels = (json.loads((folder / "fiftyone" / f"{name}.json").read_text()) for name in
                            ("data", "labels"))
        assert manifest.keys() == labels["labels"].keys()
        assert all(Path(path).is_file() for path in manifest.values())


def test_files_for_other_programs_are_declined_and_kept_up_to_date_where_they_are(photos: Dataset, tmp_path: Path
                                                                                  ) -> None:
    write(photos, tmp_path / "plain", "copies", for_programs=False)
    assert {entry.name for entry in (tmp_path / "plain").iterdir()} == {
        "red", "_=1+1", "metadata.csv", "images.parquet"}
    write_plan(plan_sorting(named(photos, {0: "red"}, ("red",)), tmp_path / "all"))
    write_plan(plan_sorting(named(photos, {0: "red", 1: "red"}, ("red",)), tmp_path / "all", for_programs=False))
    assert len(json.loads((tmp_path / "all" / "label-studio.json").read_text())) == 2, "an old list would mislead"


def test_images_without_a_name_get_a_folder_on_request(photos: Dataset, tmp_path: Path) -> None:
    plan = write(photos, tmp_path / "out", "copies", with_unnamed=True)
    assert (plan.left_out, len(list((tmp_path / "out" / "unnamed").iterdir()))) == (0, 36)
    tasks = json.loads((tmp_path / "out" / "label-studio.json").read_text())
    assert sum("annotations" in task for task in tasks) == 4
    assert len(tasks) == 40


def test_an_interrupted_export_leaves_a_list_and_continues(photos: Dataset, tmp_path: Path) -> None:
    class StopError(Exception):
        pass

    def stop(share: float, step: str) -> None:
        if share > 0.4:
            raise StopError

    labels = dict.fromkeys(range(10), "red")
    plan, out = plan_sorting(named(photos, labels, ("red",)), tmp_path / "out"), tmp_path / "out"
    with pytest.raises(StopError):
        write_plan(plan, stop)
    assert len(list((out / "red").iterdir())) == 5
    assert len((out / UNFINISHED).read_text().splitlines()) == 11
    again = plan_sorting(named(photos, {3: "blue"}, ("blue",)), out)
    assert again.continues
    assert again.items == plan.items, "the list, not the labels since"
    stamp = (out / "red" / "IMG_00.jpg").stat().st_ino
    write_plan(again)
    assert (out / "red" / "IMG_00.jpg").stat().st_ino == stamp, "what is written stays"
    assert len(list((out / "red").iterdir())) == 10
    assert not (out / UNFINISHED).exists()


def test_an_interrupted_addition_leaves_copies_that_were_edited(photos: Dataset, tmp_path: Path) -> None:
    def stop(share: float, step: str) -> None:
        if share > 0.4:
            raise KeyboardInterrupt

    out = tmp_path / "out"
    write_plan(plan_sorting(named(photos, {0: "red"}, ("red",)), out))
    (out / "red" / "IMG_00.jpg").write_bytes(b"edited, and of another length")
    more = named(photos, dict.fromkeys(range(10), "red"), ("red",))
    with pytest.raises(KeyboardInterrupt):
        write_plan(plan_sorting(more, out), stop)
    again = plan_sorting(more, out)
    assert (again.continues, again.there) == (True, {"red/IMG_00.jpg"})
    write_plan(again)
    assert (out / "red" / "IMG_00.jpg").read_bytes() == b"edited, and of another length"
    assert len(list((out / "red").iterdir())) == 10


def test_a_list_that_a_user_changed_or_put_there_is_kept_beside_the_new_one(photos: Dataset, tmp_path: Path) -> None:
    out, names = tmp_path / "out", named(photos, {0: "red"}, ("red",))
    more = named(photos, {0: "red", 1: "red"}, ("red",))
    write_plan(plan_sorting(names, out, for_programs=False))
    (out / "label-studio.json").write_text("mine")
    again = plan_sorting(more, out, for_programs=False)
    assert (again.for_programs, again.changed) == (False, ()), "a file that no export wrote is not its list"
    write_plan(again)
    assert (out / "label-studio.json").read_text() == "mine"
    table = (out / "metadata.csv").read_text().replace("file_name", "note,file_name", 1).replace("\nred", "\nseen,red")
    (out / "metadata.csv").write_text(table)
    plan = plan_sorting(names, out)
    assert plan.changed == ("metadata.csv", "label-studio.json")
    assert "A copy of each is kept beside the new list, such as metadata kept.csv." in " ".join(plan.notes)
    write_plan(plan)
    assert (out / "metadata kept.csv").read_text() == table
    assert (out / "label-studio kept.json").read_text() == "mine"
    assert json.loads((out / "label-studio.json").read_text())
    last = plan_sorting(more, out, for_programs=False)
    assert (last.for_programs, last.changed) == (True, ()), "its own lists for programs are kept up to date"
    write_plan(last)
    assert len(json.loads((out / "label-studio.json").read_text())) == 2
    assert not list(out.glob("*kept (2)*"))


def test_no_list_is_written_through_a_link(photos: Dataset, tmp_path: Path) -> None:
    out, mine = tmp_path / "out", tmp_path / "mine"
    mine.mkdir()
    (mine / "labels.json").write_text("mine")
    write_plan(plan_sorting(named(photos, {0: "red"}, ("red",)), out, for_programs=False))
    (out / "fiftyone").symlink_to(mine)
    with pytest.raises(UserError, match="is a link to another folder, where an export never writes"):
        plan_sorting(named(photos, {0: "red"}, ("red",)), out)
    write_plan(plan_sorting(named(photos, {0: "red"}, ("red",)), out, for_programs=False))
    assert (mine / "labels.json").read_text() == "mine"


def test_the_numbers_of_a_plan_add_up_to_the_data_set(photos: Dataset, tmp_path: Path) -> None:
    exclude(photos, [*range(30, 38), 0])
    (tmp_path / "photos" / "a" / "IMG_03.jpg").unlink()
    whole = named(photos, dict.fromkeys(range(10), "red"), ("red",))
    kept = np.arange(30)  # the run began with eight images excluded, and does not have the last two
    names = replace(whole, images=kept, codes=whole.codes[kept], naming=naming_without_walks(
        whole.codes[kept], 1))
    plan = plan_sorting(names, tmp_path / "out")
    assert (len(plan.items), plan.excluded, plan.missing) == (8, 9, 1)
    assert "and 9 that you excluded" in plan.lines[0]
    assert len(plan.items) + plan.left_out + plan.excluded + plan.missing == len(photos)


@pytest.mark.parametrize("how", ["copies", "links", "list"])
def test_a_continued_export_leaves_out_what_was_excluded_or_removed_since(
        how: Any, photos: Dataset, tmp_path: Path) -> None:
    out = tmp_path / "out"
    plan = plan_sorting(named(photos, dict.fromkeys(range(10), "red"), ("red",)), out, how)
    write_plan(plan)
    (out / UNFINISHED).write_text("".join(["image,file,class,certainty,assigned,how\n", *(
        f"{item.image},{item.file},red,1.0,1,{how}\n" for item in plan.items)]))
    for number in range(5, 10):
        (out / "red" / f"IMG_{number:02}.jpg").unlink(missing_ok=how == "list")
    exclude(photos, [0, 8, 30])
    for number in (1, 9):
        (tmp_path / "photos" / "a" / f"IMG_{number:02}.jpg").unlink()
    stale, fresh = photos, catalog.load(f"{tmp_path / 'photos'}#level=0")
    for dataset in (stale, fresh):
        again = plan_sorting(named(dataset, {}, ("red",)), out, how)
        assert {item.image for item in again.items} == {f"a/IMG_{number:02}.jpg" for number in range(2, 8)}
        assert (again.excluded, again.missing, len(again.earlier)) == (3, 2, 0 if how == "list" else 2)
        assert again.left_out == 40 - 6 - 3 - 2
        assert "and 3 that you excluded, and 2 whose files are gone" in again.lines[0]
        assert ("2 files of an earlier export do not belong to this one: 1 file in red/ is of an image that you "
                "excluded; 1 file in red/ is of an image that is gone." in " ".join(again.notes)) == (how != "list")
    write_plan(again)
    assert not (out / "red" / "IMG_08.jpg").exists()
    rows = list(csv.DictReader((out / "metadata.csv").read_text().splitlines()))
    assert {row["image"] for row in rows} == {item.image for item in again.items}


@pytest.mark.parametrize(("first", "second", "words"), [
    ("links", "copies", "1 file there is a link and stays one. Choose a new folder for copies"),
    ("copies", "links", "1 file there is a copy and stays one. Choose a new folder for links"),
    ("copies", "copies", ""), ("links", "list", "")])
def test_the_plan_says_that_links_stay_links(first: Any, second: Any, words: str, photos: Dataset,
                                             tmp_path: Path) -> None:
    write_plan(plan_sorting(named(photos, {0: "red"}, ("red",)), tmp_path / "out", first))
    plan = plan_sorting(named(photos, {0: "red", 1: "red"}, ("red",)), tmp_path / "out", second)
    assert any(words in note for note in plan.notes) if words else not plan.other_kind
    write_plan(plan)
    assert (tmp_path / "out" / "red" / "IMG_00.jpg").is_symlink() == (first == "links")


def test_an_image_whose_file_is_gone_is_left_out_and_said(photos: Dataset, tmp_path: Path) -> None:
    (tmp_path / "photos" / "a" / "IMG_03.jpg").unlink()
    plan = plan_sorting(named(photos, dict.fromkeys(range(10), "red"), ("red",)), tmp_path / "out")
    assert (len(plan.items), plan.left_out, plan.missing) == (9, 30, 1)
    assert "1 whose files are gone" in plan.lines[0]
    write_plan(plan)
    assert len(list((tmp_path / "out" / "red").iterdir())) == 9


def test_a_prepared_list_writes_neither_among_the_images_nor_through_a_link(photos: Dataset, tmp_path: Path) -> None:
    plan = plan_sorting(named(photos, {0: "red", 1: "red"}, ("red",)), tmp_path / "out")
    with pytest.raises(IndexError):
        write_plan(plan, lambda _share, _step: [][1])
    inside = tmp_path / "photos" / "inside"
    inside.mkdir()
    (inside / UNFINISHED).write_bytes((tmp_path / "out" / UNFINISHED).read_bytes())
    with pytest.raises(UserError, match="folder of the images"):
        plan_sorting(named(photos, {0: "red"}, ("red",)), inside)
    shutil.rmtree(tmp_path / "out" / "red")
    (tmp_path / "victim").mkdir()
    (tmp_path / "out" / "red").symlink_to(tmp_path / "victim")
    with pytest.raises(UserError, match="link to another folder"):
        write_plan(plan_sorting(named(photos, {0: "red"}, ("red",)), tmp_path / "out"))
    assert not list((tmp_path / "victim").iterdir())


@pytest.mark.parametrize(("column", "value"), [("file", "../../evil.jpg"), ("file", "/etc/evil.jpg"),
                                               ("file", "a/b/c.jpg"), ("image", "unknown.jpg"), ("how", "move"),
                                               ("certainty", "x")])
def test_a_forged_list_is_refused(column: str, value: str, photos: Dataset, tmp_path: Path) -> None:
    row = {"image": photos.names[0], "file": "red/IMG_00.jpg", "class": "red", "certainty": "1.0", "assigned": "1",
           "how": "copies"} | {column: value}
    out = tmp_path / "out"
    out.mkdir()
    (out / UNFINISHED).write_text(f"{','.join(row)}\n{','.join(row.values())}\n")
    with pytest.raises(UserError, match="Choose another folder"):
        plan_sorting(named(photos, {0: "red"}, ("red",)), out)
    assert files_in(out) == {UNFINISHED}


def test_other_folders_are_never_written_to(photos: Dataset, tmp_path: Path) -> None:
    names = named(photos, {0: "red"}, ("red",))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    for target, words in ((tmp_path / "full", "mine.txt"), (tmp_path / "photos" / "sorted", "folder of the images"),
                          (tmp_path / "full" / "mine.txt", "is a file")):
        with pytest.raises(UserError, match=words):
            plan_sorting(names, target)
    with pytest.raises(UserError, match="No image has a name"):
        plan_sorting(named(photos, {}, ()), tmp_path / "out")
    assert plan_sorting(named(photos, {}, ()), tmp_path / "out", with_unnamed=True).folders == {("images", ""): 40}
    plan = plan_sorting(names, tmp_path / "out")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "late.txt").write_text("mine")
    with pytest.raises(UserError, match=r"late\.txt"):
        write_plan(plan)
    assert files_in(tmp_path / "out") == {"late.txt"}


def test_images_are_added_to_an_earlier_export_and_its_files_stay(photos: Dataset, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_plan(plan_sorting(named(photos, {0: "red", 1: "red", 2: "red"}, ("red",)), out))
    (out / "red" / "IMG_00.jpg").write_bytes(b"edited")
    (out / "red" / "IMG_03.jpg").write_bytes(b"mine")
    (out / "red" / "IMG_02.jpg").unlink()
    plan = plan_sorting(named(photos, {0: "red", 1: "blue", 2: "red", 3: "red", 20: "blue"}, ("red", "blue")), out)
    files = {item.image: item.file for item in plan.items}
    assert files[photos.names[0]] == "red/IMG_00.jpg"
    assert files[photos.names[3]] == "red/IMG_03 (2).jpg", "a file of the user is in the way"
    assert (sorted(plan.there), [former.reason for former in plan.earlier]) == (["red/IMG_00.jpg"], ["renamed"])
    assert "1 image of an earlier export is there and will not be touched; 4 will be added." in plan.notes
    assert "not belong to this one: 1 file in red/ has another name now. They stay" in " ".join(plan.notes)
    write_plan(plan)
    assert (out / "red" / "IMG_00.jpg").read_bytes() == b"edited"
    assert (out / "red" / "IMG_03.jpg").read_bytes() == b"mine"
    images = {f"red/IMG_0{number}.jpg" for number in range(4)} | {
        "red/IMG_03 (2).jpg", "blue/IMG_01.jpg", "blue/IMG_00.jpg"}
    assert {file for file in files_in(out) if file.endswith(".jpg")} == images
    rows = list(csv.DictReader((out / "metadata.csv").read_text().splitlines()))
    assert {row["image"]: row["file_name"] for row in rows} == files
    again = plan_sorting(named(photos, {0: "red", 1: "blue"}, ("red", "blue")), out)
    assert again.there == {item.file for item in again.items}, "nothing is left to add"


@pytest.mark.parametrize("how", ["copies", "links"])
def test_files_of_earlier_exports_are_listed_and_removed_on_request_if_nothing_is_lost(
        how: Any, photos: Dataset, tmp_path: Path) -> None:
    out, source = tmp_path / "out", tmp_path / "photos" / "a"
    before = {path: path.read_bytes() for path in source.rglob("*")}
    write_plan(plan_sorting(named(photos, {0: "red", 1: "red"}, ("red",)), out, how, with_unnamed=True))
    (out / "unnamed" / "IMG_02.jpg").unlink()
    (out / "unnamed" / "IMG_02.jpg").write_bytes(b"edited")
    (out / "unnamed" / "mine.jpg").write_bytes((source / "IMG_02.jpg").read_bytes())
    (source / "IMG_09.jpg").unlink()
    exclude(photos, [8])
    names = named(photos, dict.fromkeys(range(1, 6), "blue"), ("blue",))
    for prunes in (False, False, True):  # the second time, the table of images does not list them any more
        plan = plan_sorting(names, out, how, with_unnamed=True, prunes=prunes)
        assert {former.item.file: former.reason for former in plan.earlier} == {
            "red/IMG_00.jpg": "unnamed", "red/IMG_01.jpg": "renamed", "unnamed/IMG_08.jpg": "excluded",
            "unnamed/IMG_09.jpg": "gone", **{f"unnamed/IMG_0{number}.jpg": "named" for number in range(2, 6)}}
        assert "4 files in unnamed/ have a name now" in " ".join(plan.notes)
        assert ("unless you choose to remove them" in " ".join(plan.notes)) != prunes
        files = files_in(out)
        if not prunes:
            write_plan(plan)
            assert (out / EARLIER).exists()
            assert files <= files_in(out), "without a request everything stays"
    removed = {former.item.file for former in plan.removed}
    dangling = {"unnamed/IMG_09.jpg"} if how == "links" else set()
    assert removed == dangling | {"red/IMG_00.jpg", "red/IMG_01.jpg", "unnamed/IMG_08.jpg", *(
        f"unnamed/IMG_0{number}.jpg" for number in range(3, 6))}
    (out / "unnamed" / "IMG_03.jpg").unlink()
    (out / "unnamed" / "IMG_03.jpg").write_bytes(b"edited after the plan")
    write_plan(plan)
    assert files - files_in(out) == removed - {"unnamed/IMG_03.jpg"}
    assert not (out / "red").exists(), "an empty folder leaves too"
    with (out / EARLIER).open(newline="") as file:
        assert {row["file"] for row in csv.DictReader(file)} == {
            "unnamed/IMG_02.jpg", "unnamed/IMG_03.jpg", "unnamed/IMG_09.jpg"} - dangling
    assert {path: path.read_bytes() for path in before if path.exists()} == {
        path: content for path, content in before.items() if path.name != "IMG_09.jpg"}, "the user's files stay"


def test_an_export_is_emptied_on_request_when_no_name_is_left_and_filled_again(photos: Dataset, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_plan(plan_sorting(named(photos, {0: "red", 1: "red"}, ("red",)), out))
    with pytest.raises(UserError, match=r"No image has a name.*choose that \(--prune\)"):
        plan_sorting(named(photos, {}, ()), out)
    plan = plan_sorting(named(photos, {}, ()), out, prunes=True)
    assert plan.lines[0] == "No image has a name now, so nothing is written."
    write_plan(plan)
    assert not [file for file in files_in(out) if "/IMG" in file or file in (UNFINISHED, EARLIER)]
    write_plan(plan_sorting(named(photos, {3: "blue"}, ("blue",)), out))
    assert {file for file in files_in(out) if file.endswith(".jpg")} == {"blue/IMG_03.jpg"}


def test_no_file_is_removed_through_a_prepared_list(photos: Dataset, tmp_path: Path) -> None:
    out, row = tmp_path, "image,file,class,certainty,assigned,how\n"
    write_plan(plan_sorting(named(photos, {0: "red"}, ("red",)), out / "export"))
    mine = out / "elsewhere" / "IMG_01.jpg"
    mine.parent.mkdir()
    mine.write_bytes((out / "photos" / "a" / "IMG_01.jpg").read_bytes())
    (out / "export" / "linked").symlink_to(mine.parent)
    (out / "export" / EARLIER).write_text(
        f"{row}{photos.names[1]},linked/IMG_01.jpg,,0,0,copies\n{photos.names[1]},../elsewhere/IMG_01.jpg,,0,0,copies\n")
    plan = plan_sorting(named(photos, {0: "red"}, ("red",)), out / "export", prunes=True)
    assert [former.kept for former in plan.earlier] == ["a link to another folder leads there"]
    write_plan(plan)
    assert mine.exists()


@pytest.mark.parametrize(("first", "second"), [("copies", "links"), ("links", "copies"), ("copies", "list")])
def test_an_interrupted_export_continues_as_it_is_chosen_now(first: Any, second: Any, photos: Dataset,
                                                             tmp_path: Path) -> None:
    names, out = named(photos, dict.fromkeys(range(4), "red"), ("red",)), tmp_path / "out"
    with pytest.raises(IndexError):
        write_plan(plan_sorting(names, out, first), lambda _share, _step: [][1])
    plan = plan_sorting(names, out, second)
    what = {"links": "links", "copies": "copies", "list": "a list"}
    assert plan.notes[0] == ("This continues the list of an interrupted export, unfinished.csv, which wrote "
                             f"{what[first]}; the rest becomes {what[second]}.")
    assert plan.other_kind == (second != "list")
    write_plan(plan)
    links = [path.is_symlink() for path in sorted((out / "red").iterdir())]
    assert links == ([False] if second == "list" else [first == "links", *[second == "links"] * 3])


@pytest.mark.parametrize("table", ["file_name,label,certainty,assigned,image\nred/a.jpg,red,1.0,1,unknown.jpg\n",
                                   "file_name,text\na.jpg,mine\n", "file_name,text\n", "\x00", ""])
def test_a_table_of_other_images_is_never_replaced(table: str, photos: Dataset, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "metadata.csv").write_text(table)
    with pytest.raises(UserError, match="Choose another folder") as error:
        plan_sorting(named(photos, {0: "red"}, ("red",)), out)
    assert "closed file" not in str(error.value)
    assert (out / "metadata.csv").read_text() == table


def test_an_earlier_table_leads_to_no_file_outside_its_folder(photos: Dataset, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_plan(plan_sorting(named(photos, {0: "red"}, ("red",)), out))
    table = (out / "metadata.csv").read_text()
    (out / "metadata.csv").write_text(f"{table}../photos/a/IMG_01.jpg,red,1.0,1,{photos.names[1]}\n")
    plan = plan_sorting(named(photos, {0: "red", 1: "red"}, ("red",)), out)
    assert {item.file for item in plan.items} == {"red/IMG_00.jpg", "red/IMG_01.jpg"}
    assert plan.there == {"red/IMG_00.jpg"}


def test_a_plan_says_how_many_names_no_user_gave(photos: Dataset, tmp_path: Path) -> None:
    names = named(photos, {0: "red", 1: "red"}, ("red",))
    accepted = np.where(np.arange(len(photos)) < 5, 0, -1)
    vars(names)["accepted"] = accepted  # three more by certainty
    plan = plan_sorting(names, tmp_path / "out")
    assert plan.guessed == {"red": 3}
    assert plan.notes == ["3 names of these are not confirmed: given by certainty alone, or to so many images at once "
                          "that you did not see each. In metadata.csv the column assigned is 0 there."]


def test_images_named_in_bulk_are_exported_as_guesses(photos: Dataset, tmp_path: Path) -> None:
    assign(photos, range(10), "red", is_unseen=True)
    assign(photos, [3, 15, 16], "red")
    walk = nearest(np.linspace(0, 1, len(photos), dtype=np.float32)[:, None] ** [1, 2], 5)[1]
    named = name_images(photos, np.arange(len(photos)), reach_along(walk, GAMMA), chosen=1.01)
    plan = plan_sorting(named, tmp_path / "out")
    assert plan.guessed == {"red": 9}
    assert "9 names of these are not confirmed" in " ".join(plan.notes)
    write_plan(plan)
    looked = {photos.names[image] for image in (3, 15, 16)}
    rows = {row["image"]: row for row in csv.DictReader((tmp_path / "out" / "metadata.csv").read_text().splitlines())}
    assert {name for name, row in rows.items() if row["assigned"] == "1"} == looked
    assert {name for name, row in rows.items() if float(row["certainty"]) == 1} == looked
    assert all(float(row["certainty"]) > 0 for row in rows.values())
    tasks = json.loads((tmp_path / "out" / "label-studio.json").read_text())
    assert {task["data"]["name"] for task in tasks if "annotations" in task} == looked
    assert all("predictions" in task for task in tasks if task["data"]["name"] not in looked)
    labels = json.loads((tmp_path / "out" / "fiftyone" / "labels.json").read_text())["labels"]
    assert sorted(label["confidence"] for label in labels.values())[-4:] < [1, 1, 1, 1]


@pytest.mark.parametrize("how", ["copies", "links"])
def test_the_last_file_of_a_photograph_is_never_removed(how: Any, photos: Dataset, tmp_path: Path) -> None:
    """A user may save space by links from the folder of the images to the export, also to a copy of another image."""
    out, source = tmp_path / "out", tmp_path / "photos" / "a"
    write_plan(plan_sorting(named(photos, {0: "red"}, ("red",)), out, "copies", with_unnamed=True))
    content = (source / "IMG_03.jpg").read_bytes()
    for name, kept in (("IMG_03.jpg", "IMG_03.jpg"), ("IMG_04.jpg", "IMG_05.jpg")):
        (source / name).unlink()
        (source / name).symlink_to(out / "unnamed" / kept)
    plan = plan_sorting(named(photos, dict.fromkeys(range(6), "red"), ("red",)), out, how, prunes=True)
    assert {former.item.file: former.kept for former in plan.earlier if former.item.image in (
        photos.names[3], photos.names[4])} == dict.fromkeys(
            ("unnamed/IMG_03.jpg", "unnamed/IMG_04.jpg"), "your image is a link to a file of the export")
    write_plan(plan)
    assert (source / "IMG_03.jpg").read_bytes() == content


def test_a_copy_that_changed_within_the_same_size_and_time_is_not_removed(photos: Dataset, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_plan(plan_sorting(named(photos, {0: "red", 1: "red"}, ("red",)), out))
    plan = plan_sorting(named(photos, {0: "red"}, ("red",)), out, prunes=True)
    assert [former.item.file for former in plan.removed] == ["red/IMG_01.jpg"]
    copy = out / "red" / "IMG_01.jpg"
    before, content = copy.stat(), bytearray(copy.read_bytes())
    content[10] ^= 1
    copy.write_bytes(content)
    os.utime(copy, ns=(before.st_atime_ns, before.st_mtime_ns))
    write_plan(plan)
    assert copy.read_bytes() == content


def test_no_image_that_links_to_a_copy_of_another_loses_it(photos: Dataset, tmp_path: Path) -> None:
    out, source = tmp_path / "out", tmp_path / "photos" / "a"
    write_plan(plan_sorting(named(photos, {5: "red"}, ("red",)), out))
    (source / "zlink.jpg").symlink_to(out / "red" / "IMG_05.jpg")
    now = catalog.load(photos.name)
    (first,) = now.indices_by_name({"a/IMG_00.jpg"}).values()
    plan = plan_sorting(named(now, {first: "red"}, ("red",)), out, prunes=True)
    assert [former.kept for former in plan.earlier] == ["your image is a link to a file of the export"]
    write_plan(plan)
    assert (source / "zlink.jpg").exists()


def test_files_there_that_are_of_other_images_are_named(photos: Dataset, tmp_path: Path) -> None:
    names, out = named(photos, {0: "red", 1: "red"}, ("red",)), tmp_path / "out"
    write_plan(plan_sorting(names, out))
    assert plan_sorting(names, out).differing == ()
    other = bytearray((tmp_path / "photos" / "a" / "IMG_01.jpg").read_bytes())
    other[10] ^= 1
    (out / "red" / "IMG_01.jpg").write_bytes(other)
    plan = plan_sorting(names, out)
    assert plan.differing == ("red/IMG_01.jpg",), "of the same size"
    assert "1 file there differs from your image of this name and stays, such as red/IMG_01.jpg" in " ".join(plan.notes)
    with (out / "metadata.csv").open("a") as table:
        table.write("my note\n")
    with pytest.raises(UserError, match="could not be read: a row has fewer values than the first line"):
        plan_sorting(names, out)


@pytest.mark.parametrize("how", ["copies", "links"])
def test_a_renamed_photograph_is_not_written_twice(how: Any, photos: Dataset, tmp_path: Path) -> None:
    out, source = tmp_path / "out", tmp_path / "photos" / "a"
    write_plan(plan_sorting(named(photos, {0: "red", 1: "red"}, ("red",)), out, how))
    (source / "IMG_01.jpg").rename(source / "renamed.jpg")
    now = catalog.load(photos.name)
    labels = dict.fromkeys(now.indices_by_name({"a/IMG_00.jpg", "a/renamed.jpg"}).values(), "red")
    assert len(labels) == 2
    write_plan(plan_sorting(named(now, labels, ("red",)), out, how, prunes=True))
    written = {path.name: path.read_bytes() for path in (out / "red").iterdir()}
    assert len(written) == len(set(written.values())) == 2, "no file twice, and no link that leads nowhere"
    assert plan_sorting(named(now, labels, ("red",)), out, how).earlier == ()
