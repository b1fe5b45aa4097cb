"""The command `udml same`, and the marks that `udml query` gives the results."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_cli import answer, call
from tests.running import worked, write_digits
from udml_core.data.given.judged_pairs import judged_pairs, wanted_precision
from udml_core.data.given.pair_sets import read_pairs
from udml_core.runs import Run
from udml_core.runs.search import Retrieval
from udml_core.runs.search.same import open_same_pairs

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    trained = worked(tmp_path / "runs")
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    return trained


def ask(capsys: Capture, monkeypatch: pytest.MonkeyPatch, run: Run, lines: str, *words: str) -> tuple[Any, str]:
    """Judge with lines on stdin; return the JSON object on stdout, and stderr."""
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    code, out, err = call(capsys, monkeypatch, "same", str(run.folder), "--ask", "--json", *words)
    assert code == 0, err
    return json.loads(out), err


def test_pairs_are_judged_skipped_and_undone_on_stdin_and_continued_later(
        run: Run, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    first, err = ask(capsys, monkeypatch, run, "s\nDIFFERENT\nk\nwhat\nu\nu\nd\n")
    assert (first["judged"], first["threshold"]) == (2, None)
    assert "got 'what'" in err
    assert err.count("Undone.") == 2
    assert err.count("Do these show the same thing?") == 8
    log = judged_pairs(run.dataset())
    assert [pair.same for pair in log.answers().values()] == [True, False]
    again, err = ask(capsys, monkeypatch, run, "u\nu\nu\ns\nq\ns\n")
    assert (again["judged"], "There is nothing to undo." in err) == (1, True)
    assert len(log.answers()) == 1


def test_the_threshold_is_stated_exported_and_marks_the_results(
        run: Run, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    retrieval, labels = Retrieval(run), run.dataset().labels
    assert labels is not None
    code, _, err = call(capsys, monkeypatch, "query", str(run.folder), "5", "--same-only")
    assert code == 2
    assert f"Judge pairs: udml same {run.id} --frame final --ask" in err
    for _ in range(50):
        pair = open_same_pairs(retrieval, "final", 0.8).next()
        assert pair is not None
        judged_pairs(retrieval.dataset).add(*pair, bool(labels[pair[0]] == labels[pair[1]]))
    stated = answer(capsys, monkeypatch, "same", str(run.folder), "--precision", "0.8", "--export",
                    str(tmp_path / "pairs.csv"))
    assert wanted_precision(retrieval.dataset) == 0.8, "searches and exports use the choice"
    assert len(read_pairs(tmp_path / "pairs.csv", retrieval.dataset)) == stated["judged"] == 50
    threshold = stated["threshold"]
    assert threshold["precision"]["low"] >= 0.6
    assert threshold["precision"]["value"] >= 0.8
    assert stated["sentence"].startswith(f"Within a distance of {threshold['distance']:.3f}, ")
    results = answer(capsys, monkeypatch, "query", str(run.folder), "5", "-k", "40")
    assert results["threshold"] == threshold
    assert [row["same"] for row in results["results"]] == [
        row["distance"] <= threshold["distance"] for row in results["results"]]
    only = answer(capsys, monkeypatch, "query", str(run.folder), "5", "-k", "40", "--same-only")
    assert only["results"] == [row for row in results["results"] if row["same"]]
    _, out, err = call(capsys, monkeypatch, "query", str(run.folder), "5", "-k", "40")
    assert sum(line.endswith("  =") for line in out.splitlines()) == len(only["results"])
    assert stated["sentence"] in err


def test_results_have_no_marks_before_pairs_are_judged(run: Run, capsys: Capture,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    results = answer(capsys, monkeypatch, "query", str(run.folder), "5")
    assert results["threshold"] is None
    assert {row["same"] for row in results["results"]} == {None}


@pytest.mark.parametrize(("words", "message"), [
    (("--precision", "1.2"), "must be between 0.55 and 0.99; got 1.2"), (("--frame", "nope"), "no embedding 'nope'"),
    (("--export", "/no/such/folder/x.csv"), "could not be written")])
def test_bad_input_ends_with_one_message(words: tuple[str, ...], message: str, run: Run, capsys: Capture,
                                         monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = call(capsys, monkeypatch, "same", str(run.folder), *words)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.slow
def test_the_files_of_images_are_named(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_digits(tmp_path / "photos", 20, by_class=False)
    run = worked(tmp_path / "runs", method="frozen", dataset=str(folder), split=None)
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    _, err = ask(capsys, monkeypatch, run, "")
    named = [Path(line.strip()) for line in err.splitlines() if line.strip().endswith(".png")]
    assert len(named) == 2
    assert all(path.parent == folder.resolve() and path.exists() for path in named)
