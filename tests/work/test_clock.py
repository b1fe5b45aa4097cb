"""A computer whose clock goes back by an hour while runs wait and train."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pages.parts.shell.run_status import since
from tests.running import spec, suspended, wait_for
from udml_core.data import speed
from udml_core.runs import create_run
from udml_core.runs.live_steps import is_watched, mark_watched
from udml_core.runs.tasks import TRAINING, Status
from udml_core.work import jobs
from udml_core.work.workers import train as worker

HOUR = 3600.0
LATER = 1_800_000_000.0
"""A time before which the clock went back by an hour."""


@pytest.mark.parametrize("phase", [TRAINING, "features"])
@pytest.mark.parametrize("share", [0.01, 0.5])
def test_no_time_left_is_shown_until_it_is_known(phase: str, share: float) -> None:
    status = Status(state="running", phase=phase, phase_started=LATER, heartbeat=LATER - HOUR + 9, share=share,
                    epochs=3)
    assert status.seconds_left is None
    after = status.model_copy(update={"epoch": 1, "epoch_seconds": 4.0})
    assert after.seconds_left == (pytest.approx((2 - share) * 4) if phase == TRAINING else None)
    usual = status.model_copy(update={"heartbeat": LATER + 9, "share": 0.5})
    assert usual.seconds_left == pytest.approx(45 if phase == TRAINING else 9)


def test_a_run_does_not_take_negative_time() -> None:
    assert since(Status(started=LATER, finished=LATER - HOUR)) == ""
    assert since(Status(started=LATER, finished=LATER + 5)) == "5 s"


def test_a_run_that_was_never_queued_does_not_wait_for_an_hour(tmp_path: Path) -> None:
    run = create_run(spec(method="frozen"), tmp_path)
    assert run.status().state == "waiting"
    run.write_status(run.stored_status().model_copy(update={"ticket": time.time() + HOUR}))
    assert run.status().state == "interrupted"
    run.queue({})
    assert run.status().state == "waiting"


def test_a_page_that_left_before_the_clock_went_back_does_not_watch(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = create_run(spec(method="frozen"), tmp_path)
    mark_watched(run)
    assert is_watched(run)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - HOUR)
    assert not is_watched(run)


@pytest.mark.parametrize("steady", [3, 5, 7, 9, 11])
def test_a_run_ends_and_no_negative_speed_is_kept(steady: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                                  ) -> None:
    """Steady: calls before the clock goes back by an hour."""
    run = create_run(spec(), tmp_path)
    now, calls = time.time(), [0]

    def going_back() -> float:
        calls[0] += 1
        return now + calls[0] * 0.01 - (HOUR if calls[0] > steady else 0)

    monkeypatch.setattr(time, "time", going_back)
    worker.work(run)
    monkeypatch.undo()
    assert run.status().state == "done"
    assert [row["epoch"] for row in run.metrics()[0]] == [0, 1, 2]
    assert all(value > 0 for values in speed._read().values() for value in values)


def test_a_worker_is_stopped_although_its_start_seems_an_hour_off(tmp_path: Path) -> None:
    run = jobs.submit(spec(fields={"dimension": 16, "epochs": 400}), tmp_path)
    wait_for(run, "running")
    with suspended(run):  # so that it cannot stop by itself
        status = run.stored_status()
        run.write_status(status.model_copy(update={"pid_born": status.pid_born + HOUR}))
        began = time.monotonic()
        assert jobs.stop(run).state == "stopped"
        assert time.monotonic() - began < 60
    assert not run.is_alive()
