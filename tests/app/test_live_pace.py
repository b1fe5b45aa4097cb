"""The pace at which the epochs of a run are shown on Lab."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import streamlit as st

from pages.parts.train import live
from pages.parts.train.shown import same_words
from pages.parts.train.start_steps import IMAGES, LIBRARIES, MEASURING, QUEUED, STEPS, TRAINING, step_of, steps_of
from udml_core.runs.tasks import Status


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(st, "session_state", {})
    fake = SimpleNamespace(id="run", state="done", count=11)
    fake.epoch_numbers = lambda: [float(number) for number in fake.steps] + [float(n) for n in range(fake.count)]
    fake.steps = []
    monkeypatch.setattr(live, "moments_of", lambda run: sorted(run.epoch_numbers()))
    fake.status = lambda: SimpleNamespace(state=fake.state)
    return fake


def shown_until_the_end(run: Any) -> list[float]:
    shown: list[float] = []
    while live.plays(run):
        shown.append(live.next_epoch(run, sorted(run.epoch_numbers())))
    return shown


def test_a_run_that_was_faster_than_the_page_is_played_to_its_end(run: Any) -> None:
    assert not live.plays(run), "a finished run that was not watched stands at its end"
    st.session_state[live._shown_key(run)] = -1
    shown = shown_until_the_end(run)
    assert shown[0] <= 2
    assert shown[-1] == 10
    assert shown == sorted(set(shown))
    assert len(shown) >= 6


def test_a_slow_run_is_shown_at_its_newest_epoch_and_many_epochs_take_few_steps(run: Any) -> None:
    run.state, run.count = "running", 4
    assert live.next_epoch(run, sorted(run.epoch_numbers())) == 3, "a late page begins at the newest epoch"
    run.count = 5
    assert live.next_epoch(run, sorted(run.epoch_numbers())) == 4
    assert live.next_epoch(run, sorted(run.epoch_numbers())) == 4
    run.state, run.count = "done", 500
    assert len(shown_until_the_end(run)) < 30


def test_every_step_within_the_first_epoch_is_shown_however_fast_the_run_was(run: Any) -> None:
    run.steps, run.count = [0.1, 0.2, 0.4, 0.8], 41
    st.session_state[live._shown_key(run)] = -1
    shown = shown_until_the_end(run)
    assert shown[:6] == [0, 0.1, 0.2, 0.4, 0.8, 1]
    assert len(shown) < 30


def test_a_failed_run_is_not_played(run: Any) -> None:
    st.session_state[live._shown_key(run)] = -1
    run.state = "failed"
    assert not live.plays(run)


def test_rows_of_the_same_images_say_so() -> None:
    assert same_words([3, 1], [3, 1]) == ", the same images"
    assert same_words([3, 1], [1, 3]) == ", the same images in another order"
    assert same_words([3, 1], [3, 2]) == ""


def test_the_steps_of_a_start_follow_the_status_of_the_run() -> None:
    waiting = Status(state="waiting")
    assert step_of(waiting, is_process=False, is_measured=False) == QUEUED
    assert step_of(waiting, is_process=True, is_measured=False) == LIBRARIES
    loading = Status(state="running", phase="features")
    assert step_of(loading, is_process=True, is_measured=False) == IMAGES
    training = Status(state="running", phase="training")
    assert step_of(training, is_process=True, is_measured=False) == MEASURING
    assert step_of(training, is_process=True, is_measured=True) == TRAINING


def test_one_step_is_marked_and_the_steps_before_it_are_done() -> None:
    drawn = steps_of(IMAGES)
    assert (drawn.count('class="done"'), drawn.count('class="now"'), drawn.count('class="later"')) == (2, 1, 2)
    assert f'<li class="now" aria-current=step>{STEPS[IMAGES]}</li>' in drawn
