"""The command judge, as users and scripts call it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tests.cli.test_cli import answer, call
from tests.running import worked
from udml_core.runs import Run

Shell = tuple[pytest.CaptureFixture[str], pytest.MonkeyPatch]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return worked(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    return capsys, monkeypatch


def judge(shell: Shell, run: Run, answers: str, *options: str) -> tuple[int, str, str]:
    """Judge the embeddings before and after training; an answer is a letter."""
    shell[1].setattr("sys.stdin", io.StringIO("".join(f"{letter}\n" for letter in answers)))
    return call(*shell, "judge", f"{run.folder}:initial", str(run.folder), *options)


def test_judgments_are_asked_undone_stored_and_summed_up(run: Run, shell: Shell) -> None:
    code, lines, messages = judge(shell, run, "lrueq", "--ask")
    assert code == 0, messages
    assert messages.count("Which image shows the same kind of thing as the query?") == 5
    assert messages.count("query  ") == messages.count("left   ") == 5
    assert "Undone." in messages
    first, second, differing, result, advice = lines.splitlines()
    assert (first, second) == (f"A: {run.id}:initial", f"B: {run.id}:final")
    assert "queries differ (" in differing
    assert result.startswith("After 2 judgments (")
    assert advice.startswith("Not decided yet. 2 of 20 judged: 1 of 2 for ")
    stored = answer(*shell, "judge", f"{run.folder}:initial", f"{run.folder}:final")
    assert stored["people"]["me"]["judgments"] == stored["result"]["judgments"] == 2
    assert stored["people"]["me"]["mean"] in (0.25, 0.75)


def test_the_first_ten_results_are_judged_as_rows(run: Run, shell: Shell, tmp_path: Path) -> None:
    options = ("--ask", "--results", "ten", "--export", str(tmp_path / "a.json"))
    code, lines, messages = judge(shell, run, "12uleq", *options)
    assert code == 0, messages
    assert "holds more images of the same kind as the query? 1 row 1, 2 row 2, b both right, w both wrong" in messages
    assert "got 'l'" in messages
    assert messages.count("row 1  ") == messages.count("row 2  ") >= 5
    assert "differ in their first ten results (" in lines
    stored = json.loads((tmp_path / "a.json").read_text())
    assert (stored["results"], stored["people"]["me"]["judgments"]) == ("ten", 2)
    assert all(isinstance(row, list) for row in stored["judgments"][0]["images"])
    assert "No judgments yet" in judge(shell, run, "")[1], "first results are judged apart"


def test_a_wrong_letter_asks_again_and_the_end_of_the_input_ends_the_session(run: Run, shell: Shell) -> None:
    code, lines, messages = judge(shell, run, "xl", "--ask", "--name", "Ana")
    assert code == 0, messages
    assert ("Answer with a key: l left, r right, b both right, w both wrong, n not sure, e equal, u undo, q quit; "
            "got 'x'") in messages
    assert "After 1 judgment (" in lines


def test_people_are_combined_through_files(run: Run, shell: Shell, tmp_path: Path) -> None:
    file, table = tmp_path / "ana.json", tmp_path / "ana.csv"
    assert judge(shell, run, "leq", "--ask", "--name", "Ana", "--export", str(file))[0] == 0
    assert judge(shell, run, "", "--export", str(table))[0] == 0
    assert len(table.read_text().splitlines()) == 3
    assert set(json.loads(file.read_text())["people"]) == {"Ana"}
    shell[1].setenv("UDML_CACHE", str(tmp_path / "elsewhere"))
    assert judge(shell, run, "reeq", "--ask", "--name", "Ben")[0] == 0
    code, lines, messages = judge(shell, run, "", "--import", str(file), "--name", "Ben")
    assert code == 0, messages
    assert "Imported 2 judgments by Ana." in messages
    assert "Ben: After 3 judgments" in lines
    assert "Ana: After 2 judgments" in lines
    assert lines.splitlines()[-2].startswith("After 2 judgments"), "two queries are judged by both"


@pytest.mark.parametrize(("words", "message"), [
    (("judge", "RUN", "RUN:epoch"), "has no embedding 'epoch'"), (("judge", "nothing", "RUN"), "No run 'nothing'"),
    (("judge", "RUN", "RUN:initial", "--import", "missing.json"), "could not be read"),
    (("judge", "RUN", "RUN:initial", "--export", "/nowhere/file"), "--export"),
    (("judge", "RUN", "RUN:initial", "--name", "x" * 61), "at most 60 letters")], ids=lambda value: str(value)[:12])
def test_bad_input_ends_with_one_message(words: tuple[str, ...], message: str, run: Run, shell: Shell) -> None:
    code, lines, messages = call(*shell, *(word.replace("RUN", str(run.folder)) for word in words))
    assert (code, lines) == (2, "")
    assert message in messages


def test_a_search_compared_with_itself_leaves_nothing_to_judge(run: Run, shell: Shell) -> None:
    code, lines, messages = call(*shell, "judge", str(run.folder), str(run.folder), "--ask")
    assert code == 0, messages
    assert "Nothing to judge: both searches find the same for every query." in lines
    assert answer(*shell, "judge", str(run.folder), str(run.folder))["result"]["judgments"] == 0
