"""The pause of a training on the page Lab: the words of the line above the map, and which trainings can rest."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import streamlit as st

from pages.parts.shell.run_status import state_line
from pages.parts.train import live, pausing
from pages.parts.train.status_strip import cells_of, progress_line
from tests.running import spec
from udml_core.runs import Run, create_run
from udml_core.runs.tasks import Status

TRAINS = Status(state="running", phase="training", epoch=1, epochs=3)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return create_run(spec(), tmp_path)


def test_the_line_says_whether_the_worker_rests_already(run: Run) -> None:
    assert cells_of(run, TRAINS, 2)[-1][0] == "Results in"
    run.request_pause()
    assert cells_of(run, TRAINS, 2)[-1] == ("Training", "pausing …", "")
    rests = TRAINS.model_copy(update={"paused": True})
    assert cells_of(run, rests, 2)[-1] == ("Training", "paused", "")
    assert progress_line(run, rests) == "Training epoch 2 of 3, paused"
    assert state_line(run, rests) == "Paused in epoch 2 of 3. Continue it in Lab."
    ended = rests.model_copy(update={"state": "interrupted"})
    assert "Paused" not in state_line(run, ended), "a worker that died rests no more"


def test_the_time_of_a_step_before_training_is_not_said_to_be_that_of_the_run(run: Run) -> None:
    loads = Status(state="running", phase="features lite0", phase_started=100, heartbeat=101, share=0.5)
    assert state_line(run, loads) == "Features lite0, about 1 s left in this step"
    trains = loads.model_copy(update={"phase": "training", "epochs": 3, "epoch_seconds": 2.0})
    assert state_line(run, trains) == "Epoch 1 of 3, about 5 s left"


@pytest.mark.parametrize(("status", "expected"), [
    (TRAINS, True), (TRAINS.model_copy(update={"phase": "evaluation"}), False), (Status(state="waiting"), False),
    (Status(state="done"), False)])
def test_only_a_run_that_trains_can_rest(status: Status, expected: bool, run: Run) -> None:
    assert pausing.can_pause(run, status) is expected
    run.write_status(status)
    pausing.rest(run)
    assert not run.pause_requested(), "no worker lives that could rest"


def test_a_training_in_several_processes_cannot_rest() -> None:
    several: Any = SimpleNamespace(spec=lambda: SimpleNamespace(processes=2), folder=Path("missing"))
    assert not pausing.can_pause(several, TRAINS)


def test_a_continued_picture_goes_on_from_the_moment_that_it_rested_at(run: Run, monkeypatch: pytest.MonkeyPatch
                                                                       ) -> None:
    monkeypatch.setattr(st, "session_state", {})
    epochs = [0.0, 0.5, 1.0, 2.0, 3.0]
    run.request_pause()
    live._pause(run, 1.0)
    assert live.next_epoch(run, epochs) == 3, "without a continued picture, the newest is shown"
    live._continue(run, epochs)
    assert not run.pause_requested()
    assert live.next_epoch(run, epochs) == 2
