"""The line about a race at the end of the sidebar: on every page while it runs, and once when it has ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.shell import race_line
from pages.parts.shell.race_line import progress_words, training_words
from tests.app.opening import opened, switched
from tests.app.test_advice_page import SPEC, outcomes
from tests.running import worked
from udml_core.exploration.race import Race, Setup
from udml_core.exploration.race_clock import RaceProgress, left_words
from udml_core.runs import Run, runs_folder
from udml_core.runs.analyses import Analysis, create_analysis
from udml_core.runs.analyses.kinds.advice import WAITING_WORDS, Advice
from udml_core.runs.tasks import Status
from udml_core.work.jobs.advising import TRIAL
from udml_core.work.jobs.live_races import LiveRace, LiveTraining

PHASE = "judge looks at the images: A · 30 of 90 · 1:40 of 2:00 min, 0:20 of its time left"


@pytest.fixture(autouse=True)
def _looks_at_once() -> None:
    race_line._races_now.clear()


@pytest.fixture
def race() -> Iterator[Analysis]:
    """A race on the digits that runs until its lock is released."""
    run = worked(runs_folder(), method="frozen", split="all")
    analysis = create_analysis(run, SPEC)
    analysis.write_status(Status(state="running", started=time.time(), share=0.4, phase=PHASE))
    with analysis.lock().acquire():
        yield analysis


def links(test: AppTest) -> dict[str, str]:
    """Return the links in the sidebar, the address of each by its label."""
    return {link.proto.label.replace("\\", ""): link.proto.query_string for link in test.sidebar.get("page_link")}


def line(test: AppTest) -> str:
    """Return the text below the link."""
    return next((element.proto.body for element in test.sidebar.get("html") if "race-line" in element.proto.body), "")


def finish(analysis: Analysis, rows: int = 2) -> None:
    race = Race(serves="groups", budget=2, start=Setup(backbone="pixels"), run=analysis.run.id,
                outcomes=tuple(outcomes(analysis.run)[:rows]))
    analysis.write_result({"race": np.array(race.model_dump_json())})
    analysis.write_status(Status(state="done"))


@pytest.mark.parametrize("page", ["home", "retrieval", "train", "runs", "explore", "data"])
def test_every_page_shows_the_progress_of_a_race_with_a_link_to_it(page: str, race: Analysis) -> None:
    test = opened(page)
    assert not test.exception
    address = links(test)["Finding the best search"]
    assert set(address.split("&")) == {"dataset=digits", "view=advice", "budget=2", "serves=groups"}
    assert "40 %, 0:20 of its time left" in line(test)


def test_the_page_of_the_race_has_no_second_line_about_it(race: Analysis) -> None:
    assert not links(opened("data", dataset="digits", view="advice", budget="2", serves="groups"))
    assert links(opened("data", dataset="fashion-mini", view="advice")), "other images"


def test_the_end_of_a_race_is_said_in_a_message_and_marked_until_the_race_is_looked_at(race: Analysis) -> None:
    test = opened("home")
    finish(race)
    test.run()
    said = "The race has ended: the best search is the refined search."
    address = links(test)[said]
    assert "view=advice" in address
    assert "Finding the best search" not in links(test)
    assert [toast.value.replace("\\", "") for toast in test.toast] == [said]
    (mark,) = (link.proto.icon for link in test.get("page_link") if link.proto.label.replace("\\", "") == said)
    assert mark == ":material/new_releases:"
    for page in ("runs", "learn"):
        assert said in links(switched(test, page)), "it stays until the race is looked at"
        assert not test.toast, "once is enough"
    test.query_params.update(dataset="digits", view="advice", budget="2", serves="groups")
    switched(test, "data")
    test.query_params.clear()
    assert not links(switched(test, "home"))


def test_the_end_of_a_race_stays_a_while_when_the_page_changes_at_that_moment(race: Analysis) -> None:
    test = opened("home")
    finish(race, rows=1)
    assert "The race has ended: nothing is better, keep the plain search." in links(switched(test, "runs"))
    assert links(switched(test, "learn"))


def test_the_page_of_a_race_says_its_end_itself(race: Analysis) -> None:
    test = opened("home")
    finish(race)
    test.query_params.update(dataset="digits", view="advice", budget="2", serves="groups")
    assert not links(switched(test, "data"))
    test.query_params.clear()
    assert not links(switched(test, "home"))


def test_a_race_that_was_stopped_says_so(race: Analysis) -> None:
    test = opened("home")
    race.write_status(Status(state="stopped"))
    assert "The race was stopped." in links(test.run())


def test_a_race_with_a_run_that_was_removed_is_forgotten(race: Analysis) -> None:
    test = opened("home")
    (race.run.folder / "spec.json").unlink()
    assert not links(test.run())
    assert not test.exception


def test_pages_without_a_race_look_for_one_every_few_seconds_only(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Any] = []
    monkeypatch.setattr(race_line, "live_races", lambda root: looks.append(root) or [])
    test = opened("home")
    for page in ("runs", "learn", "home"):
        switched(test, page)
    assert len(looks) == 1
    assert not links(test)


@pytest.mark.parametrize(("status", "words"), [
    (Status(state="waiting"), "starting"),
    (Status(state="running", share=0.3, phase=WAITING_WORDS), "waits while another run trains"),
    (Status(state="running", phase="reading the folder · 1,594 of 1,594"), "0 %, starting"),
    (Status(state="running", share=0.99, phase="trying PLM · 5:10 min, finishing"), "99 %, finishing")])
def test_the_line_says_what_a_race_waits_for_and_what_is_left(status: Status, words: str) -> None:
    run: Run = worked(runs_folder(), method="frozen", split="all")
    race = LiveRace(Advice(budget=2.0, serves="groups"), SPEC, run)
    assert progress_words(race, Status(share=0.34)) == "preparing, 34 %"
    create_analysis(run, SPEC)
    assert progress_words(race, status) == words
    assert progress_words(race, Status(state="waiting"), others=1) == "waits for another race"


def test_the_time_left_is_read_as_a_race_reports_it() -> None:
    phases: list[str] = []
    seconds = [0.0]
    progress = RaceProgress(lambda _share, phase: phases.append(phase), lambda: seconds[0], 120.0)
    progress(0.0, "judge looks at the images: A · 30 of 90")
    progress.announce("whitening", 50.0, 20.0)
    seconds[0] = 119.5
    progress(0.0, "choosing the next candidate")
    assert [left_words(phase) for phase in phases] == ["2:00 of its time left", "about 2 min left", "finishing"]


@pytest.fixture
def training() -> Iterator[Run]:
    """A training on the digits that runs until its lock is released."""
    run = worked(runs_folder(), method="pca", split="all", fields={"dimension": 4})
    run.write_status(Status(state="running", phase="training", epoch=1, epochs=4, share=0.0, ticket=time.time()))
    with run.lock().acquire():
        yield run


def test_a_training_that_the_user_left_is_followed_until_its_end_was_looked_at(training: Run) -> None:
    test = opened("home")
    assert not test.exception
    (label,) = [of for of in links(test) if of.startswith("Training PCA on ")]
    assert f"live={training.id}" in links(test)[label]
    assert ">25 %<" in line(test)
    assert not links(opened("train", dataset="digits", live=training.id)), "Lab shows it itself"
    training.write_status(Status(state="done"))
    said = "The training has ended: PCA."
    assert [toast.value.replace("\\", "") for toast in test.run().toast] == [said]
    assert f"live={training.id}" in links(test)[said]
    assert said in links(switched(test, "runs")), "it stays until Lab is opened with it"
    test.query_params.update(dataset="digits", live=training.id)
    assert not links(switched(test, "train"))


def test_a_race_comes_before_a_training_in_the_one_line(race: Analysis, training: Run) -> None:
    assert list(links(opened("home"))) == ["Finding the best search"]


def test_trials_of_a_race_have_no_line(training: Run) -> None:
    training.write_notes(training.notes().model_copy(update={"tags": (TRIAL,)}))
    assert not links(opened("home"))


def test_the_line_says_what_a_training_waits_for_and_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    run: Run = worked(runs_folder(), method="pca", split="all", fields={"dimension": 4})
    status = Status(state="running", phase="training", epoch=2, epochs=4)
    assert training_words(LiveTraining(run), Status(state="waiting")) == "waits for another run"
    assert training_words(LiveTraining(run), status) == "50 %"
    monkeypatch.setattr("udml_core.work.jobs.training_left", lambda *_: 20.0)
    assert training_words(LiveTraining(run), status) == "about 20 s left"
