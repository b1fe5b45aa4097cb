"""A few attempts of each cheap part of the campaign with bad input, and that a fault in the app is noticed."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from torch import Tensor, nn

from experiments.hold_fast import identifiers, inputs, names, queues, targets, weights
from experiments.hold_fast.attempt import Hostility, attempt_once
from experiments.real_server import ROOT
from udml_core.data.encoders import weights as weights_module
from udml_core.runs import Run
from udml_core.work.exporting import export

CHEAP = {part.name: part for part in inputs.PARTS if part.name in ("images", "tables", "options")}


def broken_attempts(part: Hostility, tries: int) -> list[str]:
    """Return what broke in the first attempts at a part."""
    return [broken for seed in range(tries) if (broken := attempt_once(part, seed)[0]) is not None]


@pytest.mark.parametrize("name", CHEAP)
def test_bad_input_gives_a_result_or_one_clear_message(name: str) -> None:
    assert broken_attempts(CHEAP[name], 12) == []


@pytest.mark.slow
def test_hostile_names_pass_through_a_page_and_an_export() -> None:
    """A process of its own opens the pages in children, which inherit the locks of other tests' threads otherwise."""
    words = ("--part", "names", "--tries", "4", "--seed", "0", "--minutes", "10")
    campaign = subprocess.run([sys.executable, "-m", "experiments.hold_fast", *words], cwd=ROOT, text=True,
                              capture_output=True, timeout=800, check=False)
    assert campaign.returncode == 0, campaign.stdout + campaign.stderr


@pytest.mark.parametrize(("part", "name"), [("images", "read_user_image"), ("tables", "parse_pairs"),
                                            ("options", "jobs.plan")])
def test_a_fault_is_noticed(part: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError("a fault of the app")

    monkeypatch.setattr(f"experiments.hold_fast.inputs.{name}", fail)
    assert any("a fault of the app" in broken for broken in broken_attempts(CHEAP[part], 6))


def test_an_export_that_names_a_folder_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def leak(run: Run, folder: Any) -> Any:
        files = export(run, folder)
        (folder / "spec.json").write_bytes((run.folder / "spec.json").read_bytes())
        return files

    monkeypatch.setattr(names, "export", leak)
    monkeypatch.setattr(names, "opened", lambda *_, **__: None)
    monkeypatch.setattr(names, "judged", lambda *_: None)
    assert broken_attempts(names.PART, 1) == ["the export's spec.json names the folder"]


def test_weights_that_only_partly_arrive_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused file that has already changed the network, and a file of which a tensor is forgotten."""
    assert broken_attempts(weights.PART, 12) == []

    def forget(network: nn.Module, tensors: dict[str, Tensor], name: str, source: str) -> None:
        weights_module.fill(network, tensors, name, source)
        next(network.parameters()).data.zero_()

    monkeypatch.setattr(weights, "fill", forget)
    assert any("the network has not the weights of the file" in each for each in broken_attempts(weights.PART, 12))


def test_an_identifier_that_leaves_the_run_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def follow(run: Run, name: str) -> MagicMock:
        with suppress(OSError, ValueError):
            (run.folder / "analyses" / name / "spec.json").resolve().write_text("[]", encoding="utf-8")
        return MagicMock()

    monkeypatch.setattr(identifiers, "find_analysis", follow)
    monkeypatch.setattr(identifiers, "call", lambda _words: None)
    monkeypatch.setattr(identifiers, "answer_of", lambda *_: None)
    assert any("a file outside the run" in each for each in broken_attempts(identifiers.PART, 12))


def test_an_export_that_changes_other_files_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def spill(_run: Run, _folder: Any, *_: Any, **__: Any) -> None:
        (Path(str(_folder)).parent / "kept" / "more.txt").write_text("more", encoding="utf-8")

    assert broken_attempts(targets.PART, 3) == []
    for name in ("export", "export_model", "export_shards"):
        monkeypatch.setattr(targets, name, spill)
    monkeypatch.setattr(targets, "mirror", lambda run, _to, where: spill(run, where))
    assert any("other files were added" in broken for broken in broken_attempts(targets.PART, 3))


def test_runs_that_still_wait_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    canceled = next(part for part in queues.PARTS if part.name == "canceled")
    monkeypatch.setattr(queues, "MOST", 4)
    assert broken_attempts(canceled, 2) == []
    monkeypatch.setattr(queues.jobs, "cancel_waiting", lambda _root: 0)
    assert all("runs still wait" in broken for broken in broken_attempts(canceled, 2))
