"""The stages in which images are prepared: they follow each other, and their bar never falls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.running import spec, write_digits
from udml_core.data.given.exclusions import exclude
from udml_core.runs import Run, create_run
from udml_core.runs.analyses import create_analysis
from udml_core.runs.tasks import Status
from udml_core.work.jobs.follow_ups import AUDIT, want
from udml_core.work.jobs.stages import Stage, stage_of
from udml_core.work.workers import train as worker
from udml_core.work.workers.execute import Reporter


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    folder = write_digits(tmp_path / "photos", 40, by_class=False)
    return create_run(spec(method="frozen", dataset=str(folder), split="all"), tmp_path / "runs")


def test_the_stages_of_a_real_run_only_rise_and_the_audit_is_the_last(
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
    assert list(dict.fromkeys(numbers)) == [1, 2, 3, 4]
    assert {stage.count for stage in seen} == {5}
    assert all(0 <= stage.share <= 1 for stage in seen)
    assert {"hashes of the images", "quality of the images"} <= {stage.detail for stage in seen if stage.number == 1}
    audit = create_analysis(run, AUDIT)
    last = stage_of(audit, Status(state="running", phase="comparing hashes", share=0.5))
    assert last == Stage(5, 5, "comparing all images", "", 0.9)


def test_a_preparation_without_images_that_were_excluded_meanwhile_goes_on_after_the_features(
        run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stage_of(run, Status()).number == 1
    worker.work(run, analyse=False)
    exclude(run.dataset(), [3, 4])
    renewed = create_run(spec(method="frozen", dataset=run.spec().dataset, split="all"), run.folder.parent)
    assert renewed.spec().excluded.count == 2
    assert stage_of(renewed, Status()).words == "Step 3 of 4, preparing the search"
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
