"""The command of a run: what the command line makes of it equals the run's spec."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.running import spec, worked, write_digits
from udml_core.cli import commands as cli
from udml_core.data import catalog
from udml_core.methods import METHODS, find_method
from udml_core.runs import Run, RunRequest, Spec, create_run
from udml_core.runs.command import command_limits, command_of
from udml_core.work import jobs

UNUSUAL: dict[str, dict[str, Any]] = {
    "rpml": {"fields": {"dimension": 16, "epochs": 2, "steps": 3, "alpha": 30.5}, "seed": 7, "select": "validation"},
    "ssdml": {"labels_per_class": 3, "split": "zero-shot", "size": 16},
    "pca": {"fields": {"dimension": 8, "centered": False}},
}


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Spec]:
    """The specs that commands submit, in place of starting workers."""
    specs: list[Spec] = []

    def submit(planned: Spec, root: Path, pairs: Any = None, maps: bool | None = None, engine: Any = None) -> Run:
        specs.append(planned)
        return create_run(planned.model_copy(update={"starts_from": None}), tmp_path / "submitted", pairs)

    monkeypatch.setattr(jobs, "submit", submit)
    monkeypatch.setattr(cli, "_follow_new_run", lambda *_: None)
    return specs


def parsed(command: str) -> None:
    """Call the command line as a shell does."""
    words = shlex.split(command)
    assert words[:3] == ["python", "-m", "udml_core"]
    cli.app(words[3:], standalone_mode=False)


def request_of(name: str) -> dict[str, Any]:
    """Return a request that fits raw pixels, or a small network for methods that train one."""
    method = find_method(name)
    fields = {"dimension": 16} if "dimension" in method.model_fields else {}
    backbone = "lenet" if method.make(fields).trains_encoder else "pixels"
    return {"dataset": "digits", "method": name, "backbone": backbone, "split": "seen", "fields": fields
            } | UNUSUAL.get(name, {})


@pytest.mark.parametrize("name", [method.card.name for method in METHODS])
def test_the_command_starts_an_equal_run(name: str, submitted: list[Spec]) -> None:
    planned = jobs.plan(RunRequest.make(request_of(name)), catalog.load("digits"))
    parsed(command_of(planned))
    assert submitted[-1] == planned.model_copy(update={"created": submitted[-1].created})


def test_a_preset_does_not_replace_what_the_run_had_changed(submitted: list[Spec]) -> None:
    request = {"dataset": "digits", "method": "ssdml", "preset": "paper", "backbone": "lenet", "pooling": "mean",
               "labels_per_class": 3, "split": "seen", "fields": {"dimension": 16}}
    planned = jobs.plan(RunRequest.make(request), catalog.load("digits"))
    parsed(command_of(planned))
    assert submitted[-1] == planned.model_copy(update={"created": submitted[-1].created})


def test_defaults_are_left_out_and_changes_are_written() -> None:
    command = command_of(spec(method="pca", fields={"dimension": 8, "centered": False}))
    assert command.startswith("python -m udml_core train --dataset digits --method pca --backbone pixels ")
    assert "--set dimension=8 --set centered=false" in command
    for absent in ("unit_length", "--preset", "--seed", "--precision", "compile", "--pairs"):
        assert absent not in command


def test_a_path_with_spaces_and_quotes_is_quoted(tmp_path: Path, submitted: list[Spec]) -> None:
    folder = write_digits(tmp_path / "my 'best' $images")
    planned = spec(method="pca", dataset=str(folder), split="all", fields={"dimension": 4})
    parsed(command_of(planned))
    assert submitted[-1].dataset == planned.dataset
    assert submitted[-1].fingerprint == planned.fingerprint


@pytest.mark.slow
def test_a_continued_run_is_continued_again(tmp_path: Path, submitted: list[Spec]) -> None:
    earlier = worked(tmp_path / "runs", method="plm", fields={"epochs": 1, "dimension": 8})
    planned = earlier.spec().model_copy(update={"starts_from": earlier.id, "pairs": "given"})
    words = shlex.split(command_of(planned))
    assert words[3:5] == ["continue", earlier.id]
    assert "--given-pairs" in words
    assert "epochs=1" in words
    assert "pairs given in the app" in command_limits(planned)


def test_only_assigned_labels_and_given_pairs_limit_the_command() -> None:
    planned = spec()
    assert command_limits(planned) == ""
    assert "labels assigned" in command_limits(planned.model_copy(update={"labels": "given"}))
