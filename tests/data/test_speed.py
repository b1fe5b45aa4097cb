"""Steps that say nothing themselves report the share of the time that they took before."""

from __future__ import annotations

import threading

import pytest

from udml_core.data import speed
from udml_core.data.speed import measured_speed, measured_step


def test_a_measured_step_reports_its_share_by_earlier_times_and_keeps_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    now, told = [0.0], list[tuple[float, str]]()
    monkeypatch.setattr(speed.time, "monotonic", lambda: now[0])

    def run(kind: str, seconds: float) -> list[float]:
        told.clear()
        ticked = threading.Event()

        def report(share: float, step: str) -> None:
            told.append((share, step))
            if len(told) > 1:
                ticked.set()

        with measured_step(report, "comparing", kind, 20):
            now[0] += seconds
            assert ticked.wait(10)
        assert {step for _, step in told} == {"comparing"}
        return [share for share, _ in told[:2]]

    assert run("a first time", 4.0) == [0.0, 0.0], "nothing was measured yet"
    assert measured_speed("a first time") == 0.2, "for an image"
    assert run("a first time", 1.0) == [0.0, 0.25]
    assert run("a first time", 90.0) == [0.0, 0.99], "it takes longer than it took before"


def test_a_step_that_fails_measures_nothing() -> None:
    with pytest.raises(ValueError, match="broken"), measured_step(lambda *_: None, "comparing", "a failure", 20):
        raise ValueError("broken")
    assert measured_speed("a failure") is None
