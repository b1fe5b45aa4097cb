"""A run's name, note and tags: storing, limits, damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.running import spec
from udml_core.base.errors import UserError
from udml_core.runs import Run, create_run
from udml_core.runs.notes import NOTES_FILE, Notes


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return create_run(spec(), tmp_path / "runs")


def test_notes_are_kept_beside_the_run_and_leave_no_other_file(run: Run) -> None:
    before = {path.name for path in run.folder.iterdir()}
    notes = Notes.make("  Größte ε  ", "Collapsed\nafter epoch 3", ("birds", "paper", "birds"))
    run.write_notes(notes)
    assert run.notes() == Notes(name="Größte ε", note="Collapsed\nafter epoch 3", tags=("birds", "paper"))
    assert {path.name for path in run.folder.iterdir()} - before == {NOTES_FILE}


def test_empty_notes_remove_the_file(run: Run) -> None:
    run.write_notes(Notes.make("A name"))
    run.write_notes(Notes.make("", " "))
    assert run.notes() == Notes()
    assert not (run.folder / NOTES_FILE).exists()


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"name": 3}', '{"tags": ["' + "x" * 500 + '"]}', "\x00\xff"])
def test_damaged_notes_are_ignored_with_a_message_and_replaced_by_the_next(content: str, run: Run) -> None:
    (run.folder / NOTES_FILE).write_bytes(content.encode("latin-1"))
    notes = run.notes()
    assert (notes.name, notes.note, notes.tags) == ("", "", ())
    assert "could not be read" in notes.problem
    run.write_notes(Notes.make("Again"))
    assert run.notes() == Notes(name="Again")


def test_a_stored_problem_does_not_come_back(run: Run) -> None:
    (run.folder / NOTES_FILE).write_text('{"name": "Fine", "problem": "old"}')
    assert run.notes() == Notes(name="Fine")


@pytest.mark.parametrize(("values", "word"), [({"name": "x" * 121}, "name"), ({"tags": ("x" * 41,)}, "tags"),
                                              ({"tags": tuple(map(str, range(13)))}, "tags")])
def test_notes_that_are_too_long_are_rejected_by_name(values: dict[str, str], word: str) -> None:
    with pytest.raises(UserError, match=f"The {word} of a run cannot be stored"):
        Notes.make(**values)  # type: ignore[arg-type]
