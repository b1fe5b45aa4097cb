"""The order of the queue, and moving runs in it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.running import spec
from udml_core.base.errors import UserError
from udml_core.data import features
from udml_core.runs import Run, create_run
from udml_core.runs.analyses import create_analysis, plan_analysis
from udml_core.runs.tasks import Status
from udml_core.work import jobs
from udml_core.work.jobs import launch
from udml_core.work.jobs.queue import TICKET_FILE
from udml_core.work.workers import material


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def waiting(root: Path, count: int) -> list[Run]:
    """Create runs in the queue, in the order of their tickets."""
    runs = [create_run(spec(), root) for _ in range(count)]
    now = time.time() - 10
    for number, run in enumerate(runs):
        run.queue({})
        run.write_status(run.stored_status().model_copy(update={"ticket": now + number / 10}))
    return runs


@pytest.mark.parametrize(("moved", "to", "expected"), [
    (3, 0, [3, 0, 1, 2]), (0, 3, [1, 2, 3, 0]), (1, 2, [0, 2, 1, 3]), (2, 2, [0, 1, 2, 3]), (0, 99, [1, 2, 3, 0]),
    (3, -5, [3, 0, 1, 2])])
def test_a_run_moves_to_a_place(moved: int, to: int, expected: list[int], root: Path) -> None:
    runs = waiting(root, 4)
    jobs.move(runs[moved], to)
    assert [runs.index(run) for run in jobs.waiting_runs(root)] == expected
    for place, number in enumerate(expected):
        assert jobs.queue_position(runs[number], root) == place


def test_moves_follow_each_other_and_later_runs_stay_behind(root: Path) -> None:
    runs = waiting(root, 3)
    jobs.move(runs[2], 0)
    jobs.move(runs[1], 0)
    jobs.move(runs[2], 2)
    later = create_run(spec(), root)
    later.queue({})
    later.write_status(later.stored_status().model_copy(update={"ticket": time.time() + 5}))
    assert [runs.index(run) for run in jobs.waiting_runs(root)[:3]] == [1, 0, 2]
    assert jobs.waiting_runs(root)[3] == later


def test_runs_of_equal_tickets_can_be_moved(root: Path) -> None:
    runs = waiting(root, 3)
    for run in runs:
        run.write_status(run.stored_status().model_copy(update={"ticket": 1e9 + 7, "pid": 1}))
    locks = [run.lock().acquire() for run in runs]  # their workers live
    before = jobs.waiting_runs(root)
    jobs.move(before[2], 0)
    assert jobs.waiting_runs(root) == [before[2], before[0], before[1]]
    for lock in locks:
        lock.lock.release()


def test_a_move_leaves_the_status_to_the_worker(root: Path) -> None:
    """A worker that has read its status before the move writes it again after the move."""
    first, second = waiting(root, 2)
    statuses = [run.stored_status() for run in (first, second)]
    jobs.move(second, 0)
    assert [run.stored_status() for run in (first, second)] == statuses
    for run, status in zip((first, second), statuses, strict=True):
        run.write_status(status.model_copy(update={"phase": "waiting", "pid": 1, "heartbeat": 5.0}))
    assert jobs.queue_position(second, root) == 0
    assert jobs.queue_position(first, root) in (0, 1)


def test_only_a_waiting_run_moves_and_only_among_its_device(root: Path) -> None:
    first, second, done = waiting(root, 3)
    done.write_status(done.stored_status().model_copy(update={"state": "done"}))
    with pytest.raises(UserError, match="only a waiting run"):
        jobs.move(done, 0)
    path = second.folder / "spec.json"
    path.write_text(path.read_text().replace('"device": "cpu"', '"device": "cuda:0"'))
    assert second.spec().device == "cuda:0"
    jobs.move(second, 0)
    assert jobs.waiting_runs(root, "cpu") == [first]
    assert not (first.folder / TICKET_FILE).exists()


def test_a_run_that_is_queued_again_goes_to_the_end(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "launch", lambda *_: None)
    runs = waiting(root, 3)
    jobs.move(runs[2], 0)
    runs[2].write_status(runs[2].stored_status().model_copy(update={"state": "stopped"}))
    jobs.resume(runs[2])
    assert jobs.waiting_runs(root) == [runs[0], runs[1], runs[2]]


def test_the_positions_of_all_waiting_runs_equal_each_position(root: Path) -> None:
    runs = waiting(root, 4)
    runs[0].write_status(runs[0].stored_status().model_copy(update={"state": "running", "pid": 1}))
    jobs.move(runs[3], 0)
    with runs[0].lock().acquire():  # its worker lives
        positions = jobs.queue_positions(root)
        assert positions == {runs[3]: 1, runs[1]: 2, runs[2]: 3}
        assert positions == {run: jobs.queue_position(run, root) for run in runs[1:]}


def test_waiting_analyses_are_listed_in_the_order_of_their_tickets(root: Path) -> None:
    run = create_run(spec(), root)
    late, early = (create_analysis(run, plan_analysis(kind="graph", n_neighbors=count)) for count in (8, 9))
    for analysis, ticket in ((late, 2.0), (early, 1.0)):
        analysis.queue({})
        analysis.write_status(Status(ticket=ticket))
    create_analysis(run, plan_analysis(kind="refine"))  # never queued
    assert jobs.waiting_analyses(root) == [early, late]


def test_an_analysis_waits_behind_the_analysis_in_progress_of_its_lane(root: Path) -> None:
    run = create_run(spec(), root)
    own, other, race = (create_analysis(run, plan_analysis(kind=kind)) for kind in ("graph", "umap", "advice"))
    assert jobs.running_before(own) is None
    for analysis in (other, race):
        analysis.write_status(Status(state="running", pid=1))
    assert jobs.running_before(own) is None, "no worker lives"
    with other.lock().acquire(), race.lock().acquire():
        assert jobs.running_before(own) == other, "a race has a lane of its own"
        assert jobs.running_before(other) is None


def test_a_computation_shares_the_other_gpus_that_no_run_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    with jobs.device_lock("cuda:2").acquire(), jobs.other_free_gpus("cuda:0") as others:
        assert others == ["cuda:1", "cuda:3"]
        with jobs.other_free_gpus("cuda:2") as left:
            assert left == ["cuda:0"], "the locks are held"
    with jobs.other_free_gpus("cuda:3") as others:
        assert others == ["cuda:0", "cuda:1", "cuda:2"]
    with jobs.other_free_gpus("cpu") as others:
        assert others == []


def test_a_run_computes_its_features_on_the_shared_devices(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    shared: list[list[str]] = []

    @contextmanager
    def others(device: str) -> Iterator[list[str]]:
        shared.append([device])
        yield ["cpu", "cpu"]

    monkeypatch.setattr(material, "other_free_gpus", others)
    original = features._rows_in_order
    monkeypatch.setattr(features, "_rows_in_order", lambda blocks, computes: (
        shared.append(["lane"] * len(computes)), original(blocks, computes))[1])
    material.load(create_run(spec(), tmp_path / "runs"), lambda _share, _step: None)
    assert shared == [["cpu"], ["lane"] * 3]
