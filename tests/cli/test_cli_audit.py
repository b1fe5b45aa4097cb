"""The commands audit and exclude, as users and scripts call them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.cli.test_cli import answer, call
from tests.running import worked, write_clothes
from udml_core.base.errors import UserError
from udml_core.base.files import replace_array
from udml_core.cli.output import audit_lines, new_lines
from udml_core.data import catalog, features
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import DEFAULT_BACKBONE, Encoder
from udml_core.data.features import features_of, features_path
from udml_core.data.given.duplicate_decisions import decisions_of
from udml_core.data.given.exclusions import digest_of, excluded_names, read_list
from udml_core.data.given.labels import assign
from udml_core.exploration.audit import audit_of
from udml_core.runs.analyses.kinds.audit import DataAudit
from udml_core.work import jobs
from udml_core.work.jobs.auditing import find_auditing


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two classes of images, with a copy in the other class and a broken file."""
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    write_clothes(tmp_path / "mine", "aaaabbb", copies={6: 0})
    (tmp_path / "mine" / "b" / "broken.png").write_bytes(b"no image")
    return tmp_path / "mine"


Shell = tuple[pytest.CaptureFixture[str], pytest.MonkeyPatch]


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    return capsys, monkeypatch


def test_the_report_names_the_images_of_each_finding(folder: Path, shell: Shell, tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    report = answer(*shell, "audit", str(folder), "--out", str(out), "--least-images", "4")
    assert report == json.loads(out.read_text())
    assert report["exact_duplicates"] == [["a/0.png", "b/6.png"]]
    assert report["leakage"]["zero-shot"] == [["a/0.png", "b/6.png"]]
    assert report["small_classes"] == {"b": 3}
    assert [row["file"] for row in report["broken_files"]] == ["b/broken.png"]
    assert (report["features"], report["outliers"], report["excluded"]) == (False, [], [])
    code, lines, messages = call(*shell, "audit", str(folder))
    assert code == 0
    assert "1 group of exact duplicates: a/0.png, b/6.png" in lines.splitlines()
    assert "No features are stored" in messages


def test_the_first_line_says_what_was_read(folder: Path, shell: Shell) -> None:
    assert call(*shell, "audit", str(folder))[1].splitlines()[0] == (
        "7 images, 2 classes; 1 file cannot be read")
    rows = [f"{path.relative_to(folder)},{path.parent.name},{number},x" for number, path in
            enumerate(sorted(folder.rglob("*.png"))) if path.name != "broken.png"]
    (folder / "list.csv").write_text("\n".join(["path,label,weight,site", *rows]) + "\n")
    assert "list.csv is not used. To use it," in call(*shell, "audit", str(folder))[2]
    name = str(folder / "list.csv")
    assert call(*shell, "audit", name)[1].splitlines()[0] == (
        "7 images, 2 classes from `label`; other columns: weight, site")
    (folder / "list.csv").write_text("\n".join(["path,species,weight,site", *rows]) + "\n")
    assert call(*shell, "audit", name)[1].splitlines()[0] == (
        f"7 images, no classes; other columns: species (2 values), weight, site: use '{name}#label=species'")
    added = "".join(f"\n{number}.png,cat,1,x" for number in range(4))
    (folder / "list.csv").write_text("\n".join(["path,species,weight,site", *rows]) + added)
    lines = call(*shell, "audit", name)[1].splitlines()
    assert lines[0].endswith("; 4 of 11 files are missing: 0.png, 1.png, 2.png, …")
    assert lines[1] == "0 broken files"
    (folder / "list.csv").write_text("\n".join(["path,species,weight,site", *rows]) + "\n")
    code, _, messages = call(*shell, "train", "--dataset", name, "--method", "nca", "--backbone", "pixels")
    assert (code, f"Use the 2 values of the column species as the classes with --dataset '{name}#label=species'"
            in messages) == (2, True)
    halves = ["train", "test", "train", "train", "train", "test", "test"]
    (folder / "list.csv").write_text("\n".join(["path,label,split", *(
        ",".join([*row.split(",")[:2], half]) for row, half in zip(rows, halves, strict=True))]) + "\n")
    assert call(*shell, "audit", name)[1].splitlines()[0] == (
        "7 images, 2 classes from `label`; halves given: 4 train, 3 test")
    (folder / "list.csv").write_text("\n".join(["path,label,weight,site", *rows]) + "\n")
    report = answer(*shell, "audit", f"{name}#label=site")
    assert {key: report[key] for key in ("images", "classes", "classes_column", "columns")} == {
        "images": 7, "classes": 1, "classes_column": "site", "columns": ["label", "weight"]}


def test_the_app_finds_the_audit_of_the_command_line(
        folder: Path, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    run = worked(tmp_path / "runs", method="frozen", dataset=str(folder))
    dataset, encoder = run.dataset(), run.spec().encoder
    assert find_auditing(dataset, encoder, tmp_path / "runs").finished is None
    answer(*shell, "audit", str(folder), "--backbone", "pixels")
    finished = find_auditing(dataset, encoder, tmp_path / "runs").finished
    assert finished is not None
    stored = finished.result_of(DataAudit)
    expected = audit_of(dataset, features_of(dataset, Encoder(encoder)))
    for name, array in vars(expected).items():
        assert np.array_equal(getattr(stored, name), array), name
    answer(*shell, "audit", str(folder), "--backbone", "pixels")
    assert find_auditing(dataset, encoder, tmp_path / "runs").finished == finished, "it is stored once"


def test_the_lines_count_what_they_do_not_name() -> None:
    broken = [{"file": f"{number}.png", "reason": "not an image", "kind": "unreadable"} for number in range(3)]
    report = {"broken_files": broken, "skipped": "3 files cannot be read",
              "exact_duplicates": [["a", "b"], ["c", "d"], ["e", "f"]], "near_duplicates": [], "excluded": ["a"],
              "features": True, "images": 1589,
              "classes": 0, "halves": "", "class_columns": {}, "classes_column": None, "columns": [],
              "other_levels": [],
              "outliers": [{"image": "x"}], "small_classes": {"cat": 3}, "leakage": {"seen": [["a", "b"], ["c", "d"]]}}
    assert audit_lines(report) == [
        "1,589 images, no classes; 3 files cannot be read",
        "3 broken files: 0.png (not an image) and 2 more", "3 groups of exact duplicates: a, b; and 2 more groups",
        "0 groups of near-duplicates", "1 outlier: x", "1 small class: cat",
        "2 groups of duplicates in both halves of the split seen: a, b; and 1 more group", "1 image excluded before"]
    assert "outliers: not computed" in audit_lines(report | {"features": False, "outliers": []})


def test_stored_features_are_used(folder: Path, shell: Shell) -> None:
    dataset = catalog.load(str(folder))
    path = features_path(dataset, jobs.encoder_of(dataset, DEFAULT_BACKBONE))
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_array(path, np.array([[1, 0], [1, 0.1], [1, 0.2], [1, 0.1], [1, 0], [0, 1], [1, 0]], np.float32))
    report = answer(*shell, "audit", str(folder), "--compare", "features", "--fence", "1.5")
    assert report["features"]
    assert [row["image"] for row in report["outliers"]] == ["b/5.png"]


def test_all_but_the_best_or_the_first_copy_are_excluded(folder: Path, shell: Shell) -> None:
    dataset = catalog.load(str(folder))
    Image.open(folder / "b" / "6.png").save(folder / "b" / "6.png", compress_level=0)  # the longer file, same content
    report = answer(*shell, "audit", str(folder), "--keep", "best")
    assert report["exact_duplicates"] == [["b/6.png", "a/0.png"]]
    assert excluded(dataset) == ["a/0.png"]
    answer(*shell, "exclude", str(folder), "--undo")
    code, _, messages = call(*shell, "audit", str(folder), "--keep", "first")
    assert code == 0
    assert excluded(dataset) == ["b/6.png"]
    assert "Excluded 1 copy: one image of each of 1 group of duplicates stays." in messages
    assert "1 is excluded now; no file has changed. Undo: udml exclude" in messages
    assert "No duplicates are left to exclude." in call(*shell, "audit", str(folder), "--keep", "first")[2]
    answer(*shell, "exclude", str(folder), "--undo")
    answer(*shell, "audit", str(folder), "--prefer", "a/0.png", "--keep", "best")
    assert excluded(dataset) == ["b/6.png"], "the user's choice counts more than the rule"
    answer(*shell, "exclude", str(folder), "--undo")
    answer(*shell, "audit", str(folder), "--undo", "--keep", "best")
    assert excluded(dataset) == ["a/0.png"], "the choice is reverted"


def test_copies_are_excluded_by_features_which_are_computed_if_none_are_stored(folder: Path, shell: Shell) -> None:
    keep = ("audit", str(folder), "--keep", "best", "--backbone", "pixels")
    code, _, messages = call(*shell, *keep, "--compare", "hash")
    assert (code, "No features are stored" in messages) == (0, True), "as it was asked for"
    answer(*shell, "exclude", str(folder), "--undo")
    report = answer(*shell, *keep)
    assert report["features"], "a hash alone excludes nothing that only looks plain"
    assert excluded(catalog.load(str(folder))) == ["b/6.png"]


def test_pairs_at_the_border_are_decided_by_name_and_reverted(folder: Path, shell: Shell) -> None:
    clothes = catalog.load(str(folder))
    words = ["audit", str(folder), "--same", "a/1.png", "--same", "a/2.png", "--same", "a/3.png"]
    assert list(map(sorted, answer(*shell, *words)["near_duplicates"])) == [["a/1.png", "a/2.png", "a/3.png"]]
    assert answer(*shell, "audit", str(folder), "--undo")["near_duplicates"] == []
    code, _, messages = call(*shell, "audit", str(folder), "--undo")
    assert (code, "There is no decision to revert." in messages) == (0, True)
    answer(*shell, *words)
    after = answer(*shell, "audit", str(folder), "--different", "a/3.png", "--different", "a/1.png")
    assert decisions_of(clothes).different.tolist() == [[1, 3]], "a later decision replaces an earlier"
    assert len(after["near_duplicates"]) == 1
    for wrong, message in ((["--same", "a/1.png"], "two images or more"), (["--prefer", "x"], "no image 'x'"),
                           (["--same", "a/1.png", "--undo"], "Decide one thing at a time")):
        code, _, messages = call(*shell, "audit", str(folder), *wrong)
        assert (code, message in messages) == (2, True)
    border = {"border": [["a/1.png", "b/4.png"]]}
    lines = audit_lines(answer(*shell, "audit", str(folder)) | border)
    assert "or here with --same or --different: a/1.png and b/4.png" in "\n".join(lines)


def test_the_first_line_names_other_levels_of_classes(folder: Path, shell: Shell) -> None:
    for number, path in enumerate(sorted(folder.rglob("*.png"))):
        (path.parent / f"site {number % 3}").mkdir(exist_ok=True)
        path.rename(path.parent / f"site {number % 3}" / path.name)
    line = call(*shell, "audit", str(folder))[1].splitlines()[0]
    assert line == f"7 images, 2 classes; 3 classes at the level 2 of folders: use '{folder}#level=2'; " \
                   "1 file cannot be read"
    line = call(*shell, "audit", f"{folder}#level=2")[1].splitlines()[0]
    assert f"7 images, 3 classes; 2 classes at the level 1 of folders: use '{folder}#level=1'" in line


def test_the_first_of_rankings_are_listed_and_excluded_as_one_decision(folder: Path, shell: Shell) -> None:
    for number in range(2):
        Image.new("L", (28, 28), number).save(folder / "b" / f"dark{number}.png")
    Image.new("L", (90, 20), 128).save(folder / "b" / "wide.png")
    wanted = ["audit", str(folder), "--exclude", "dark:2", "--exclude", "aspect:1"]
    code, lines, _ = call(*shell, *wanted, "--plan")
    assert code == 0
    assert [line.split()[-1] for line in lines.splitlines() if line.startswith("  ")] == [
        "b/dark0.png", "b/dark1.png", "b/wide.png"]
    assert excluded_names(catalog.load(str(folder))) == (), "a plan changes nothing"
    code, _, messages = call(*shell, *wanted)
    assert code != 0
    assert "b/dark1.png" in messages, "the names come before the question"
    assert "confirm the plan by --yes" in messages
    assert excluded_names(catalog.load(str(folder))) == ()
    done = answer(*shell, *wanted, "--yes")
    assert done["rankings"] == {"dark": ["b/dark0.png", "b/dark1.png"], "aspect": ["b/wide.png"]}
    assert excluded_names(catalog.load(str(folder))) == ("b/dark0.png", "b/dark1.png", "b/wide.png")
    assert not {"b/dark0.png", "b/dark1.png"} & set(answer(*shell, *wanted, "--plan")["rankings"]["dark"])
    assert answer(*shell, "exclude", str(folder), "--undo")["changed"] == 3
    assert excluded_names(catalog.load(str(folder))) == ()


@pytest.mark.parametrize(("words", "message"), [
    (["--exclude", "blurred:5"], "Checks: blurry, dark, bright, information, aspect, size, outliers"),
    (["--exclude", "dark:0"], "a number above 0"), (["--exclude", "dark"], "CHECK:COUNT"),
    (["--exclude", "dark:1", "--exclude", "dark:2"], "twice"), (["--exclude", "outliers:1"], "need features"),
    (["--exclude", "dark:1", "--keep", "best"], "one decision"), (["--plan"], "belong to --exclude")])
def test_a_wrong_ranking_excludes_nothing(words: list[str], message: str, folder: Path, shell: Shell) -> None:
    code, _, messages = call(*shell, "audit", str(folder), *words, *(["--yes"] if "--plan" not in words else []))
    assert code != 0
    assert message in " ".join(messages.split())
    assert excluded_names(catalog.load(str(folder))) == ()


def test_the_farthest_images_are_the_first_outliers(folder: Path, shell: Shell) -> None:
    dataset = catalog.load(str(folder))
    rows = np.ones((len(dataset), 4), np.float32)
    rows[3] = [-1, 1, -1, 1]
    path = features_path(dataset, jobs.encoder_of(dataset, DEFAULT_BACKBONE))
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_array(path, rows)
    done = answer(*shell, "audit", str(folder), "--exclude", "outliers:1", "--yes")
    assert done["rankings"] == {"outliers": [dataset.names[3]]}


def test_a_folder_without_classes_has_no_halves(folder: Path, shell: Shell) -> None:
    for copied in (folder / "a").iterdir():
        (folder / f"copy {copied.name}").write_bytes(copied.read_bytes())
    command = ("audit", "--compare", "hash")
    assert "halves" in call(*shell, *command, str(folder))[1]
    code, out, _ = call(*shell, *command, f"{folder}#level=0")
    assert code == 0
    assert "groups of exact duplicates" in out
    assert "halves" not in out


def test_a_sample_is_chosen_among_filtered_images_and_written(folder: Path, shell: Shell, tmp_path: Path) -> None:
    dataset, out = catalog.load(str(folder)), tmp_path / "sample.csv"
    code, _, messages = call(*shell, "sample", str(folder))
    assert code == 2
    assert "A sample needs features" in messages
    path = features_path(dataset, jobs.encoder_of(dataset, DEFAULT_BACKBONE))
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_array(path, np.array([[1, 0], [1, 0.1], [1, 0.2], [1, 0.1], [1, 0], [0, 1], [1, 0]], np.float32))

    def images(*options: str) -> list[str]:
        names: list[str] = answer(*shell, "sample", str(folder), *options)["images"]
        return names

    assert images("--by", "diverse", "--count", "2", "--out", str(out))[1] == "b/5.png"
    assert len(read_list(out, dataset).images) == 2
    assert {name[0] for name in images("--class", "a")} == {"a"}
    assert {name[0] for name in images("--contains", "B/", "--by", "outlying")} == {"b"}
    answer(*shell, "exclude", str(folder), "b/5.png")
    assert "b/5.png" not in images("--by", "outlying")
    assign(catalog.load(str(folder)), [0, 1, 5], "c")
    assert sorted(images("--class", "c", "--by", "diverse", "--count", "5000")) == ["a/0.png", "a/1.png"]
    code, _, messages = call(*shell, "sample", str(folder), "--class", "c")
    assert (code, "next chooses images without one" in messages) == (2, True)
    code, _, messages = call(*shell, "sample", str(folder), "--class", "d")
    assert code == 2
    assert "has no class 'd'. Its classes are: a, b, c" in messages
    code, _, messages = call(*shell, "sample", str(folder), "--contains", "nothing")
    assert code == 2
    assert "matches these filters, so the sample is empty" in messages


def excluded(dataset: Dataset) -> list[str]:
    return list(excluded_names(dataset))


def test_images_are_excluded_included_undone_and_written(folder: Path, shell: Shell, tmp_path: Path) -> None:
    dataset, out = catalog.load(str(folder)), tmp_path / "list.csv"
    result = answer(*shell, "exclude", str(folder), "a/1.png", "b/6.png", "--out", str(out))
    assert result["changed"] == 2
    assert result["excluded"] == excluded(dataset) == ["a/1.png", "b/6.png"]
    assert result["digest"] == digest_of(["a/1.png", "b/6.png"])
    assert answer(*shell, "audit", str(folder))["exact_duplicates"] == []
    assert answer(*shell, "exclude", str(folder), "--include", "a/1.png")["excluded"] == ["b/6.png"]
    assert answer(*shell, "exclude", str(folder), "--undo")["excluded"] == ["a/1.png", "b/6.png"]
    answer(*shell, "exclude", str(folder), "--undo")
    assert excluded(dataset) == []
    code, lines, messages = call(*shell, "exclude", str(folder), "--file", str(out))
    assert (code, lines.split()) == (0, ["a/1.png", "b/6.png"])
    assert "2 images changed; 2 of 7 images are excluded" in messages
    out.write_text("image\na/2.png\nz/9.png\n")
    messages = call(*shell, "exclude", str(folder), "--file", str(out))[2]
    assert "1 name in" in messages
    assert "is no image of" in messages
    assert "1 image changed; 3 of 7 images are excluded" in messages
    assert len(excluded(dataset)) == 3


@pytest.mark.parametrize(("words", "message"), [
    (["nowhere.png"], "has no image 'nowhere.png'"), ([""], "has no image ''"),
    (["--undo", "a/1.png"], "An undo takes no images"), (["--include"], "--include needs the names of images"),
    (["--file", "missing.csv"], "could not be read")], ids=["unknown", "empty", "undo", "include", "file"])
def test_a_wrong_call_changes_nothing_and_says_why(words: list[str], message: str, folder: Path, shell: Shell) -> None:
    code, _, messages = call(*shell, "exclude", str(folder), *words)
    assert code == 2
    assert message in messages
    assert excluded(catalog.load(str(folder))) == []


@pytest.mark.parametrize(("options", "part"), [
    (("--hash-distance", "99"), "hash_distance must be a whole number between 0 and 12, got 99"),
    (("--least-cosine", "nan"), "least_cosine must be")])
def test_a_setting_out_of_range_is_named(options: tuple[str, str], part: str, folder: Path, shell: Shell) -> None:
    code, _, messages = call(*shell, "audit", str(folder), *options)
    assert code == 2
    assert part in messages


@pytest.mark.parametrize("command", ["audit", "exclude"])
def test_a_file_that_cannot_be_written_is_named(command: str, folder: Path, shell: Shell, tmp_path: Path) -> None:
    out = tmp_path / "missing" / "out"
    code, _, messages = call(*shell, command, str(folder), "--out", str(out))
    assert code == 2
    assert f"{out} could not be written: No such file or directory." in messages


def test_the_named_command_computes_features_of_the_chosen_backbone(folder: Path, shell: Shell) -> None:
    spaced = folder.rename(folder.with_name("my photos"))
    messages = call(*shell, "audit", str(spaced), "--backbone", "pixels")[2]
    assert f"udml train --dataset '{spaced}' --method frozen --backbone pixels" in messages


def test_an_audit_of_what_is_new_names_copies_broken_and_removed_files_once(folder: Path, shell: Shell) -> None:
    command = ("audit", str(folder), "--new", "--compare", "hash")
    assert call(*shell, *command)[1].strip() == "Nothing has changed in this folder."
    (folder / "b" / "copy.png").write_bytes((folder / "a" / "1.png").read_bytes())
    (folder / "b" / "torn.png").write_bytes(b"no image")
    (folder / "a" / "2.png").unlink()
    news = answer(*shell, *command)["new"]
    assert (news["new"], news["changed"], news["removed"]) == (["b/copy.png"], [], ["a/2.png"])
    assert [row["file"] for row in news["broken_files"]] == ["b/torn.png"]
    assert [(row["image"], row["is_copy"], row["copies"][0]) for row in news["images"]] == [
        ("b/copy.png", True, "a/1.png")]
    assert answer(*shell, *command)["new"]["changes"] == "", "the next look begins at this one"


def test_every_new_file_is_listed_and_stays_new_until_it_was_printed(
        folder: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ("audit", str(folder), "--new", "--compare", "hash")
    call(*shell, *command)
    (folder / "b" / "copy.png").write_bytes((folder / "a" / "1.png").read_bytes())
    (folder / "a" / "2.png").rename(folder / "a" / "two.png")
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8))
    noise.save(folder / "b" / "fresh.png")

    def lose(*_: object) -> None:
        raise UserError("lost")

    with monkeypatch.context() as broken:
        broken.setattr("udml_core.cli.curating.print_answer", lose)
        assert call(*shell, *command)[0] == 2
    lines = call(*shell, *command)[1].splitlines()
    assert lines[0].startswith("2 new files and 1 renamed since "), "a renamed file is neither new nor removed"
    assert "1 file has another name now, and labels and exclusions follow" in lines
    assert "a/2.png: renamed or moved to a/two.png" in lines
    assert any(line.startswith("b/copy.png: copy of a/1.png") for line in lines)
    assert {line.split(": ")[0] for line in lines} >= {"b/fresh.png", "a/2.png"}, "files without findings, too"
    assert call(*shell, *command)[1].strip() == "Nothing has changed in this folder."


def test_an_excluded_image_whose_file_was_replaced_is_listed_as_excluded() -> None:
    row = {"image": "b", "words": ""}
    assert new_lines({"changes": "2 changed", "new": [], "changed": ["a", "b"], "removed": [], "renamed": {},
                      "broken_files": [], "images": [row]}) == ["2 changed", "b: changed, nothing found", "a: excluded"]


def test_new_images_get_names_from_labels_of_the_old(folder: Path, shell: Shell,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = catalog.load(str(folder))
    features_of(dataset, Encoder(jobs.encoder_of(dataset, "pixels")))
    assign(dataset, [0, 1, 2], "shirt")
    (folder / "b" / "copy.png").write_bytes((folder / "a" / "1.png").read_bytes())
    computed: list[int] = []
    prepare = features.PreparedImages._prepare
    monkeypatch.setattr(features.PreparedImages, "_prepare", lambda self, index: (
        computed.append(index), prepare(self, index))[1])
    news = answer(*shell, "audit", str(folder), "--new", "--backbone", "pixels")["new"]
    assert computed == [], "a copy of an old file has its features"
    assert [row["name"] for row in news["images"]] == ["shirt"]


def test_excluded_files_move_out_and_back(folder: Path, tmp_path: Path, shell: Shell) -> None:
    away = tmp_path / "away"
    answer(*shell, "exclude", str(folder), "a/0.png", "b/6.png", "--json")
    before = sorted(folder.rglob("*.png"))
    planned = answer(*shell, "exclude", str(folder), "--move-to", str(away), "--plan", "--json")
    assert (planned["files"], planned["moved"], planned["planned"]) == (["a/0.png", "b/6.png"], 0, True)
    assert not away.exists()
    code, _, err = call(*shell, "exclude", str(folder), "--move-to", str(away))
    assert code == 2
    assert "a/0.png" in err
    assert "Nothing was moved: without a terminal to ask in, confirm the plan by --yes." in err
    assert not away.exists()
    moved = answer(*shell, "exclude", str(folder), "--move-to", str(away), "--yes", "--json")
    assert (moved["moved"], moved["to"]) == (2, str(away))
    assert sorted(path.name for path in away.rglob("*.png")) == ["0.png", "6.png"]
    code, _, err = call(*shell, "exclude", str(folder), "--move-back", str(away / "moved.csv"), "--yes")
    assert code == 0, err
    assert "2 files moved." in err
    assert sorted(folder.rglob("*.png")) == before
    assert not list(away.iterdir())


@pytest.mark.parametrize(("words", "message"), [
    (["--yes"], "belong to a move"), (["--plan"], "belong to a move"),
    (["a/0.png", "--move-to", "x"], "takes no other change"), (["--undo", "--move-back", "x"], "takes no other change"),
    (["--move-to", "x", "--move-back", "x"], "takes no other change"),
    (["--move-back", "nowhere"], "should list moved images")])
def test_wrong_moves_are_errors(words: list[str], message: str, folder: Path, shell: Shell) -> None:
    code, _, err = call(*shell, "exclude", str(folder), *words)
    assert code == 2
    assert message in err
