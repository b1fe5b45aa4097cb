"""Excluded images leave their folder and come back: plans, clashes, kills, hostile lists, and what stays usable."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.running import worked
from udml_core.base.errors import UserError
from udml_core.data import catalog, features
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import Encoder
from udml_core.data.features import features_of
from udml_core.data.given.exclusions import exclude, excluded_names, include
from udml_core.data.given.growth import changes_of
from udml_core.data.given.labels import assign, assigned_labels
from udml_core.runs.search import Retrieval
from udml_core.work import jobs
from udml_core.work.exporting import move_files, moved_folders, plan_moving, plan_moving_back
from udml_core.work.exporting.moving import MOVED

COUNT = 20
OUT = ("=1+1.jpg", "b/IMG_01.jpg", "b/IMG_02.jpg")


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """Images of which three are excluded, one with a name that a spreadsheet would compute."""
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "photos"
    (root / "b").mkdir(parents=True)
    for number in range(COUNT):
        name = "=1+1.jpg" if number == 0 else f"{'b/' if number % 2 else ''}IMG_{number:02}.jpg"
        Image.new("RGB", (12, 12), (number * 9, 255 - number * 12, 40)).save(root / name)
    (root / "b" / "IMG_02.jpg").write_bytes((root / "IMG_02.jpg").read_bytes())
    dataset = catalog.load(f"{root}#level=0")
    exclude(dataset, dataset.indices_by_name(set(OUT)).values())
    return dataset


def again(dataset: Dataset) -> Dataset:
    return catalog.load(dataset.name)


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_excluded_images_move_and_come_back(photos: Dataset, tmp_path: Path) -> None:
    before = files_in(tmp_path / "photos")
    plan = plan_moving(photos, tmp_path / "away")
    assert plan.lines[0].startswith("Move 3 excluded images (")
    assert not (tmp_path / "away").exists(), "a plan writes nothing"
    assert move_files(plan) == 3
    assert set(files_in(tmp_path / "away")) == {*OUT, MOVED}
    assert files_in(tmp_path / "photos") == {name: content for name, content in before.items() if name not in OUT}
    now = again(photos)
    assert len(now) == len(photos) - 3
    assert excluded_names(now) == ()
    assert changes_of(now) is None, "what was moved on purpose is no news"
    assert moved_folders(now) == [tmp_path / "away"]
    assert move_files(plan_moving_back(now, tmp_path / "away" / MOVED)) == 3
    assert files_in(tmp_path / "photos") == before
    back = again(photos)
    assert back.fingerprint == photos.fingerprint
    assert set(excluded_names(back)) == set(OUT)
    assert changes_of(back) is None
    assert list((tmp_path / "away").rglob("*")) == [], "the list and empty folders are gone"
    assert moved_folders(back) == []


def test_features_labels_and_runs_stay(photos: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = worked(tmp_path / "runs", method="frozen", dataset=photos.name, split="all")
    kept = [name for name in photos.names if name not in OUT]
    assign(photos, photos.indices_by_name({kept[2], OUT[1]}).values(), "gull")
    move_files(plan_moving(photos, tmp_path / "away"))
    now = again(photos)
    read: list[object] = []
    prepare = features.PreparedImages._prepare
    monkeypatch.setattr(features.PreparedImages, "_prepare", lambda self, index: (
        read.append(index), prepare(self, index))[1])
    encoder = Encoder(jobs.encoder_of(now, "pixels"))
    after = features_of(now, encoder)
    assert read == [], "nothing is computed twice"
    before = features_of(photos, encoder)
    assert np.array_equal(after, before[[photos.names.index(name) for name in now.names]])
    assert assigned_labels(now) == {kept[2]: "gull"}
    opened = Retrieval(run)
    assert len(opened.dataset) == len(photos), "an earlier run has all its images"
    query = opened.dataset.names.index(kept[2])
    hits = [opened.dataset.names[hit.index] for hit in opened.search_item(query, 5)]
    assert len(hits) == 5
    assert not set(hits) & set(OUT)
    move_files(plan_moving_back(now, tmp_path / "away"))
    assert features_of(again(photos), encoder).shape == before.shape
    assert read == []
    include(again(photos), again(photos).indices_by_name({OUT[1]}).values())
    assert assigned_labels(again(photos)) == {kept[2]: "gull", OUT[1]: "gull"}


def test_more_images_follow_into_the_same_folder(photos: Dataset, tmp_path: Path) -> None:
    move_files(plan_moving(photos, tmp_path / "away"))
    now = again(photos)
    exclude(now, [0])
    assert move_files(plan_moving(now, tmp_path / "away")) == 1
    with (tmp_path / "away" / MOVED).open(newline="", encoding="utf-8") as table:
        assert len(list(csv.DictReader(table))) == 4
    assert move_files(plan_moving_back(again(photos), tmp_path / "away")) == 4
    assert again(photos).fingerprint == photos.fingerprint


def test_a_clash_of_names_stays_in_both_directions(photos: Dataset, tmp_path: Path) -> None:
    away, home = tmp_path / "away", tmp_path / "photos"
    move_files(plan_moving(photos, away))
    Image.new("RGB", (12, 12), "navy").save(home / OUT[1])
    newer = (home / OUT[1]).read_bytes()
    now = again(photos)
    assert excluded_names(now) == (OUT[1],), "a name stays on the list"
    with pytest.raises(UserError, match="a file of the same name is in the other folder"):
        plan_moving(now, away)
    plan = plan_moving_back(now, away)
    assert plan.left == ((OUT[1], "a file of the same name is in the other folder"),)
    assert "1 file stays: a file of the same name is in the other folder." in plan.lines
    assert move_files(plan) == 2
    assert (home / OUT[1]).read_bytes() == newer
    assert set(files_in(away)) == {OUT[1], MOVED}, "what could not return stays listed"


def test_a_file_that_comes_after_the_plan_is_not_overwritten(photos: Dataset, tmp_path: Path) -> None:
    plan = plan_moving(photos, tmp_path / "away")
    (tmp_path / "away" / "b").mkdir(parents=True)
    (tmp_path / "away" / OUT[1]).write_bytes(b"other")
    with pytest.raises(UserError, match="was not moved: a file of the same name"):
        move_files(plan)
    assert (tmp_path / "away" / OUT[1]).read_bytes() == b"other"
    assert (tmp_path / "photos" / OUT[1]).exists()


SLOW = """
import sys, time
from udml_core.base import moving
from udml_core.data import catalog
from udml_core.work.exporting import move_files, plan_moving, plan_moving_back
from udml_core.work.exporting import moving_files
move = moving_files.move_file
def slow(source, target):
    move(source, target)
    print("moved", flush=True)
    time.sleep(60)
def half(source, target):
    import os
    os.link(source, target)
    print("moved", flush=True)
    time.sleep(60)
moving_files.move_file = half if sys.argv[4] == "half" else slow
dataset = catalog.load(sys.argv[1])
plan = plan_moving(dataset, sys.argv[2]) if sys.argv[3] == "out" else plan_moving_back(dataset, sys.argv[2])
move_files(plan)
"""


@pytest.mark.parametrize("where", ["between", "half"])
@pytest.mark.parametrize("way", ["out", "back"])
def test_a_kill_at_any_moment_loses_nothing(way: str, where: str, photos: Dataset, tmp_path: Path) -> None:
    before = files_in(tmp_path / "photos")
    if way == "back":
        move_files(plan_moving(photos, tmp_path / "away"))
    child = subprocess.Popen([sys.executable, "-c", SLOW, photos.name, str(tmp_path / "away"), way, where],
                             stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "moved\n"
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    there, here = files_in(tmp_path / "away"), files_in(tmp_path / "photos")
    assert there.pop(MOVED)
    assert here | there == before, "each file is whole in one of the two folders"
    now = again(photos)
    if way == "out":
        assert move_files(plan_moving(now, tmp_path / "away")) == (3 if where == "half" else 2)
        assert set(files_in(tmp_path / "away")) == {*OUT, MOVED}
        now = again(photos)
    move_files(plan_moving_back(now, tmp_path / "away"))
    assert files_in(tmp_path / "photos") == before
    assert files_in(tmp_path / "away") == {}


def test_a_kill_can_also_be_answered_by_moving_back(photos: Dataset, tmp_path: Path) -> None:
    before = files_in(tmp_path / "photos")
    plan = plan_moving(photos, tmp_path / "away")
    with pytest.raises(KeyboardInterrupt):
        move_files(plan, lambda _share, _step: (_ for _ in ()).throw(KeyboardInterrupt))
    assert len(files_in(tmp_path / "away")) == 2
    assert move_files(plan_moving_back(again(photos), tmp_path / "away")) == 1
    assert files_in(tmp_path / "photos") == before


@pytest.mark.parametrize("file", ["../photos/IMG_04.jpg", "/etc/x.jpg", "b/../../x.jpg", "./b/IMG_01.jpg", ".x.jpg",
                                  "b//IMG_01.jpg", "", "notes.txt", ".git/x.jpg", "x\0.jpg"])
def test_a_hostile_list_moves_nothing(file: str, photos: Dataset, tmp_path: Path) -> None:
    move_files(plan_moving(photos, tmp_path / "away"))
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    before = files_in(tmp_path)
    with (tmp_path / "away" / MOVED).open("a", newline="", encoding="utf-8") as table:
        csv.writer(table).writerow([file, 6, str(tmp_path / "photos")])
    with pytest.raises(UserError, match=r"Nothing was moved|could not be read"):
        plan_moving_back(again(photos), tmp_path / "away")
    after = files_in(tmp_path)
    assert {name for name in after if name.startswith(("photos", "away", "secret"))} == {
        name for name in before if name.startswith(("photos", "away", "secret"))}


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"file,bytes\na.jpg,1\n", b"file,bytes,folder\na.jpg,x,/p\n",
                                     b"file,bytes,folder\na.jpg,1,/p\nb.jpg,1,/q\n"])
def test_a_damaged_list_is_an_error(content: bytes, photos: Dataset, tmp_path: Path) -> None:
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / MOVED).write_bytes(content)
    for plan in (plan_moving, plan_moving_back):
        with pytest.raises(UserError, match="could not be read"):
            plan(photos, tmp_path / "away")


def test_links_never_move_and_lead_nowhere(photos: Dataset, tmp_path: Path) -> None:
    home, outside = tmp_path / "photos", tmp_path / "outside"
    outside.mkdir()
    for name in ("x.jpg", "y.jpg"):
        Image.new("RGB", (12, 12), "teal").save(outside / name)
    (home / "link.jpg").symlink_to(outside / "x.jpg")
    (home / "linked").symlink_to(outside)
    now = again(photos)
    exclude(now, now.indices_by_name({"link.jpg", "linked/x.jpg", "linked/y.jpg"}).values())
    plan = plan_moving(now, tmp_path / "away")
    assert {file for file, _ in plan.left} == {"link.jpg", "linked/x.jpg", "linked/y.jpg"}
    assert {item.file for item in plan.items} == set(OUT)
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "b").symlink_to(outside)
    with pytest.raises(UserError, match=r"a link in the other folder leads elsewhere|other files"):
        move_files(plan)
    assert set(files_in(outside)) == {"x.jpg", "y.jpg"}


def test_unsuitable_folders_and_data_sets_are_refused(photos: Dataset, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for folder, message in (("full", "has other files"), ("file", "is a file"), ("photos/in", "lies in the folder")):
        with pytest.raises(UserError, match=message):
            plan_moving(photos, tmp_path / folder)
    with pytest.raises(UserError, match="plain folder"):
        plan_moving(catalog.load("digits"), tmp_path / "away")
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
        for path in (tmp_path / "photos").glob("*.jpg"):
            archive.write(path, path.name)
    extracted = catalog.load(str(tmp_path / "photos.zip"))
    exclude(extracted, [0])
    with pytest.raises(UserError, match="copies from an upload or an archive"):
        plan_moving(extracted, tmp_path / "away")
    exclude(photos, range(2, len(photos)))
    with pytest.raises(UserError, match="would stay"):
        plan_moving(photos, tmp_path / "away")


def test_files_return_to_the_folder_that_they_left(photos: Dataset, tmp_path: Path) -> None:
    move_files(plan_moving(photos, tmp_path / "away"))
    other = tmp_path / "other"
    other.mkdir()
    for number in range(4):
        Image.new("RGB", (12, 12), (9 * number, 0, 0)).save(other / f"{number}.jpg")
    loaded = catalog.load(str(other))
    with pytest.raises(UserError, match="come from"):
        plan_moving_back(loaded, tmp_path / "away")
    exclude(loaded, [0])
    with pytest.raises(UserError, match="has files from"):
        plan_moving(loaded, tmp_path / "away")


def test_two_windows_do_not_move_at_once(photos: Dataset, tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", SLOW, photos.name, str(tmp_path / "away"), "out", "between"],
                             stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "moved\n"
    start = time.monotonic()
    try:
        with pytest.raises(UserError, match="Another window or command"):
            move_files(plan_moving(again(photos), tmp_path / "away"))
    finally:
        child.kill()
        child.wait()
    assert time.monotonic() - start < 30
