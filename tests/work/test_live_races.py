"""Races that run or wait, as every page follows them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.running import worked
from udml_core.data import catalog
from udml_core.runs import Run
from udml_core.runs.analyses import create_analysis, plan_analysis
from udml_core.runs.analyses.kinds.advice import Advice
from udml_core.runs.tasks import Status
from udml_core.work import jobs
from udml_core.work.jobs.advising import start_advice
from udml_core.work.jobs.live_races import live_races, other_live_races

SPEC = plan_analysis(Advice, budget=2.0, serves="groups")
OTHER = plan_analysis(Advice, budget=5.0, serves="first")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def test_a_race_is_followed_from_the_wait_for_its_features_to_its_end(root: Path, monkeypatch: pytest.MonkeyPatch
                                                                     ) -> None:
    tasks: list[Any] = []
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", lambda task, *_: tasks.append(task))
    digits = catalog.load("digits")
    start_advice(digits, jobs.encoder_of(digits, "pixels"), SPEC, root)
    (race,) = live_races(root)
    assert (race.run, race.spec, race.started) == (tasks[0], SPEC, None)
    assert race.status() == race.run.status(), "while it waits for its features"
    race.run.write_status(Status(state="failed"))
    assert not race.goes_on(), "without features there is no race"
    race.run.write_status(Status(state="done"))
    assert race.goes_on(), "the worker starts it in a moment"
    jobs.start_wanted(root)
    assert live_races(root) == [race], "the same race, which is now on its way"
    race.analysis.write_status(Status(state="running", started=7.0, share=0.5))
    with race.analysis.lock().acquire():
        assert live_races(root) == [race]
        assert (race.started, race.status().share) == (7.0, 0.5)
    race.analysis.write_status(Status(state="stopped"))
    assert not race.goes_on()
    assert not live_races(root)


def test_the_race_that_runs_comes_before_races_that_wait(root: Path) -> None:
    run: Run = worked(root, method="frozen", split="all")
    create_analysis(run, SPEC)
    running = create_analysis(run, OTHER)
    running.write_status(Status(state="running", started=time.time(), ticket=1.0))
    with running.lock().acquire():
        assert [race.spec for race in live_races(root)] == [OTHER, SPEC]
        digits, encoder = catalog.load("digits"), run.spec().encoder
        assert [race.spec for race in other_live_races(digits, encoder, SPEC, root)] == [OTHER]
    assert [race.spec for race in live_races(root)] == [SPEC], "the worker is dead"
