"""The line above Lab's map: epoch, score, time left and Stop; after a run the flip of the map."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import streamlit as st

from pages.parts.train.flip import epoch_key, flip_key
from pages.parts.train.measures import curves_of
from pages.parts.train.served_curves import lost_words
from pages.parts.train.status_strip import cells_of, progress_line, score_of, share_of, strip_of
from tests.app.opening import opened, texts
from tests.running import worked
from udml_core.exploration.race import Race, Setup
from udml_core.runs import Run
from udml_core.runs.analyses import create_analysis, plan_analysis
from udml_core.runs.analyses.kinds.advice import Advice
from udml_core.runs.tasks import Status
from udml_core.work import jobs

FIELDS = {"dimension": 16, "epochs": 3}
LINK = {"dataset": "digits", "method": "rpml", "backbone": "pixels", "split": "seen", "fields": "dimension:16,epochs:3"}


@pytest.fixture
def run(root: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("UDML_RUNS", str(root))
    return worked(root, fields=FIELDS)


def test_the_line_escapes_its_words_and_draws_the_finished_share() -> None:
    line = strip_of([("Epoch", "3 <of> 12", "")], 0.25)
    assert "3 &lt;of&gt; 12" in line
    assert 'aria-valuenow="25"' in line
    assert "width: 25.0%" in line
    assert "bar" not in strip_of([], None)


def test_a_run_that_trains_says_epoch_score_and_time(run: Run) -> None:
    status = Status(state="running", phase="training", epoch=1, epochs=3)
    (epoch, score, left) = cells_of(run, status, 2)
    assert epoch == ("Epoch", "2 of 3", ""), "the epoch that the map shows"
    value = next(row["sample map@r"] for row in run.metrics()[0] if row["epoch"] == 2)
    assert score[:2] == ("Whole group found", f"{100 * value:.1f} %")
    assert score[2].startswith("PCA ")
    assert left == ("Results in", "not known yet", "the first training here measures it"), "nothing else is promised"
    assert share_of(status) == pytest.approx(1 / 3)


def test_the_line_follows_the_map_and_says_in_words_that_the_training_is_ahead(
        run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    status = Status(state="running", phase="training", epoch=2, epochs=3)
    assert cells_of(run, status, 0.4, 2)[0] == ("Epoch shown", "0.4 of 3", "training is at 2")
    assert cells_of(run, status, 2, 2)[0] == ("Epoch", "2 of 3", "")
    measured = Status(state="running", phase="evaluation", epoch=3, epochs=3)
    monkeypatch.setattr(jobs, "training_left", lambda *_: None)
    cells = cells_of(run, measured, 1, 3)
    assert cells[0] == ("Trained, showing", "epoch 1 of 3", "")
    assert cells[-1] == ("Results follow after", "evaluation", "")
    monkeypatch.setattr(jobs, "training_left", lambda *_: 40.0)
    assert cells_of(run, measured, 1, 3)[-1] == ("Results in", "about 45 s", "")
    monkeypatch.setattr(jobs, "judging_seconds", lambda *_: 30.0)
    assert cells_of(run, measured, 1, 3)[-1] == ("Results in", "about 45 s", "then 30 s for the judges")
    assert cells[1:-1] == score_of(run, 1), "the score of the shown epoch"
    done = Status(state="done", epoch=3, epochs=3)
    assert cells_of(run, done, 2, 3)[0] == ("Trained, showing", "epoch 2 of 3", "")
    assert cells_of(run, done, 2, 3, is_moving=False) == score_of(run, 2), "the slider names the epoch of a map at rest"


def test_a_run_that_starts_says_when_its_results_come_else_when_its_step_ends(
        run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    status = Status(state="running", phase="features of 4 views", share=0.5, phase_started=100.0, heartbeat=130.0)
    monkeypatch.setattr(jobs, "start_left", lambda *_: None)
    assert progress_line(run, status) == "Features of 4 views, about 30 s left in this step", "no later time is known"
    assert [cell[:2] for cell in cells_of(run, status, None)] == [
        ("Starting, step 3 of 5", "Compute features of 4 views"), ("This step", "about 30 s left")]
    monkeypatch.setattr(st, "session_state", {})  # which a page without a session does not keep
    monkeypatch.setattr(jobs, "start_left", lambda *_: 75.0)
    assert progress_line(run, status) == "Features of 4 views, results in about 75 s"
    assert cells_of(run, status, None)[1][:2] == ("Results in", "about 75 s")
    assert cells_of(run, status, None)[1][2].endswith(" so far"), "the elapsed time stands beside it"
    monkeypatch.setattr(jobs, "start_left", lambda *_: 300.0)
    assert cells_of(run, status, None)[1][1] == "more than 75 s", "an estimate that jumps is not shown at once"


@pytest.mark.parametrize(("gain", "word"), [
    (0.00881, "better so far"), (-0.00881, "worse so far"), (0.004, "no clear difference so far")])
def test_a_gain_that_another_encoder_sees_is_a_verdict_and_no_bare_number(
        run: Run, monkeypatch: pytest.MonkeyPatch, gain: float, word: str) -> None:
    rows: list[dict[str, float]] = [{"epoch": 1, "second opinion": gain, "second opinion error": 0.002},
                                    {"epoch": 1.5, "effective rank": 106.0}]
    monkeypatch.setattr("pages.parts.train.status_strip.rows_of_moments", lambda _: rows)
    assert score_of(run, 1) == [], "the verdict of all judges stands beside the map then"
    monkeypatch.setattr(Run, "stored_status", lambda _: Status(state="running"))
    assert score_of(run, 1) == score_of(run, 1.5) == [("Whole group", word, "")]
    rows[0]["epoch"] = 0
    before = f"{word.removesuffix(' so far')} before training"
    assert score_of(run, 1)[0][1] == before, "which is no news of the training"
    rows[0]["epoch"] = 1
    assert score_of(run, 0) == []
    del rows[0]["second opinion error"]
    assert score_of(run, 1) == [], "a gain in similarity has no unit: its curve alone shows it"


def test_the_line_and_the_curves_show_what_the_newest_race_served(run: Run, root: Path) -> None:
    frozen = worked(root, method="frozen", split="all")
    st.cache_data.clear()
    assert (score_of(run, 1)[0][0], curves_of(run)[0]) == ("Whole group found", "sample map@r")
    race = Race(serves="first", budget=2, start=Setup(backbone="pixels"), run=frozen.id, outcomes=())
    create_analysis(frozen, plan_analysis(Advice, budget=2.0, serves="first"), state="done",
                    result={"race": np.array(race.model_dump_json())})
    st.cache_data.clear()
    assert (score_of(run, 1)[0][0], curves_of(run)[0]) == ("First result right", "sample recall@1")
    st.cache_data.clear()


@pytest.mark.parametrize(("values", "words"), [
    ([0.0, 0.01, 0.02], ""), ([0.0, 0.02, 0.0201], ""), ([0.0], ""),
    ([0.0, 0.03, 0.01], "Longer training lost some of it: epoch 1 was better than epoch 2."),
    ([0.02, 0.01], "Longer training lost some of it: the start, before training, was better than epoch 1."),
    ([0.0, 0.02, 0.018], "Longer training changed little: epoch 1 and epoch 2 differ by no more than chance.")])
def test_a_curve_whose_best_epoch_is_not_the_last_says_so(values: list[float], words: str) -> None:
    rows = [{"epoch": epoch, "second opinion": value, "second opinion error": 0.002} for epoch, value in
            enumerate(values)]
    assert lost_words([*rows, {"epoch": 0.5, "second opinion": 9.0}], "second opinion") == words
    level = [{"epoch": at, "second opinion": 0.05 + 0.001 * at, "second opinion error": 0.002} for at in (0, 1, 2)]
    assert lost_words(level, "second opinion") == (
        "Training changed little: the start, before training, and epoch 2 differ by no more than chance.")
    assert lost_words([{"epoch": 0, "loss": 2.0}, {"epoch": 1, "loss": 1.0}], "loss") == "", "a loss falls"


def test_lab_says_below_the_curve_that_longer_training_lost_some_of_it(
        run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pages.parts.train.measures.rows_of_moments", lambda _: [
        {"epoch": 1, "sample map@r": 0.5}, {"epoch": 2, "sample map@r": 0.4}])
    assert "Longer training lost some of it: epoch 1 had 50.0 %, epoch 2 has 40.0 %." in texts(
        opened("train", dataset="digits", live=run.id))


def test_without_a_score_the_line_has_none(run: Run) -> None:
    assert score_of(run, None) == []
    assert cells_of(run, Status(state="waiting"), None)[0][0].startswith("Starting, step 1 of 5")
    assert share_of(run.status()) is None, "no bar after the end"


def test_the_map_flips_between_raw_pixels_start_and_result(run: Run) -> None:
    test = opened("train", live=run.id, **LINK)
    control = next(control for control in test.segmented_control if control.label == "Map")
    assert control.options == ["Raw pixels", "Start", "After training"]
    slider = test.select_slider(key=epoch_key(run))
    assert (control.value, slider.value) == ("result", 3)
    control.set_value("start").run()
    assert test.select_slider(key=epoch_key(run)).value == 0
    assert "raw pixels, 1,000 images" not in drawn(test)
    next(control for control in test.segmented_control if control.label == "Map").set_value("raw").run()
    assert "raw pixels, 1,000 images" in drawn(test)
    assert "Nearest images by raw pixels" in texts(test)
    test.select_slider(key=epoch_key(run)).set_value(1).run()
    assert test.session_state[flip_key(run)] is None
    assert "after epoch 1, 1,000 images" in drawn(test)


def test_a_stopped_run_flips_to_its_last_epoch(run: Run) -> None:
    run.write_status(Status(state="stopped", message="Stopped.", epoch=2, epochs=3))
    test = opened("train", live=run.id, **LINK)
    assert not test.exception
    control = next(control for control in test.segmented_control if control.label == "Map")
    assert control.options == ["Raw pixels", "Start", "After epoch 3"]
    assert "Stopped" in texts(test)


def drawn(test: object) -> str:
    return str([element.proto for element in test.get("bidi_component")])  # type: ignore[attr-defined]
