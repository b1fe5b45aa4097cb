"""The queue: waiting tasks are files, and one dispatcher a lane starts them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.running import spec, suspended, wait_for
from udml_core.base.paths import python_path
from udml_core.runs import Run, create_run
from udml_core.runs.analyses.kinds.advice import Advice
from udml_core.runs.tasks import Status
from udml_core.work import jobs
from udml_core.work.jobs import dispatch
from udml_core.work.workers import train as worker

SHORT = {"method": "pca", "fields": {"dimension": 16}}
LONG = {"fields": {"dimension": 32, "epochs": 900}}


def queued(root: Path, ticket: float, **request: Any) -> Run:
    """Create a run that waits in the queue, without a dispatcher."""
    run = create_run(spec(**(request or SHORT)), root)
    run.write_status(Status(ticket=ticket))
    run.queue({})
    return run


def processes(root: Path, word: str) -> list[psutil.Process]:
    """Return the living dispatchers (`dispatch.py`) or workers (`work`) of a folder of runs."""
    return [process for process in psutil.process_iter(["cmdline", "status"])
            if process.info["status"] != psutil.STATUS_ZOMBIE
            and any(part.endswith(word) for part in process.info["cmdline"] or [])
            and any(part.startswith(str(root)) for part in process.info["cmdline"] or [])]


class Ended:
    """A process that has ended without a word."""

    pid = 2**30

    def wait(self) -> int:
        return 1


def until(condition: Any, seconds: float = 800) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_head_is_the_free_waiting_task_with_the_earliest_ticket(tmp_path: Path) -> None:
    late, early, running, never_queued = (queued(tmp_path, ticket) for ticket in (3.0, 2.0, 0.5, 0.1))
    running.write_status(Status(state="running", ticket=0.5))
    (never_queued.folder / "environment.json").unlink()
    assert dispatch.head(tmp_path, "cpu") == early.folder
    assert dispatch.head(tmp_path, "cuda:0") is None
    assert dispatch.head(tmp_path, dispatch.ANALYSES) is None
    assert dispatch.head(tmp_path, "cpu", {(str(early.folder), 2.0)}) == late.folder
    assert dispatch.head(tmp_path, "cpu", {(str(early.folder), 1.0)}) == early.folder  # resumed with a new ticket
    with early.lock().acquire():
        assert dispatch.head(tmp_path, "cpu") == late.folder
    jobs.move(late, 0)
    assert dispatch.head(tmp_path, "cpu") == late.folder
    (late.folder / "status.json").write_text("[broken")
    shutil.rmtree(early.folder)
    assert dispatch.head(tmp_path, "cpu") is None
    assert not early.folder.exists()


def test_other_analyses_do_not_wait_behind_a_race(tmp_path: Path) -> None:
    run = queued(tmp_path, 1.0)
    folders = {}
    for ticket, kind in enumerate(("advice", "refine", "advice", "umap")):
        folders[ticket] = run.folder / "analyses" / f"{kind}-{ticket}"
        folders[ticket].mkdir(parents=True)
        for name, content in (("spec", {"kind": kind}), ("environment", {}),
                              ("status", {"state": "waiting", "ticket": ticket})):
            (folders[ticket] / f"{name}.json").write_text(json.dumps(content))
    assert dispatch.head(tmp_path, dispatch.ANALYSES) == folders[1]
    assert dispatch.head(tmp_path, dispatch.RACES) == folders[0]
    assert {path for path, _ in dispatch.waiting(tmp_path, dispatch.RACES)} == {folders[0], folders[2]}
    assert {path for path, _ in dispatch.waiting(tmp_path, dispatch.ANALYSES)} == {folders[1], folders[3]}
    assert Advice.name == dispatch.RACE


def test_a_worker_takes_settings_but_no_code_from_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[list[str], dict[str, str]]] = []

    def start(words: list[str], env: dict[str, str], **_: Any) -> Ended:
        calls.append((words, env))
        return Ended()

    monkeypatch.setattr(dispatch.subprocess, "Popen", start)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    run = queued(tmp_path, 1.0)
    run.queue({"UDML_CACHE": "/there", "OMP_NUM_THREADS": "3", "PYTHONPATH": "/evil", "LD_PRELOAD": "evil.so"})
    dispatch.execute(run.folder, "cpu", 1.0)
    words, environment = calls[0]
    assert words[1:] == ["-m", "udml_core", "work", str(run.folder)]
    assert (environment["UDML_CACHE"], environment["OMP_NUM_THREADS"]) == ("/there", "3")
    assert environment["PYTHONPATH"] == str(dispatch.PACKAGE_ROOT)
    assert "LD_PRELOAD" not in environment
    assert run.status().state == "interrupted"  # the stand-in for the worker ended without a word
    assert run.status().message == dispatch.NEVER_STARTED


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has classes of priority")
def test_a_worker_lets_pages_go_first(tmp_path: Path) -> None:
    worker = dispatch.start_worker(["runs", "--runs", str(tmp_path)], tmp_path / "log.txt", {})
    try:
        assert psutil.Process(worker.pid).nice() == min(19, psutil.Process().nice() + dispatch.YIELDING)
    finally:
        worker.kill()
        worker.wait()


def test_a_task_queued_again_while_its_worker_ended_is_not_marked_as_failed(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = queued(tmp_path, 1.0)
    monkeypatch.setattr(Ended, "wait", lambda _: run.write_status(Status(ticket=2.0)))
    monkeypatch.setattr(dispatch, "start_worker", lambda *_: Ended())
    dispatch.execute(run.folder, "cpu", 1.0)
    assert run.status() == Status(ticket=2.0)


def rests(process: psutil.Process) -> bool:
    """Return whether a process sleeps and uses no processor time for a second: here, waits for the device."""
    before = sum(process.cpu_times()[:2])
    time.sleep(1)
    return process.status() == psutil.STATUS_SLEEPING and sum(process.cpu_times()[:2]) - before <= 0.01


@pytest.mark.slow
def test_a_thousand_waiting_runs_cost_one_small_idle_process(tmp_path: Path) -> None:
    first = queued(tmp_path, 1.0)
    for number in range(1, 1000):
        shutil.copytree(first.folder, tmp_path / f"{first.id}-{number}")
    with jobs.device_lock("cpu").acquire():
        jobs.wake(tmp_path)
        jobs.wake(tmp_path)
        until(lambda: dispatch.is_held(dispatch.lock_path(tmp_path, "cpu")))
        until(lambda: len(dispatchers := processes(tmp_path, "dispatch.py")) == 1 and rests(dispatchers[0]))
        dispatchers = processes(tmp_path, "dispatch.py")
        assert len(dispatchers) == 1
        assert not processes(tmp_path, "work")
        before = sum(dispatchers[0].cpu_times()[:2])
        time.sleep(5)
        assert sum(dispatchers[0].cpu_times()[:2]) - before <= 0.05
        assert dispatchers[0].memory_info().rss < 50e6
        dispatchers[0].kill()


@pytest.mark.slow
def test_the_queue_goes_on_after_its_dispatcher_was_killed(tmp_path: Path) -> None:
    first = jobs.submit(spec(fields={"dimension": 16, "epochs": 10}), tmp_path)
    wait_for(first, "running")
    with suspended(first):
        second = jobs.submit(spec(**SHORT), tmp_path)
        for process in processes(tmp_path, "dispatch.py"):
            process.kill()
        until(lambda: not processes(tmp_path, "dispatch.py"))
        assert first.status().state == "running"
    wait_for(second, "done")  # without a call of wake: the first worker started a dispatcher at its end
    assert (first.status().state, first.status().finished) <= ("done", second.status().started)


@pytest.mark.slow
def test_the_queue_goes_on_after_everything_was_killed(tmp_path: Path) -> None:
    first = jobs.submit(spec(**LONG), tmp_path)
    wait_for(first, "running")
    second = jobs.submit(spec(**SHORT), tmp_path)
    for process in [*processes(tmp_path, "dispatch.py"), *processes(tmp_path, "work"),
                    psutil.Process(first.status().pid)]:
        process.kill()
    wait_for(first, "interrupted")
    until(lambda: not processes(tmp_path, "dispatch.py"))  # on a busy machine a killed process holds its lock a while
    assert second.status().state == "waiting"
    jobs.wake(tmp_path)
    wait_for(second, "done")
    assert first.status().state == "interrupted"


@pytest.mark.slow
def test_a_storm_of_stops_and_resumes_never_starts_two_workers(tmp_path: Path) -> None:
    run = jobs.submit(spec(fields={"dimension": 16, "epochs": 10}), tmp_path)
    most = 0
    for number in range(12):
        jobs.stop(run)
        jobs.resume(run)
        time.sleep(0.4 * (number % 3))
        most = max(most, len(processes(tmp_path, str(run.folder))))
    wait_for(run, "done")
    assert most <= 1
    assert [row["epoch"] for row in run.metrics()[0]] == list(range(11))
    until(lambda: not processes(tmp_path, "dispatch.py"))
    assert not [child for child in psutil.Process().children() if child.status() == psutil.STATUS_ZOMBIE]


@pytest.mark.slow
def test_a_started_worker_does_not_wait_for_a_run_that_is_moved_ahead_of_it(tmp_path: Path) -> None:
    run, moved = (queued(tmp_path, ticket) for ticket in (1.0, 2.0))
    jobs.move(moved, 0)
    assert jobs.queue_position(run, tmp_path) == 1
    assert worker.work(run).state == "done"
    assert moved.status().state == "waiting"


def test_a_removed_folder_of_runs_ends_its_dispatcher(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    queued(root, 1.0)
    with jobs.device_lock("cpu").acquire():
        jobs.wake(root)
        until(lambda: processes(root, "dispatch.py"))
        shutil.rmtree(root)
    until(lambda: not processes(root, "dispatch.py"))
    assert not root.exists()
    jobs.wake(root)
    jobs.ensure_dispatcher(root, "cpu")
    assert not root.exists()


def test_a_folder_removed_between_two_steps_is_not_created_again(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "runs"
    run = queued(root, 1.0)
    path_of = dispatch.lock_path

    def removed_meanwhile(*where: Any) -> Path:
        path = path_of(*where)
        shutil.rmtree(root)
        return path

    monkeypatch.setattr(dispatch, "lock_path", removed_meanwhile)
    dispatch.main(root, "cpu")
    assert not root.exists()
    root.mkdir()
    jobs.ensure_dispatcher(root, "cpu")
    assert not run.is_alive()
    assert not root.exists()


def test_the_dispatcher_loads_neither_torch_nor_numpy() -> None:
    code = f"import runpy, sys; runpy.run_path({dispatch.__file__!r}); print({{'torch', 'numpy'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True,
                          env=os.environ | {"PYTHONPATH": python_path()})
    assert done.stdout.strip() == "set()"


@pytest.mark.slow
def test_a_terminated_dispatcher_leaves_its_worker_alone(tmp_path: Path) -> None:
    run = jobs.submit(spec(**LONG), tmp_path)
    wait_for(run, "running")
    for process in processes(tmp_path, "dispatch.py"):
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    assert run.status().state == "running"
    jobs.stop(run)
    assert (run.status().state, run.status().message) == ("stopped", "Stopped.")


def test_a_worker_that_waits_executes_the_next_run_and_ends_without_a_page(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_READY", "1")
    folder = dispatch.ready_folder(tmp_path)
    jobs.keep_ready(tmp_path)
    until(lambda: list(folder.glob("*.json")), 60)
    jobs.keep_ready(tmp_path)
    [waiting] = processes(tmp_path, "ready-work")
    run = jobs.submit(spec(**SHORT), tmp_path)
    until(lambda: run.status().state == "done", 120)
    assert run.stored_status().pid == waiting.pid
    until(lambda: "done" in run.log_path.read_text(), 30)  # printed after the status
    until(lambda: not waiting.is_running() or waiting.status() == psutil.STATUS_ZOMBIE, 30)
    until(lambda: jobs.keep_ready(tmp_path) or list(folder.glob("*.json")), 60)  # type: ignore[func-returns-value]
    os.utime(folder / "wanted", (0, 0))
    until(lambda: not processes(tmp_path, "ready-work"), 60)
