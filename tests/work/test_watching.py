"""The steps within an epoch that are stored, with a simulated clock and a model of known cost."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.running import trained
from udml_core.runs import Run
from udml_core.runs.live_steps import (
    ATTENTION,
    WATCHED,
    is_watched,
    mark_watched,
    step_embedding,
    step_rows,
    write_step,
)
from udml_core.work.workers.watching import ALLOWANCE, SHARE, StepWatcher


class Model:
    def eval(self) -> Model:
        return self


class Training:
    """A training whose steps and measurements take simulated seconds."""

    def __init__(self, run: Run, step: float, cost: float) -> None:
        self.now, self.step, self.cost, self.spent = 0.0, step, cost, 0.0
        self.watcher = StepWatcher(run, self._measure, lambda: self.now)

    def _measure(self, _model: Any) -> tuple[dict[str, Any], Any, None]:
        self.now += self.cost
        self.spent += self.cost
        return {}, np.zeros((2, 2)), None

    def train(self, epochs: int, steps: int) -> list[float]:
        for _ in range(epochs):
            for position in range(steps):
                self.now += self.step
                self.watcher.observe((position + 1) / steps, Model)  # type: ignore[arg-type]
            self.watcher.epoch += 1
        return [row["epoch"] for row in step_rows(self.watcher.run)]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    run = Run(tmp_path)
    mark_watched(run)
    return run


def test_the_first_steps_are_dense_and_the_end_of_an_epoch_is_left_to_the_epoch(run: Run) -> None:
    training = Training(run, 0.01, 0.001)
    training.watcher.begin(0, 0.001)
    assert training.train(3, 10) == [0.1, 0.2, 0.4, 0.8, 1.6]


def test_later_steps_are_about_a_second_apart_and_fewer_in_a_long_training(run: Run) -> None:
    training = Training(run, 0.1, 0.0)
    training.watcher.begin(0, 0.0)
    stored = np.diff(np.array(training.train(1, 2000)) * 200)  # seconds
    assert stored[6:12].max() < 1.3
    assert 5 < stored[-1] < 11, "5 % of 200 s apart"


@pytest.mark.parametrize("cost", [0.05, 0.5, 5.0])
def test_steps_cost_a_twentieth_of_the_time_at_most(run: Run, cost: float) -> None:
    training = Training(run, 0.1, cost)
    training.watcher.begin(0, cost)
    training.train(1, 2000)
    assert training.spent <= max(ALLOWANCE, SHARE * training.now) + 1e-9
    assert training.spent > 0, "a training that is long enough shows something"


def test_nothing_is_embedded_without_a_viewer(tmp_path: Path) -> None:
    run = Run(tmp_path)
    training = Training(run, 0.1, 0.01)
    assert training.train(2, 100) == []
    assert training.spent == 0
    mark_watched(run)
    assert is_watched(run)
    past = time.time() - ATTENTION - 1
    os.utime(tmp_path / WATCHED, (past, past))
    assert not is_watched(run), "a page that was closed does not watch"


def test_a_step_is_read_as_it_was_stored_and_a_repeated_step_counts_once(run: Run) -> None:
    sample, of_half = np.ones((3, 2)), np.full((4, 2), 0.5)
    write_step(run, {"epoch": 1.25, "sample map@r": 0.4}, sample, of_half)
    write_step(run, {"epoch": 0.5, "sample map@r": 0.3}, sample, None)
    write_step(run, {"epoch": 1.25, "sample map@r": 0.6}, 2 * sample, of_half)
    assert [(row["epoch"], row["sample map@r"]) for row in step_rows(run)] == [(0.5, 0.3), (1.25, 0.6)]
    np.testing.assert_array_equal(step_embedding(run, 1.25, of_training=False), 2 * sample)
    np.testing.assert_array_equal(step_embedding(run, 1.25, of_training=True), of_half)


def test_a_watched_training_stores_steps_and_its_curves_are_those_of_an_unwatched_one(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"dimension": 4, "epochs": 2}
    alone = trained(tmp_path / "alone", fields=fields)
    monkeypatch.setattr("udml_core.work.workers.watching.is_watched", lambda _run: True)
    watched = trained(tmp_path / "watched", fields=fields)
    assert step_rows(alone) == []
    steps = step_rows(watched)
    assert steps[0]["epoch"] == 0.1
    assert 0 < steps[0]["sample map@r"] < 1
    of_sample = step_embedding(watched, 0.1, of_training=False)
    assert of_sample.shape == watched.epoch_sample(1).shape
    moved = [np.abs(of_sample - watched.epoch_sample(epoch)).max() for epoch in (0, 1)]
    assert min(moved) > 0.01, "a step lies between the start and the end of its epoch"
    first, second = ([{name: value for name, value in row.items() if name != "seconds"} for row in run.metrics()[0]]
                     for run in (alone, watched))
    assert first == second
    np.testing.assert_array_equal(alone.epoch_sample(2), watched.epoch_sample(2))
