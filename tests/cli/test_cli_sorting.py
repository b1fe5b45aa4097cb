"""The commands `udml groups` and `udml sort`, from groups over names to folders."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from tests.cli.test_cli import answer, call
from tests.running import worked, write_digits
from udml_core.data import catalog
from udml_core.data.given.exclusions import exclude, include
from udml_core.data.given.group_changes import group_changes
from udml_core.data.given.labels import assign, assigned_labels, assigned_now, judged_names, rejected_classes, undo
from udml_core.exploration.assigned import assigned_measures
from udml_core.runs import Run
from udml_core.runs.search import Retrieval
from udml_core.runs.search.naming import name_all

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Frozen features of a folder of digits, whose class is the first part of a file's path."""
    folder = write_digits(tmp_path / "digits")
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    return worked(tmp_path / "runs", method="frozen", dataset=str(folder))


def groups(capsys: Capture, monkeypatch: pytest.MonkeyPatch, run: Run, *words: str) -> list[dict[str, Any]]:
    """Return the groups by their number."""
    listed = answer(capsys, monkeypatch, "groups", str(run.folder), *words, "--json")["groups"]
    return sorted(listed, key=lambda row: int(row["group"]))


def test_groups_are_listed_split_named_merged_and_undone(
        run: Run, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = run.dataset()
    listed = groups(capsys, monkeypatch, run, "--count", "6")
    sizes = [row["images"] for row in listed]
    assert sum(sizes) == len(dataset)
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == 6
    split = groups(capsys, monkeypatch, run, "--count", "6", "--split", "1=2")
    assert [row["group"] for row in split] == [2, 3, 4, 5, 6, 7, 8], "the parts have the next numbers"
    assert split[-1]["images"] + split[-2]["images"] == sizes[0]
    named = groups(capsys, monkeypatch, run, "--count", "6", "--name", "1=heron", "--name", "2=herons")
    assert [row["names"] for row in named[:2]] == [{"heron": sizes[0]}, {"herons": sizes[1]}]
    groups(capsys, monkeypatch, run, "--merge", "herons=heron")
    assert set(assigned_labels(dataset).values()) == {"heron"}
    assert len(assigned_labels(dataset)) == sizes[0] + sizes[1]
    groups(capsys, monkeypatch, run, "--undo")
    assert sorted(set(assigned_labels(dataset).values())) == ["heron", "herons"]


def test_groups_that_are_split_joined_and_filled_stay_so_in_the_app_until_undone(
        run: Run, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def sizes(*words: str) -> list[int]:
        return sorted(row["images"] for row in groups(capsys, monkeypatch, run, "--count", "6", *words))

    dataset, before = run.dataset(), sizes()
    listed = {row["group"]: row for row in groups(capsys, monkeypatch, run, "--count", "6")}
    parts = sizes("--split", "1=2")
    assert sizes() == before, "without --keep a split is a look"
    assert sizes("--split", "1=2", "--keep") == sizes() == parts
    assert [np.unique(change.parts).tolist() for change in group_changes(dataset).changes] == [[0, 1]]
    assert sizes("--undo") == before
    first, second, third = (listed[number]["images"] for number in (1, 2, 3))
    joined = sorted([first + second + third, *(listed[number]["images"] for number in (4, 5, 6))])
    assert sizes("--join", "3=1", "--join", "2=1") == sizes() == joined
    assert sizes("--undo") == sorted([first + third, second, *(listed[number]["images"] for number in (4, 5, 6))])
    sizes("--undo")
    name, other = listed[2]["typical"][0], listed[3]["typical"][0]
    (tmp_path / "more.csv").write_text(f"image\n{other}\n")
    moved = sizes("--to", "6", "--image", name, "--file", str(tmp_path / "more.csv"))
    assert moved == sizes() == sorted([first, second - 1, third - 1, *(listed[number]["images"] for number in (4, 5)),
                                       listed[6]["images"] + 2])
    change = group_changes(dataset).changes[-1]
    assert set(dataset.indices_by_name({name, other}).values()) < set(change.images.tolist())
    assert undo(dataset), "the app reverts it too"
    exclude(dataset, list(dataset.indices_by_name({name}).values()))
    code, _, err = call(capsys, monkeypatch, "groups", str(run.folder), "--count", "6", "--to", "6", "--image", name)
    assert (code, f"{name}' is in no group" in err) == (2, True)
    include(dataset, list(dataset.indices_by_name({name}).values()))
    assert sizes() == before


def test_an_export_that_is_opened_again_says_which_images_have_no_class(
        run: Run, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = run.dataset()
    for label, images in (("heron", [0, 1, 2]), ("gull", [3, 4])):
        assign(dataset, images, label)
    target = tmp_path / "sorted"
    answer(capsys, monkeypatch, "sort", str(run.folder), str(target), "--unnamed", "--least", "1.01", "--json")
    code, _, err = call(capsys, monkeypatch, "datasets", "--remember", str(target))
    assert code == 0
    assert "5 images in 2 classes, from metadata.csv." in err
    assert "Left out: 55 images without a value in the column label. Add #level=0" in err
    rows = answer(capsys, monkeypatch, "datasets", "--remember", f"{target}#level=0")["datasets"]
    assert [row["images"] for row in rows if row["name"] == f"{target}#level=0"] == [60], "as the sentence says"


def test_evaluate_adds_what_the_named_images_say(
        tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_digits(tmp_path / "flat", by_class=False)
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    run = worked(tmp_path / "runs", method="frozen", dataset=str(folder), split="all")
    dataset, true = run.dataset(), load_digits().target[:60]
    assign(dataset, np.flatnonzero(true == 0).tolist(), "zero")
    assert "labeled images" not in answer(capsys, monkeypatch, "evaluate", str(run.folder)), "one class says nothing"
    for digit in (1, 8, 9):
        assign(dataset, np.flatnonzero(true == digit).tolist(), f"digit {digit}")
    expected = assigned_measures(run.embeddings("final"), assigned_now(dataset))
    assert expected is not None
    found = answer(capsys, monkeypatch, "evaluate", str(run.folder))["labeled images"]
    assert (found["images"], found["classes"]) == (expected.images, 4)
    for key, measured in expected.measures.items():
        assert found["measures"][key] == pytest.approx(measured._asdict())
    code, out, _ = call(capsys, monkeypatch, "evaluate", str(run.folder))
    assert code == 0
    assert f"Among the {expected.images} images that you labeled, in 4 classes: First result right · R@1 " in out
    recall = expected.measures["recall@1"]
    assert f"(95 % interval {recall.low:.1f} to {recall.high:.1f})" in out


def test_groups_names_and_folders_say_that_a_run_lacks_new_images(
        run: Run, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_RUNS", str(run.folder.parent))
    folder, dataset = tmp_path / "digits", run.dataset()
    assign(dataset, [0, 1], "zero")
    commands = (["groups", str(run.folder), "--count", "6"], ["names", str(run.folder)],
                ["sort", str(run.folder), str(tmp_path / "out"), "--plan"])
    assert all("not in this run" not in call(capsys, monkeypatch, *words)[2] for words in commands)
    images = [Image.effect_noise((8, 8), 60 + number) for number in range(3)]
    for number, image in enumerate(images):
        image.save((folder / dataset.names[0]).with_name(f"new {number}.png"))
    (folder / dataset.names[5]).rename((folder / dataset.names[5]).with_name("renamed.png"))
    grown = catalog.load(str(folder))
    exclude(grown, [image for image, name in enumerate(grown.names) if name.endswith("new 2.png")])
    news = call(capsys, monkeypatch, "audit", str(folder), "--new", "--compare", "hash")[1].splitlines()
    again = shlex.join(["udml", "train", "--dataset", str(folder), "--method", "frozen"])
    assert news[-1].startswith(f"udml groups, names and sort know new images after another run: {again}")
    for words in commands:
        assert f"2 new images are not in this run. Start another run: {again}" in call(capsys, monkeypatch, *words)[2]
    newer = worked(tmp_path / "runs", method="frozen", dataset=str(folder))
    for words in commands:
        assert f"2 new images are not in this run; the run {newer.id} has them." in call(capsys, monkeypatch, *words)[2]
    Image.effect_noise((8, 8), 9).save((folder / dataset.names[0]).with_name("one more.png"))
    newest = worked(tmp_path / "runs", method="frozen", dataset=str(folder))
    news = call(capsys, monkeypatch, "audit", str(folder), "--new", "--compare", "hash")[1].splitlines()
    assert news[-1] == f"udml groups, names and sort know all images by the run {newest.id}."


def test_naming_a_group_keeps_names_given_before(run: Run, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = run.dataset()
    first = dataset.indices_by_name()[groups(capsys, monkeypatch, run, "--count", "6")[0]["typical"][0]]
    assign(dataset, [first], "egret")
    code, _, err = call(capsys, monkeypatch, "groups", str(run.folder), "--count", "6", "--name", "1=heron")
    assert code == 0
    assert "; 1 image kept its own name" in err
    assert assigned_now(dataset)[first] == "egret"
    before = assigned_labels(dataset)
    assert set(before.values()) == {"egret", "heron"}
    code, _, err = call(capsys, monkeypatch, "groups", str(run.folder), "--count", "6", "--name", "1=gull")
    assert code == 2
    assert "Every image of group 1 has a name already" in err
    code, _, err = call(capsys, monkeypatch, "groups", str(run.folder), "--count", "6", "--name", "2=gull",
                        "--name", f"3={'x' * 101}")
    assert code == 2
    assert "got 101 letters" in err
    assert assigned_labels(dataset) == before, "no group is named if one cannot be"


@pytest.mark.parametrize(("words", "message"), [
    (["--split", "1"], "--split needs two values"), (["--name", "0=x"], "number of a group, such as 3; got '0'"),
    (["--name", "999=x"], "There is no group 999"), (["--split", "1=x"], "number of a group"),
    (["--merge", "a=b"], "No image has the class 'a'"), (["--count", "3", "--epsilon", "0.5"], "Remove --count or"),
    (["--keep"], "Add --split"), (["--to", "1"], "Add the other"), (["--join", "1=1"], "got 1 twice"),
    (["--join", "1=999"], "There is no group 999"), (["--join", "1=2", "--name", "1=x"], "commands of their own"),
    (["--to", "1", "--image", "unknown"], "unknown"),
    (["--epsilon", "0.5"], "no neighbor graph"), (["--split", "1=0.8"], "no neighbor graph")])
def test_wrong_groups_are_errors(words: list[str], message: str, run: Run, capsys: Capture,
                                 monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = call(capsys, monkeypatch, "groups", str(run.folder), *words)
    assert code == 2
    assert message in err
    assert not assigned_labels(run.dataset())
    assert not group_changes(run.dataset()).changes


def test_proposed_names_are_listed_confirmed_rejected_and_undone(
        run: Run, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def names(*words: str) -> dict[str, list[str]]:
        found = answer(capsys, monkeypatch, "names", str(run.folder), "--least", "0.2", "--list", *words)
        return {row["class"]: [image["image"] for image in row["proposed"]] for row in found["proposed"]}

    dataset = run.dataset()
    assert names() == {}
    (tmp_path / "two.csv").write_text(f"image\n{dataset.names[50]}\n")
    two = ["--image", dataset.names[40], "--file", str(tmp_path / "two.csv")]
    assert list(names("--assign", "gull", *two)) == ["gull"]
    assert assigned_now(dataset) == {40: "gull", 50: "gull"}
    names("--undo")
    assert assigned_now(dataset) == {}
    truth = [name.split("/")[0] for name in dataset.names]
    for label in ("class 0", "class 1"):
        assign(dataset, [image for image, own in enumerate(truth) if own == label][:3], label)
    first, second = names()["class 0"][:2]
    after = names("--confirm", "class 0", "--image", first)
    assert assigned_labels(dataset)[first] == "class 0"
    assert first not in after["class 0"]
    assert [judged.is_right for judged in judged_names(dataset)] == [True], "an answer about one image calibrates"
    (tmp_path / "wrong.csv").write_text(f"image\n{second}\nunknown\n")
    after = names("--reject", "class 0", "--file", str(tmp_path / "wrong.csv"))
    assert second not in after.get("class 0", [])
    assert rejected_classes(dataset) == {second: {"class 0"}}
    assert [judged.is_right for judged in judged_names(dataset)] == [True, False]
    count = len(names()["class 0"])
    names("--confirm", "class 0")
    assert list(assigned_labels(dataset).values()).count("class 0") == 3 + 1 + count
    assert len(judged_names(dataset)) == 2, "a whole class at once was not looked at"
    names("--undo")
    assert list(assigned_labels(dataset).values()).count("class 0") == 4
    code, out, _ = call(capsys, monkeypatch, "names", str(run.folder), "--least", "0.2")
    assert code == 0
    assert f"{count:,} more look like class 0; least certain: " in out


def test_excluded_images_give_no_names_and_get_none(
        run: Run, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, opened = run.dataset(), Retrieval(run)
    truth = [name.split("/")[0] for name in dataset.names]
    labeled = {label: [image for image, own in enumerate(truth) if own == label][:3]
               for label in ("class 0", "class 1")}
    for label, images in labeled.items():
        assign(dataset, images, label)
    before = name_all(opened, chosen=0.2)
    named = [int(before.images[row]) for row in np.flatnonzero(before.accepted == 1) if before.codes[row] < 0]
    exclude(dataset, [*labeled["class 0"], named[0]])
    after = name_all(opened, chosen=0.2)
    assert "class 0" not in {after.class_of(row) for row in range(len(after.images))}, "they are the only class 0"
    assert not after.class_of(after.images.tolist().index(named[0]))
    rows = groups(capsys, monkeypatch, run, "--count", "6")
    assert {label for row in rows for label in row["names"]} == {"class 1"}
    found = answer(capsys, monkeypatch, "names", str(run.folder), "--least", "0.2", "--list")
    assert {row["class"] for row in found["proposed"]} == {"class 1"}
    assert answer(capsys, monkeypatch, "sort", str(run.folder), str(tmp_path / "out"), "--plan", "--json", "--least",
                  "0.2")["classes"].keys() == {"class 1"}


@pytest.mark.parametrize(("words", "message"), [
    (["--confirm", "x"], "The class 'x' is proposed for no image"), (["--image", "x"], "need a class"),
    (["--confirm", "x", "--reject", "y"], "one at a time"), (["--undo", "--reject", "y"], "one at a time"),
    (["--assign", "x"], "--assign needs images")])
def test_wrong_answers_about_names_are_errors(words: list[str], message: str, run: Run, capsys: Capture,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = call(capsys, monkeypatch, "names", str(run.folder), *words)
    assert code == 2
    assert message in err


def test_a_class_names_similar_images_once_ten_of_its_proposed_names_were_checked(run: Run) -> None:
    dataset, opened = run.dataset(), Retrieval(run)
    assign(dataset, [0, 1], "zero")
    assign(dataset, [2, 3], "zero", is_unseen=True)
    assert "Check 10 proposed names of a class" in name_all(opened).words
    checked, others = [*range(20, 29)], 40
    assign(dataset, checked, "one", certainties=[0.5] * len(checked))
    named = name_all(opened)
    assert "Check 1 more name of the class that you checked most" in named.words
    assert (named.least_by_class, named.are_guesses(0), named.are_guesses(1)) == ({}, True, True)
    assign(dataset, [others], "one", certainties=[0.5])
    named = name_all(opened)
    assert list(named.least_by_class) == ["one"]
    assert "named one too: you checked 10 such names, and all were right" in named.words
    assert (named.are_guesses(0), named.are_guesses(1)) == (True, False)
    assert (named.accepted[named.codes < 0] != 0).all(), "the checks of one class do not vouch for another"
    exclude(dataset, [others])
    assert "Check 1 more name" in name_all(opened).words, "an excluded image says nothing"


def test_sort_plans_writes_and_continues(run: Run, tmp_path: Path, capsys: Capture,
                                         monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "sorted"
    code, _, err = call(capsys, monkeypatch, "sort", str(run.folder), str(target))
    assert code == 2
    assert "No image has a name" in err
    exclude(run.dataset(), [0, 3])
    everything = answer(capsys, monkeypatch, "sort", str(run.folder), str(tmp_path / "kept"), "--unnamed",
                        "--no-programs", "--json")
    assert {Path(file).name for file in everything["files"]} == {"metadata.csv", "images.parquet"}
    assert (everything["unnamed"], everything["classes"]) == (58, {})
    assert len(list((tmp_path / "kept" / "images").iterdir())) == 58
    include(run.dataset(), [0, 3])
    size = groups(capsys, monkeypatch, run, "--count", "6", "--name", "1=heron")[0]["images"]
    planned = answer(capsys, monkeypatch, "sort", str(run.folder), str(target), "--plan", "--least", "1.01", "--json")
    assert (planned["planned"], planned["classes"], planned["files"]) == (True, {"heron": size}, [])
    assert not target.exists(), "a plan writes nothing"
    written = answer(capsys, monkeypatch, "sort", str(run.folder), str(target), "--least", "1.01", "--json")
    assert written["classes"] == {"heron": size}
    assert len(list((target / "heron").iterdir())) == size
    with (target / "metadata.csv").open(newline="") as file:
        assert {row["label"] for row in csv.DictReader(file)} == {"heron"}
    assert len(json.loads((target / "label-studio.json").read_text())) == size
    again = answer(capsys, monkeypatch, "sort", str(run.folder), str(target), "--least", "1.01", "--json")
    assert (again["there"], again["former"]) == (size, 0), "nothing is left to add"
    assert again["guessed"] == {"heron": size}, "a group that was named at once has no yes"
    groups(capsys, monkeypatch, run, "--count", "6", "--name", "2=gull", "--merge", "heron=egret")
    words = ["sort", str(run.folder), str(target), "--least", "1.01"]
    kept = answer(capsys, monkeypatch, *words, "--json")
    assert (kept["former"], kept["removed"], len(list((target / "heron").iterdir()))) == (size, [], size)
    code, out, err = call(capsys, monkeypatch, *words, "--plan", "--prune")
    assert (code, out.count("  remove heron/")) == (0, size), "each file is listed"
    assert f"{size} files in heron/ have another name now" in out
    code, _, err = call(capsys, monkeypatch, *words, "--prune")
    assert (code, "confirm the plan by --yes" in err) == (2, True)
    assert len(list((target / "heron").iterdir())) == size
    pruned = answer(capsys, monkeypatch, *words, "--prune", "--yes", "--json")
    assert (len(pruned["removed"]), (target / "heron").exists()) == (size, False)
    count = len(assigned_now(run.dataset()))
    exclude(run.dataset(), assigned_now(run.dataset()))
    code, _, err = call(capsys, monkeypatch, *words)
    assert (code, "there and not excluded has a name" in err, "choose that (--prune)" in err) == (2, True, True)
    emptied = answer(capsys, monkeypatch, *words, "--prune", "--yes", "--json")
    assert (len(emptied["removed"]), emptied["classes"]) == (count, {})
    assert not list(target.glob("*/*.png"))
    (target.parent / "other").mkdir()
    (target.parent / "other" / "mine.txt").touch()
    code, _, err = call(capsys, monkeypatch, "sort", str(run.folder), str(target.parent / "other"))
    assert code == 2, "a folder with other files is refused"
