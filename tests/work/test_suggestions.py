"""Quick and best settings, links to settings, and speeds measured on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.running import spec
from udml_core.base.paths import ASSETS
from udml_core.data import catalog
from udml_core.data.speed import measured_speed, record_speed
from udml_core.methods import METHODS, find_method
from udml_core.methods.base import MOST_MAIN
from udml_core.runs.tasks import Status
from udml_core.work import jobs
from udml_core.work.jobs import suggestions
from udml_core.work.jobs.estimate import (
    encoding_kind,
    epoch_kind,
    evaluation_kind,
    follow_kind,
    judging_kind,
    record_epoch,
    record_stage,
    start_kind,
    view_kind,
)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.card.name)
def test_a_form_shows_at_most_six_fields_first_and_every_field_once(method: Any) -> None:
    main, others = method.form_fields()
    assert len(main) <= MOST_MAIN
    assert sorted(main + others) == sorted(method.model_fields)


def test_a_quick_run_halves_the_epochs_until_a_minute_is_enough() -> None:
    def seconds(fields: Mapping[str, Any]) -> float:
        return 25.0 * fields.get("epochs", 0)

    assert suggestions.quick_fields(find_method("srpml"), seconds) == {"trains": "head", "kept_views": 2, "epochs": 2}
    assert suggestions.quick_fields(find_method("pca"), seconds) == {}
    assert suggestions.quick_fields(find_method("rpml"), lambda _: 999.0) == {"epochs": 1}
    assert suggestions.quick_fields(find_method("rpml"), lambda _: 1.0) == {}


def test_best_settings_are_allowed_and_rest_on_records() -> None:
    for entry in suggestions._read()["best"]:
        find_method(entry["method"]).make(entry["fields"])
        assert (ASSETS / "results" / f"{entry['record']}.json").exists()
    for kind in suggestions._read()["kind"].values():
        find_method(kind["method"])


def test_suggested_fields_fill_a_request_and_leave_what_the_user_set() -> None:
    dataset = catalog.load("digits")
    request = jobs.FIRST_RUN.make({"dataset": "digits", "method": "rpml", "backbone": "pixels", "split": "seen",
                                   "fields": {"alpha": 20.0, "dimension": 16}})
    best, words = jobs.apply_suggestion(request, "best", dataset)
    assert best.fields == {"alpha": 20.0, "dimension": 16, "beginning": "pca"}
    assert (best.preset, best.split) == ("default", "seen")
    assert words.startswith("beginning=pca. From the principal components")
    quick, words = jobs.apply_suggestion(request.make(dict(request) | {"method": "pca",
                                                                        "fields": {"dimension": 16}}), "quick", dataset)
    assert quick.fields == {"dimension": 16}
    assert words.startswith("default values. For a first look, not for results; about ")
    _, words = jobs.apply_suggestion(request.make(dict(request) | {"method": "nca"}), "best", dataset)
    assert words == "default values. No record varies NCA on such images with a gain."


def test_fields_of_a_link_are_read_as_they_were_written() -> None:
    values = {"alpha": 12.5, "dimension": 16, "unit_length": True, "weight": "concatenated"}
    assert jobs.read_fields(jobs.write_fields(values), find_method("rpml")) == values
    assert jobs.read_fields("alpha:12,alpha,x:1,epochs:0,:,weight:none", find_method("rpml")) == {"alpha": 12.0}


def test_a_link_of_the_papers_settings_holds_only_what_differs() -> None:
    request = {"method": "ssdml", "dataset": "fashion-mini", "preset": "paper", "fields": {"epochs": 3}}
    planned = jobs.plan(jobs.FIRST_RUN.make(request), catalog.load("fashion-mini"))
    link = jobs.link_of(planned, "gray")
    assert (link["preset"], link["fields"]) == ("paper", "epochs:3")


def test_the_median_of_the_newest_measurements_counts() -> None:
    assert measured_speed("image x") is None
    for value in (100.0, 100.0, 1.0, 2.0, 3.0, 4.0, 5.0):
        record_speed("image x", value)
    assert measured_speed("image x") == 3.0
    assert measured_speed("image y") is None


def test_an_estimate_uses_the_speeds_of_this_machine() -> None:
    """An epoch that took twice the expected time, 0.5 s an image, and 0.25 s a view."""
    dataset = catalog.load("digits")
    planned = spec("plm", fields={"dimension": 8, "epochs": 4}, backbone="cnn", seed=93, split="all")
    before = jobs.estimate(planned, dataset)
    assert not before.measured
    record_epoch(planned, 1797, 2 * before.training_seconds / 4)
    record_speed(encoding_kind(planned), 0.5)
    assert not jobs.estimate(planned, dataset).measured, "its views were never measured"
    record_speed(view_kind(planned), 0.25)
    record_speed(evaluation_kind(planned), 3.0)
    assert not jobs.estimate(planned, dataset).measured, "no process was started"
    record_speed(start_kind(planned), 2.0)
    record_speed(follow_kind(planned), 1.0)
    after = jobs.estimate(planned, dataset)
    assert after.measured
    assert after.seconds == pytest.approx(after.feature_seconds + after.training_seconds + 3 + 2 + 1)
    assert after.training_seconds == pytest.approx(2 * before.training_seconds)
    views = planned.build_method().views_needed
    assert after.feature_seconds == pytest.approx(1797 * (0.5 + 0.25 * views))
    assert views == 4, "PLM's views count in the features"


def test_the_time_left_counts_what_follows_the_training_and_only_measured_times() -> None:
    planned = spec("pca", fields={"dimension": 8}, backbone="pixels", seed=94)
    status = Status(state="running", phase="training", epoch=2, epochs=10, epoch_seconds=4.0)
    assert jobs.training_left(planned, status) is None, "its evaluation was never measured"
    record_speed(evaluation_kind(planned), 5.0)
    assert jobs.training_left(planned, status) == pytest.approx(8 * 4 + 5)
    record_speed(follow_kind(planned), 2.0)
    assert jobs.training_left(planned, status) == pytest.approx(8 * 4 + 5 + 2)
    assert jobs.training_left(planned, status.model_copy(update={"epoch_seconds": None})) is None
    evaluated = status.model_copy(update={"phase": "evaluation", "phase_started": 100.0, "heartbeat": 103.0})
    assert jobs.training_left(planned, evaluated) == pytest.approx(5 - 3 + 2)
    assert jobs.training_left(planned, evaluated.model_copy(update={"heartbeat": 120.0})) == pytest.approx(2)
    assert jobs.training_left(planned, evaluated.model_copy(update={"phase": "graph", "heartbeat": 101.0})) == (
        pytest.approx(1))
    assert jobs.training_left(planned, status.model_copy(update={"phase": "starting"})) is None


def test_the_judges_take_time_only_where_no_labels_judge() -> None:
    labeled = catalog.load("digits")
    unlabeled = replace(labeled, labels=None)
    planned = spec("pca", fields={"dimension": 8}, backbone="pixels", seed=96)
    assert jobs.judging_seconds(planned, unlabeled) == 0, "it was never measured"
    record_stage(judging_kind(planned), 30.0, len(labeled))
    assert jobs.judging_seconds(planned, unlabeled) == pytest.approx(30)
    assert jobs.judging_seconds(planned, labeled) == 0
    assert jobs.judging_seconds(spec("frozen", backbone="pixels"), unlabeled) == 0, "no judge compares it with itself"
    other = planned.model_copy(update={"fingerprint": "other-images"})
    assert jobs.judging_seconds(other, unlabeled) == pytest.approx(30), "as each image of others took"
    assert jobs.estimate(planned, unlabeled).judging_seconds == pytest.approx(30)


def test_the_time_left_before_the_training_counts_all_that_follows_at_the_speed_of_this_run() -> None:
    dataset = catalog.load("digits")
    planned = spec("plm", fields={"dimension": 8, "epochs": 4}, backbone="cnn", seed=95, split="all")
    status = Status(state="running", phase="reading", started=100.0, heartbeat=104.0)
    record_epoch(planned, 1797, 3.0)
    for kind, seconds in ((encoding_kind, 0.01), (view_kind, 0.01), (evaluation_kind, 5.0), (start_kind, 6.0)):
        assert jobs.start_left(planned, dataset, status) is None, "not all of it was measured"
        record_speed(kind(planned), seconds)
    record_speed(follow_kind(planned), 2.0)
    features, views, later = 17.97, 4 * 17.97, 4 * 3 + 5 + 2
    assert jobs.start_left(planned, dataset, status) == pytest.approx(6 + features + views + later - 4)
    late = status.model_copy(update={"heartbeat": 1000.0})
    assert jobs.start_left(planned, dataset, late) == pytest.approx(later), "never less than what follows"
    slow = Status(state="running", phase="features · 5 images per second", share=0.25, share_started=0.05,
                  phase_started=100.0, started=100.0, heartbeat=200.0)
    assert jobs.start_left(planned, dataset, slow) == pytest.approx(375 + views + later)
    of_views = slow.model_copy(update={"phase": "features of 4 views"})
    assert jobs.start_left(planned, dataset, of_views) == pytest.approx(375 + later)
    for update in ({"epochs": 4}, {"searchable": True}, {"state": "waiting"}):
        assert jobs.start_left(planned, dataset, slow.model_copy(update=update)) is None


def test_a_machine_is_busy_if_more_tasks_wait_than_its_cores_can_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psutil.cpu_count", lambda: 2)
    for load, expected in ((3.9, False), (4.1, True)):
        monkeypatch.setattr("psutil.getloadavg", lambda load=load: (load, 0.0, 0.0))
        assert jobs.is_busy() is expected


def test_a_run_measures_its_own_speed(tmp_path: Path) -> None:
    from tests.running import trained

    run = trained(tmp_path / "runs")
    assert run.status().state == "done", run.status().message
    for kind in (epoch_kind, encoding_kind):
        measured = measured_speed(kind(run.spec()))
        assert measured is not None
        assert measured > 0
