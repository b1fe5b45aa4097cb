"""The stages in which images are prepared: they follow each other, and their bar never falls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.running import spec, write_digits
from udml_core.base.paths import dataset_cache
from udml_core.data import catalog
from udml_core.data.given.exclusions import exclude
from udml_core.data.speed import measured_speed, record_speed
from udml_core.exploration import duplicates
from udml_core.exploration.duplicates import check_pairs
from udml_core.runs import Run, create_run
from udml_core.runs.analyses import analysis_at
from udml_core.runs.tasks import Status
from udml_core.work.jobs.estimate import evaluation_kind, follow_kind
from udml_core.work.jobs.follow_ups import AUDIT, want, wants
from udml_core.work.jobs.stages import (
    FEATURES,
    MAP,
    SEARCH,
    STAGES,
    Promise,
    Stage,
    expected_seconds,
    promise_of,
    stage_of,
)
from udml_core.work.workers import train as worker
from udml_core.work.workers.execute import Reporter


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    folder = write_digits(tmp_path / "photos", 40, by_class=False)
    return create_run(spec(method="frozen", dataset=str(folder), split="all"), tmp_path / "runs")


def test_the_stages_of_a_real_run_only_rise_and_the_audit_follows_the_features(
        run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    want(run, "audit")
    seen: list[Stage] = []
    change = Reporter.change

    def watched(reporter: Reporter, **values: Any) -> None:
        change(reporter, **values)
        if reporter.status.state == "running":
            seen.append(stage_of(run, reporter.status))

    monkeypatch.setattr(Reporter, "change", watched)
    worker.work(run)
    monkeypatch.undo()
    numbers = [stage.number for stage in seen]
    assert numbers == sorted(numbers)
    assert list(dict.fromkeys((stage.number, stage.name) for stage in seen)) == list(enumerate(STAGES, 1))
    assert {stage.count for stage in seen} == {5}
    assert all(0 <= stage.share <= 1 for stage in seen)
    assert {"hashes of the images", "quality of the images"} <= {stage.detail for stage in seen if stage.number == 1}
    audit = analysis_at(run, AUDIT)
    assert audit.is_done()
    assert not wants(run, "audit")
    alone = stage_of(audit, Status(state="running", phase="comparing hashes", share=0.5))
    assert alone == Stage(1, 1, "comparing all images", "", 0.5)
    assert alone.words == "Comparing all images"


def test_a_preparation_without_images_that_were_excluded_meanwhile_goes_on_after_the_features(
        run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stage_of(run, Status()).number == 1
    worker.work(run, analyse=False)
    exclude(run.dataset(), [3, 4])
    renewed = create_run(spec(method="frozen", dataset=run.spec().dataset, split="all"), run.folder.parent)
    assert renewed.spec().excluded.count == 2
    assert stage_of(renewed, Status()).words == "Step 3 of 4, preparing the search again, without 2 images"
    seen: list[Stage] = []
    computed: list[int] = []
    change = Reporter.change

    def watched(reporter: Reporter, **values: Any) -> None:
        change(reporter, **values)
        if reporter.status.state == "running":
            seen.append(stage_of(renewed, reporter.status))

    monkeypatch.setattr(Reporter, "change", watched)
    monkeypatch.setattr("udml_core.data.features.inference_of", lambda *_, **given: computed.append(given["count"]))
    assert worker.work(renewed, analyse=False).state == "done"
    assert not computed, "no feature is computed again"
    numbers = [stage.number for stage in seen]
    assert set(numbers) == {3}
    shares = [stage.share for stage in seen]
    assert min(shares) >= 0.5


def test_without_an_audit_the_map_is_the_last_stage(run: Run) -> None:
    found = stage_of(run, Status(state="running", phase="features · 34 images per second", share=0.5))
    assert found.words == "Step 2 of 4, computing the features: 34 images per second"
    assert found.share == 0.375
    assert stage_of(run, Status(phase="")).words == "Step 1 of 4, reading the files"
    assert stage_of(run, Status(phase="joining neighbors", searchable=True)).number == 4
    assert stage_of(run, Status(phase="evaluation", searchable=True)).number == 3


UNEVEN = ((5.13, 0.081), (7.46, 0.121), (9.13, 0.161), (10.42, 0.201), (13.05, 0.242), (14.47, 0.282), (16.11, 0.362),
          (18.14, 0.443), (19.34, 0.524), (20.69, 0.644), (22.09, 0.765), (23.76, 0.886), (24.93, 0.967))
"""Seconds and finished shares of an audit of 1,589 photographs on a machine that had other work, too."""
BEGAN, TOOK = 3.64, 25.48


def test_a_time_left_never_rises_and_never_promises_less_than_a_stage_takes() -> None:
    promise, shown = None, []
    for second, share in UNEVEN:
        status = Status(state="running", phase="comparing", share=share, phase_started=BEGAN, heartbeat=second)
        promise = promise_of(("audit", 5), status, second, promise)
        assert promise is not None
        shown.append(promise.left_words(second))
        assert promise.end >= TOOK
    said = [int(words.split()[1]) for words in shown]
    assert said == sorted(said, reverse=True)
    assert len(set(said)) > 4
    slow = Status(state="running", phase="comparing", share=0.5, phase_started=0.0, heartbeat=1000.0)
    late = promise_of(("audit", 5), slow, 1000.0, promise)
    assert late is not None
    assert late.left_words(1000.0) == "longer than expected, about 17 min left in this step"
    assert promise_of(("audit", 4), slow, 1000.0, promise) == Promise(("audit", 4), 2450.0), "another stage"
    assert promise_of(("audit", 5), Status(state="running"), 1000.0, None) is None


def test_the_first_images_promise_no_more_than_what_was_measured_before_them() -> None:
    early = Status(state="running", phase="features", share=0.1, phase_started=0.0, heartbeat=5.0)
    alone = promise_of(("run", 2), early, 5.0, None)
    bound = promise_of(("run", 2), early, 5.0, None, bound=40.0)
    assert alone is not None
    assert bound is not None
    assert alone.end > 100, "by a tenth of the images"
    assert bound.end == 55, "by the 20 images that were measured"
    late = Status(state="running", phase="features", share=0.5, phase_started=0.0, heartbeat=40.0)
    assert promise_of(("run", 2), late, 40.0, None, bound=1.0) == promise_of(("run", 2), late, 40.0, None), (
        "its own pace says more by then")


def test_search_and_map_have_a_time_left_by_earlier_ones_and_at_first_by_the_share(run: Run, tmp_path: Path) -> None:
    def stage(name: str) -> Stage:
        return Stage(3, 5, name, "", 0.5)

    assert [expected_seconds(run, stage(name), 40) for name in (SEARCH, MAP)] == [None, None]
    early = Status(state="running", phase="embedding", share=0.9, phase_started=0.0, heartbeat=1.0)
    assert promise_of(("run", 3), early, 1.0, None) is None, "a small part of its stage"
    first = Status(state="running", phase="evaluation", share=0.25, phase_started=0.0, heartbeat=6.0)
    promise = promise_of(("run", 3), first, 6.0, None)
    assert promise is not None
    assert promise.end >= 24.0, "the first of four comparisons takes longest"
    worker.work(run)
    for name, kind in ((SEARCH, evaluation_kind), (MAP, follow_kind)):
        seconds = measured_speed(kind(run.spec()))
        assert seconds is not None
        assert expected_seconds(run, stage(name), 40) == seconds
        others = write_digits(tmp_path / f"others {name}", 80, by_class=False)
        other = create_run(spec(method="frozen", dataset=str(others), split="all"), tmp_path / "runs")
        assert expected_seconds(other, stage(name), 80) == pytest.approx(2 * seconds)
    assert expected_seconds(run, stage(FEATURES), 40) is None
    promise = promise_of(("run", 3), early, 100.0, None, expected=8.0)
    assert promise == Promise(("run", 3), 110.0)
    assert promise_of(("run", 3), early, 105.0, promise, expected=8.0) == promise
    late = promise_of(("run", 3), early, 111.0, promise, expected=8.0)
    assert late is not None
    assert late.left_words(111.0) == "longer than expected"


def test_the_share_of_an_alignment_follows_what_images_and_pairs_took(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    dataset = catalog.load(str(write_digits(tmp_path / "photos", 40, by_class=False)))
    pairs = np.array([[left, right] for left in range(40) for right in range(left)])

    def shares() -> dict[str, float]:
        seen: dict[str, float] = {}
        (dataset_cache(dataset.fingerprint) / "aligned-32.npz").unlink(missing_ok=True)
        check_pairs(dataset, pairs, lambda share, step: seen.update({step: share}))
        return seen

    assert shares()["aligning pairs"] == 1.0
    assert measured_speed("aligned pair") is not None, "780 pairs are timed"
    assert measured_speed("aligned image") is None, "40 images are too few"
    assert duplicates._aligned_share(40, 0, pairs[:40, 0], pairs[:0]) == 1.0
    for kind, seconds in (("aligned image", 3.0), ("aligned pair", 1.0)):
        for _ in range(5):
            record_speed(kind, seconds)
    assert duplicates._aligned_share(10, 0, np.arange(10), pairs[:10]) == pytest.approx(0.75)
