"""Maps that are computed without a request after a run."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.running import spec, wait_for, worked, write_digits
from udml_core.base import locks
from udml_core.data.speed import measured_speed, record_speed
from udml_core.runs import Run, create_run
from udml_core.runs.analyses import Analysis, analysis_at, create_analysis, list_analyses, plan_analysis
from udml_core.runs.analyses.kinds.grid import Grid
from udml_core.runs.opinions import OF_RUN
from udml_core.runs.tasks import Status
from udml_core.work import jobs
from udml_core.work.jobs import follow_ups
from udml_core.work.jobs.estimate import image_kind_of, judging_kind
from udml_core.work.workers import analyse as analysis_worker
from udml_core.work.workers import follow_up as worker

FIELDS = {"dimension": 16, "epochs": 1, "steps": 2}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return worked(tmp_path_factory.mktemp("runs"), fields=FIELDS)


@pytest.fixture
def run(finished: Run, tmp_path: Path) -> Run:
    """A run that wants maps and has finished a minute ago."""
    run = Run(Path(shutil.copytree(finished.folder, tmp_path / "runs" / finished.id)))
    run.write_status(run.stored_status().model_copy(update={"finished": time.time() - 60}))
    jobs.follow_ups.want(run, "maps")
    return run


class Launched:
    """Stands in for a process that computes an analysis and ends at once."""

    def __init__(self, state: Any = "done") -> None:
        self.state = state
        self.order: list[str] = []

    def __call__(self, analysis: Analysis) -> Launched:
        self.order.append(analysis.spec().kind)
        if self.state == "done":
            analysis.write_result({})
        analysis.write_status(Status(state=self.state))
        return self

    def wait(self) -> None: ...


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> Launched:
    stand_in = Launched()
    monkeypatch.setattr(worker, "start_in_background", stand_in)
    monkeypatch.setattr(worker, "_lower_priority", lambda: None)
    monkeypatch.setattr(worker, "INTERVAL", 0.01)
    return stand_in


@pytest.mark.slow
def test_the_maps_of_a_run_are_computed_in_their_order_once(run: Run, launched: Launched) -> None:
    worker.work(run.folder.parent)
    assert launched.order == ["opinion", "umap", "grid", "opinion", "tsne"]
    assert not jobs.wants(run, "maps")
    worker.work(run.folder.parent)
    assert launched.order == ["opinion", "umap", "grid", "opinion", "tsne"]


def test_the_time_of_a_second_opinion_is_kept_for_later_estimates(
        run: Run, launched: Launched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))  # without the speeds that other tests measured
    kind = judging_kind(run.spec())
    record_speed(kind, 500.0)
    worker.work(run.root)
    assert OF_RUN.kind in launched.order
    assert measured_speed(kind) == pytest.approx(250, abs=5), "the median of both"
    assert measured_speed(image_kind_of(kind)) is not None


def test_a_map_that_fails_is_not_repeated_and_only_its_grid_is_missing(run: Run, launched: Launched) -> None:
    launched.state = "failed"
    worker.work(run.folder.parent)
    assert launched.order == ["opinion", "umap", "opinion", "tsne"]
    assert not jobs.wants(run, "maps")


def test_runs_without_the_wish_and_runs_of_other_sizes_get_no_maps(
        run: Run, launched: Launched, monkeypatch: pytest.MonkeyPatch) -> None:
    root = run.folder.parent
    monkeypatch.setattr(follow_ups, "MOST_MAPPED", 1796)
    assert follow_ups.next_map(root) is None
    monkeypatch.setattr(follow_ups, "MOST_MAPPED", 1797)
    jobs.follow_ups.want(run, "maps")
    assert follow_ups.next_map(root) == (run, follow_ups.planned(run)[0])
    jobs.withdraw(run, "maps")
    worker.work(root)
    assert launched.order == []


def test_the_newest_finished_run_is_first_and_unfinished_runs_wait(run: Run) -> None:
    root = run.folder.parent
    newer = Run(Path(shutil.copytree(run.folder, root / f"9{run.id[1:]}")))
    following = follow_ups.next_map(root)
    assert following is not None
    assert following[0] == newer
    newer.write_status(Status(state="stopped"))
    following = follow_ups.next_map(root)
    assert following is not None
    assert following[0] == run
    assert jobs.wants(newer, "maps")


def test_a_map_that_a_user_requested_meanwhile_is_awaited(run: Run, launched: Launched) -> None:
    requested = create_analysis(run, plan_analysis(kind="umap"))
    with requested.lock().acquire():
        assert follow_ups.is_busy(run.folder.parent, run)
        assert not follow_ups.is_busy(run.folder.parent)
    requested.write_status(Status(state="failed"))
    worker.work(run.folder.parent)
    assert launched.order == ["opinion", "opinion", "tsne"]


def test_training_goes_first_and_its_end_starts_the_maps_again(
        run: Run, launched: Launched, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr("udml_core.work.jobs.dispatch.start_worker", lambda words, *_: started.append(words))
    monkeypatch.setattr("udml_core.work.jobs.launch.reap", lambda _process: None)
    root = run.folder.parent
    other = create_run(spec(fields=FIELDS), root)
    other.queue({})
    worker.work(root)
    jobs.start_maps(root)
    assert launched.order == started == []
    assert jobs.are_maps_coming(run)
    other.write_status(Status(state="stopped"))
    assert not jobs.are_maps_coming(run)
    jobs.start_maps(root)
    assert started == [["map-work", str(root)]]
    worker.work(root)
    assert launched.order == ["opinion", "umap", "grid", "opinion", "tsne"]


def test_a_map_in_progress_pauses_while_a_run_waits(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    other = create_run(spec(fields=FIELDS), run.folder.parent)
    other.queue({})
    phases: list[str] = []

    class Recorder:
        def share(self, share: float, phase: str) -> None:
            phases.append(phase)
            if len(phases) == 4:
                other.write_status(Status(state="stopped"))

    monkeypatch.setattr(worker, "INTERVAL", 0.0)
    analysis = create_analysis(run, plan_analysis(kind="umap"))
    worker.yielding(analysis, Recorder())(0.5, "map")  # type: ignore[arg-type]
    assert phases == [worker.PAUSED] * 4 + ["map"]


def test_a_second_process_leaves_the_work_to_the_first(
        run: Run, launched: Launched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "HANDOVER", 0.05)
    with locks.held(follow_ups.mapper_lock(run.folder.parent), 0):
        worker.work(run.folder.parent)
        assert jobs.are_maps_coming(run)
    assert launched.order == []
    assert not jobs.are_maps_coming(run)
    assert jobs.wants(run, "maps")
    run.write_status(run.stored_status().model_copy(update={"finished": time.time()}))
    assert jobs.are_maps_coming(run), "the process that computes them begins in a moment"
    jobs.withdraw(run, "maps")
    assert not jobs.are_maps_coming(run)


@pytest.mark.parametrize(("switch", "argument", "wanted"), [
    ("1", None, True), ("0", None, False), ("1", False, False), ("0", True, True)])
def test_a_submission_decides_about_maps(switch: str, argument: bool | None, wanted: bool, tmp_path: Path,
                                         monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_MAPS", switch)
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", lambda *_: None)
    assert jobs.wants(jobs.submit(spec(fields=FIELDS), tmp_path / "runs", maps=argument), "maps") == wanted


@pytest.fixture
def left_over(tmp_path: Path) -> Iterator[None]:
    """End the processes that still work in the test's folder."""
    yield
    for process in psutil.process_iter(["cmdline"]):
        if any(str(tmp_path) in word for word in process.info["cmdline"] or ()):
            process.kill()


@pytest.mark.slow
@pytest.mark.usefixtures("left_over")
def test_a_run_of_the_command_line_gets_its_maps_and_a_killed_map_is_interrupted(tmp_path: Path) -> None:
    folder = str(write_digits(tmp_path / "images", 120))
    run = jobs.submit(spec("frozen", folder), tmp_path / "runs", maps=True)
    wait_for(run, "done")
    umap = analysis_at(run, plan_analysis(kind="umap"))
    deadline = time.monotonic() + 800
    while umap.stored_status().state != "running":
        assert time.monotonic() < deadline, (run.folder.parent / ".maps.log").read_text()
        time.sleep(0.05)
    assert jobs.are_maps_coming(run)
    process = psutil.Process(umap.stored_status().pid)
    assert process.nice() > psutil.Process().nice()
    process.kill()
    wait_for(umap, "interrupted")
    tsne = analysis_at(run, plan_analysis(kind="tsne"))
    while not tsne.folder.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not list_analyses(run, Grid)
    wait_for(tsne, "done")
    jobs.resume(umap)
    wait_for(umap, "done")
    assert umap.projection().frames == ("initial", "final")


def test_the_background_flag_reaches_the_worker(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(analysis_worker, "yielding",
                        lambda analysis, reporter: seen.append(analysis.id) or reporter.share)
    analysis = create_analysis(run, plan_analysis(kind="pca", scope="test"))
    assert analysis_worker.work(analysis, background=True).state == "done"
    assert seen == [analysis.id]
