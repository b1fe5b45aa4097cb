"""The command line as a person and a script use it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.running import until, worked, write_digits
from udml_core import cli, jobs
from udml_core.data import catalog
from udml_core.data.given.pairs import PairLog
from udml_core.data.splits import make_split
from udml_core.errors import UserError
from udml_core.runs import Run, create_run
from udml_core.tasks import Status

ROOT = Path(__file__).resolve().parents[1]


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "udml_core", *words], cwd=ROOT, env=os.environ, capture_output=True,
                          text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return worked(tmp_path_factory.mktemp("runs"))


def said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command in this process."""
    monkeypatch.setattr(sys, "argv", ["udml_core", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    captured = capsys.readouterr()
    code = ended.value.code
    return code if isinstance(code, int) else 1, captured.out, captured.err


def answer(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> Any:
    code, out, err = said(capsys, monkeypatch, *words, "--json")
    assert code == 0, err
    assert out.count("\n") == 1
    return json.loads(out)


def test_training_a_folder_prints_one_object_on_stdout_and_the_way_there_on_stderr(tmp_path: Path) -> None:
    folder = write_digits(tmp_path / "images", 120)
    (folder / "class 0" / "broken.png").write_bytes(b"nothing")
    done = command("train", "--dataset", str(folder), "--backbone", "pixels", "--method", "rpml", "--set", "epochs=2",
                   "--set", "dimension=8", "--set", "n_neighbors=8", "--set", "epsilon=0.4", "--seed", "3", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    result = json.loads(done.stdout)
    assert result["state"] == "done"
    assert result["fields"] == {"epochs": 2, "dimension": 8, "n_neighbors": 8, "epsilon": 0.4}
    assert "skipped class 0/broken.png: not an image" in done.stderr
    assert "1 files skipped, 120 images read" in done.stderr
    assert "epoch 2: loss" in done.stderr
    listed = command("runs", "--json")
    assert [row["run"] for row in json.loads(listed.stdout)["runs"]] == [result["run"]]


def test_a_run_that_fails_ends_with_1_and_its_message(tmp_path: Path) -> None:
    done = command("train", "--dataset", "digits", "--backbone", "pixels", "--method", "rpml", "--set", "epsilon=1",
                   "--set", "dimension=8", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["state"] == "failed"
    assert "Lower the field 'epsilon'" in done.stderr
    assert "Traceback" not in done.stderr


def test_data_sets_begin_with_the_embedded_one(capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = answer(capsys, monkeypatch, "datasets")["datasets"]
    assert rows[0] == {"name": "fashion-mini", "title": "Fashion-MNIST, 6,000 images", "available": True,
                       "images": 6000, "classes": 10, "missing": None}
    assert {"digits", "fashion-mnist", "birds100"} <= {row["name"] for row in rows}
    folder = write_digits(tmp_path / "mine")
    rows = answer(capsys, monkeypatch, "datasets", "--remember", str(folder))["datasets"]
    assert rows[-1]["name"] == str(folder)
    assert rows[-1]["images"] == 60
    assert len(answer(capsys, monkeypatch, "datasets", "--forget", str(folder))["datasets"]) == len(rows) - 1


def test_methods_tell_their_fields(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    methods = answer(capsys, monkeypatch, "methods")["methods"]
    assert [one["name"] for one in methods] == [
        "rpml", "srpml", "plm", "ssdml", "lrml", "seraph", "isdml", "apllr", "apit", "triplet", "angular", "nml",
        "ml", "kml", "nca", "lmnn", "pslr", "isif", "nce", "whiten", "pca", "frozen"]
    alpha = methods[0]["fields"][0]
    assert (alpha["name"], alpha["default"], alpha["symbol"]) == ("alpha", 45.0, "α")


def test_evaluation_query_and_export_of_a_run_by_folder(
        capsys: Any, monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path) -> None:
    stored = answer(capsys, monkeypatch, "evaluate", str(run.folder))
    assert set(stored) == {"initial", "frozen", "pca", "final"}
    assert {"recall@1", "recall@2", "recall@4", "recall@8", "nmi", "map@r"} <= set(stored["final"])
    assert 50 < stored["final"]["recall@1"] <= 100
    assert answer(capsys, monkeypatch, "evaluate", str(run.folder), "--again") == stored
    code, out, _ = said(capsys, monkeypatch, "evaluate", str(run.folder))
    assert code == 0
    assert "recall@1" in out
    found = answer(capsys, monkeypatch, "query", str(run.folder), "17", "-k", "4")["results"]
    assert [row["rank"] for row in found] == [1, 2, 3, 4]
    image = write_digits(tmp_path / "one", 1, by_class=False) / "000.png"
    assert len(answer(capsys, monkeypatch, "query", str(run.folder), str(image))["results"]) == 10
    exported = answer(capsys, monkeypatch, "export", str(run.folder), str(tmp_path / "out"))
    assert "embedder.safetensors" in exported["files"]


def test_analyses_are_computed_listed_and_found_again(
        capsys: Any, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    words = ("analyse", str(run.folder), "--kind", "tsne", "--scope", "test", "--frames", "frozen,final")
    code, out, err = said(capsys, monkeypatch, *words, "--perplexity", "10", "--json")
    assert (code, out.count("\n")) == (0, 1), err
    assert "layout: " in err
    made = json.loads(out)
    assert made["state"] == "done"
    assert made["asked"] == {"scope": "test", "frames": ["frozen", "final"], "perplexity": 10.0, "seed": 0}
    assert answer(capsys, monkeypatch, *words, "--perplexity", "10") == made
    grid = answer(capsys, monkeypatch, "analyse", str(run.folder), "--kind", "grid", "--source", made["analysis"])
    assert grid["asked"] == {"source": made["analysis"], "frame": "final"}
    listed = answer(capsys, monkeypatch, "analyses", str(run.folder))["analyses"]
    assert [one["kind"] for one in listed] == ["grid", "tsne", "graph", "pca"]
    code, out, err = said(capsys, monkeypatch, *words, "--perplexity", "300", "--json")
    assert (code, json.loads(out)["state"]) == (1, "failed")
    assert "Lower the perplexity" in err


def test_pairs_from_a_file_or_as_given_are_what_is_learnt_from(
        capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = ("train", "--dataset", "digits", "--backbone", "pixels", "--method", "nml", "--split", "seen", "--no-wait",
             "--set", "dimension=4", "--set", "epochs=1")
    path = tmp_path / "pairs.csv"
    train = make_split(catalog.load("digits"), "seen").train
    path.write_text(f"first,second,same\n{train[0]},{train[9]},same\n{train[3]},{train[4]},different\n")
    made = Run(Path(answer(capsys, monkeypatch, *words, "--pairs-file", str(path))["folder"]))
    assert made.spec().pairs == "given"
    assert made.pairs().pairs.tolist() == [[train[0], train[9]], [train[3], train[4]]]
    jobs.stop(made)
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    code, _, err = said(capsys, monkeypatch, *words, "--given-pairs")
    assert (code, "got 0 that are the same and 0 that are different" in err) == (2, True)
    given = PairLog(catalog.load("digits"))
    for first, second, same in ((train[0], train[1], True), (train[2], train[3], False)):
        given.give(int(first), int(second), same)
    made = Run(Path(answer(capsys, monkeypatch, *words, "--given-pairs")["folder"]))
    given.undo()
    assert made.pairs().same.tolist() == [True, False]
    jobs.stop(made)
    made = Run(Path(answer(capsys, monkeypatch, *words, "--pairs", "500")["folder"]))
    assert (made.spec().pairs, made.spec().most_pairs) == ("labels", 500)
    jobs.stop(made)


def test_a_run_of_pairs_is_continued_with_those_that_it_has_not_learnt_from(
        capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("udml_core.jobs.launch.launch", lambda _task: None)
    train = make_split(catalog.load("digits"), "seen").train.tolist()
    first = worked(tmp_path / "runs", method="nml", fields={"dimension": 4, "epochs": 1}, most_pairs=100)
    path = tmp_path / "further.csv"
    path.write_text(f"first,second,same\n{train[0]},{train[9]},same\n{train[3]},{train[4]},different\n")
    words = ("continue", first.id, "--no-wait")
    made = Run(Path(answer(capsys, monkeypatch, *words, "--pairs-file", str(path), "--set", "epochs=3")["folder"]))
    assert made.spec().starts_from == first.id
    assert made.spec().fields == {"dimension": 4, "epochs": 3}
    assert made.pairs().pairs.tolist() == [[train[0], train[9]], [train[3], train[4]]]
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    given = PairLog(catalog.load("digits"))
    for one, other, same in ((0, 9, True), (1, 2, True), (4, 5, False)):
        given.give(train[one], train[other], same)
    made.write_status(first.status())
    code, _, err = said(capsys, monkeypatch, "continue", made.id, "--given-pairs", "--no-wait")
    assert (code, "has lost its folder 'checkpoint'" in err) == (2, True)
    begun = Run(Path(answer(capsys, monkeypatch, *words, "--given-pairs")["folder"]))
    assert (begun.spec().fields["epochs"], len(begun.pairs())) == (1, 3)


BAD: list[tuple[list[str], str]] = [
    (["train", "--dataset", "nowhere", "--method", "rpml"], "There is no data set 'nowhere'"),
    (["train", "--dataset", "digits", "--method", "nothing"], "The method must be one of rpml, srpml"),
    (["train", "--dataset", "digits", "--method", "rpml", "--set", "alpha=120"],
     "RPML.alpha must be between 0 and 90 degrees (0 and 90 excluded), got 120."),
    (["train", "--dataset", "digits", "--method", "rpml", "--set", "alpha"], "--set takes FIELD=VALUE, got 'alpha'"),
    (["train", "--dataset", "digits", "--method", "rpml", "--set", "beta=1"], "RPML has no field 'beta'"),
    (["train", "--dataset", "digits", "--method", "rpml", "--set", "weight=heavy"], "got 'heavy'"),
    (["train", "--dataset", "digits", "--method", "rpml", "--backbone", "nothing"], "The backbone must be one of"),
    (["train", "--dataset", "digits", "--method", "rpml", "--split", "half"], "half"),
    (["train", "--dataset", "digits", "--method", "whiten", "--labels-per-class", "5"], "and whiten is none of them"),
    (["train", "--dataset", "digits", "--method", "ssdml", "--backbone", "pixels", "--labels-per-class", "0"],
     "per class must be between 1 and"),
    (["train", "--dataset", "digits", "--method", "ssdml", "--labels", "invented"], "invented"),
    (["train", "--dataset", "digits", "--method", "rpml", "--device", "tpu"], "The device must be auto, cpu or cuda:N"),
    (["train", "--dataset", "digits", "--method", "rpml", "--size", "3000"], "between 32 and 1024 pixels, got 3000"),
    (["train", "--dataset", "digits"], "--method"),
    (["train", "--dataset", "digits", "--method", "nml", "--pairs", "1"], "between 2 and 500,000, got 1"),
    (["train", "--dataset", "digits", "--method", "nml", "--pairs-file", "FILE"], "columns first, second and same"),
    (["train", "--dataset", "digits", "--method", "nml", "--pairs-file", "nowhere.csv"], "could not be read"),
    (["train", "--dataset", "digits", "--method", "nml", "--pairs-file", "x", "--given-pairs"], "both were named"),
    (["train", "--dataset", "digits", "--method", "nml", "--given-pairs", "--pairs", "9"], "drawn from labels"),
    (["train", "--dataset", "FLAT", "--method", "nca"], "NCA learns from class labels"),
    (["train", "--dataset", "digits", "--method", "rpml", "--backbone", "pixels"], "at most the features' width 64"),
    (["train", "--dataset", "FLAT", "--method", "pca"], "at most 8 dimensions (8 images of 1280-d features)"),
    (["train", "--dataset", "digits", "--method", "frozen", "--backbone", "squeezenet", "--size", "8"],
     "between 15 and 1024 pixels, got 8"),
    (["train", "--dataset", "FLAT", "--method", "pca", "--split", "zero-shot"], "zero-shot split needs at least 2"),
    (["train", "--dataset", "EMPTY", "--method", "pca"], "has no images. Expected: folder/CLASS/image.jpg"),
    (["train", "--dataset", "FILE", "--method", "pca"], "must be a folder of images"),
    (["train", "--dataset", "~nobody-of-that-name", "--method", "pca"], "There is no data set '~nobody-of-that-name'"),
    (["train", "--dataset", "digits", "--method", "pca", "--set", "dimension=NaN"], "got nan"),
    (["train", "--dataset", "digits", "--method", "frozen", "--backbone", "pixels", "--runs", "BELOW"],
     "Choose another folder with --runs or UDML_RUNS"),
    (["evaluate", "nothing"], "There is no run 'nothing'"),
    (["evaluate", "~nobody-of-that-name"], "There is no run '~nobody-of-that-name'"),
    (["resume", "RUN"], "is done; there is nothing to resume"),
    (["continue", "RUN", "--pairs-file", "x", "--given-pairs"], "both were named"),
    (["continue", "RUN"], "Name a file of them with --pairs-file"),
    (["continue", "RUN", "--given-pairs"], "Only NML, ML and KML go on with further pairs"),
    (["continue", "nothing", "--given-pairs"], "There is no run 'nothing'"),
    (["query", "RUN", "FILE"], "must be an image, and is none of a known kind"),
    (["query", "RUN", "nothing.png"], "there is no 'nothing.png'"),
    (["query", "RUN", "²"], "there is no '²'"),
    (["query", "RUN", "9" * 5000], "there is no '9999"),
    (["train", "--dataset", "digits", "--method", "pca", "--device", "cuda:²"], "must be auto, cpu or cuda:N"),
    (["query", "RUN", "99999"], "The images are numbered 0 to 1796, got 99999"),
    (["query", "RUN", "3", "-k", "0"], "-k"),
    (["query", "RUN", "~nobody-of-that-name"], "there is no '~nobody-of-that-name'"),
    (["query", "RUN", "EMPTY"], "must be an image, and could not be read"),
    (["export", "RUN", "FLAT"], "new or empty folder"),
    (["export", "RUN", "FILE"], "new or empty folder"),
    (["export", "RUN", "BELOW"], "could not be written into"),
    (["datasets", "--remember", "EMPTY"], "has no images"),
    (["analyse", "RUN", "--kind", "sne"], "sne"),
    (["analyse", "RUN", "--kind", "tsne", "--perplexity", "1"], "greater than or equal to 2, got 1.0"),
    (["analyse", "RUN", "--kind", "pca", "--frames", "last"], "frames: "),
    (["analyse", "RUN", "--kind", "pca", "--frames", "0"], "epochs are kept for the sample only"),
    (["analyse", "RUN", "--kind", "grid"], "the kind 'grid' needs a map"),
    (["analyse", "RUN", "--kind", "grid", "--source", "umap"], "has no analysis 'umap'"),
    (["analyse", "nothing", "--kind", "pca"], "There is no run 'nothing'"),
    (["analyses", "nothing"], "There is no run 'nothing'"),
    (["analyse-work", "EMPTY"], "must describe an analysis"),
    (["nonsense"], "nonsense"),
]


@pytest.mark.parametrize(("words", "message"), BAD, ids=lambda one: " ".join(one)[:60] if isinstance(one, list) else "")
def test_bad_input_ends_with_2_and_one_clear_message(
        words: list[str], message: str, capsys: Any, monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path) -> None:
    places = {"RUN": run.folder, "FLAT": tmp_path / "flat", "EMPTY": tmp_path / "empty", "FILE": tmp_path / "file.png",
              "BELOW": tmp_path / "file.png" / "below"}
    write_digits(tmp_path / "flat", 8, by_class=False)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.png").write_text("no image")
    code, out, err = said(capsys, monkeypatch, *(str(places.get(word, word)) for word in words))
    assert code == 2
    assert out == ""
    assert message in err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) <= 2


def test_a_run_is_started_stopped_and_resumed(
        capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started = answer(capsys, monkeypatch, "train", "--dataset", "digits", "--backbone", "pixels", "--method", "rpml",
                     "--set", "epochs=25", "--set", "dimension=8", "--split", "seen", "--no-wait")
    assert started["state"] in ("waiting", "running")
    until(Run(Path(started["folder"])), "running")
    with pytest.raises(UserError, match="already"):
        jobs.resume(Run(Path(started["folder"])))
    stopped = answer(capsys, monkeypatch, "stop", started["run"])
    assert stopped["state"] == "stopped"
    code, out, err = said(capsys, monkeypatch, "evaluate", started["run"], "--json")
    assert (code, out) == (2, "")
    assert "is stopped and has no evaluation yet. Resume it" in err
    resumed = answer(capsys, monkeypatch, "resume", started["run"])
    assert (resumed["state"], resumed["epoch"]) == ("done", 25)
    assert resumed["evaluation"]["final"]["recall@1"] > 50


def test_work_says_where_it_left_a_run(
        capsys: Any, monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path) -> None:
    code, _, err = said(capsys, monkeypatch, "work", str(run.folder))
    assert (code, "is done" in err) == (0, True)
    assert answer(capsys, monkeypatch, "stop", str(run.folder))["state"] == "done"
    waiting = create_run(run.spec(), tmp_path / "runs")
    assert answer(capsys, monkeypatch, "stop", waiting.id)["state"] == "stopped"
    code, _, err = said(capsys, monkeypatch, "work", waiting.id)
    assert (code, "is stopped. Stopped. Resume it to go on" in err) == (1, True)


def test_a_run_from_a_machine_with_a_gpu_is_evaluated_here_and_not_trained(
        capsys: Any, monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path) -> None:
    copied = Run(shutil.copytree(run.folder, tmp_path / "copied"))
    given = copied.spec().model_copy(update={"device": "cuda:7"})
    (copied.folder / "spec.json").write_text(given.model_dump_json())
    assert answer(capsys, monkeypatch, "evaluate", str(copied.folder), "--again") == run.evaluation()
    copied.write_status(Status(state="stopped"))
    code, _, err = said(capsys, monkeypatch, "work", str(copied.folder))
    assert (code, "cuda:7 was asked for" in copied.status().message) == (1, True)
    assert copied.status().message in err


@pytest.mark.parametrize("content", [None, b"", b"cut"])
def test_a_run_without_its_index_is_searched_all_the_same(
        content: bytes | None, capsys: Any, monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path) -> None:
    copied = Run(shutil.copytree(run.folder, tmp_path / "copied"))
    whole = copied.index_path.read_bytes()
    expected = answer(capsys, monkeypatch, "query", str(run.folder), "17")["results"]
    copied.index_path.unlink()
    if content is not None:
        copied.index_path.write_bytes(content and whole[:1000])
    assert answer(capsys, monkeypatch, "query", str(copied.folder), "17")["results"] == expected


def test_a_cache_that_cannot_be_written_is_a_message(
        capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "file"))
    folder = write_digits(tmp_path / "images", 20)
    code, out, err = said(capsys, monkeypatch, "train", "--dataset", str(folder), "--method", "pca", "--json")
    assert (code, out) == (2, "")
    assert "Not a directory" in err
    assert "Traceback" not in err


def test_names_that_the_terminal_cannot_write_are_no_reason_to_fail(tmp_path: Path, run: Run) -> None:
    named = create_run(run.spec().model_copy(update={"dataset": "日本"}), tmp_path / "runs")
    done = subprocess.run([sys.executable, "-X", "utf8=0", "-m", "udml_core", "runs", "--runs", str(tmp_path / "runs")],
                          cwd=ROOT, env=os.environ | {"PYTHONIOENCODING": "cp1252:strict"}, capture_output=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    assert named.id.encode() in done.stdout


def test_without_a_command_it_says_what_there_is(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = said(capsys, monkeypatch)
    assert code in (0, 2)
    assert "train" in out + err
