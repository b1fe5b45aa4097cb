"""Several processes that share a run: torchrun's agent starts them, and again if one dies."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.running import spec, trained
from udml_core.base.errors import UserError
from udml_core.methods.shared import distributed
from udml_core.runs import Run, create_run
from udml_core.runs.tasks import LIVE_STATES, Status
from udml_core.work import jobs
from udml_core.work.jobs import queue
from udml_core.work.workers import elastic
from udml_core.work.workers import train as worker

FIELDS = {"dimension": 8, "epochs": 6, "batch": 200}
SECONDS = 400.0


def until(condition: object, run: Run) -> None:
    """Wait for a condition."""
    assert callable(condition)
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, (run.stored_status(), run.log_tail(40))
        time.sleep(0.02)


def agent_of(run: Run) -> psutil.Process:
    """Return the process that starts the others."""
    return psutil.Process(run.stored_status().pid or 0)


@pytest.mark.slow
def test_a_run_goes_on_after_one_process_was_killed_and_equals_one_process(tmp_path: Path) -> None:
    single = trained(tmp_path / "single", method="isif", fields=FIELDS)
    run = jobs.submit(spec(method="isif", fields=FIELDS, processes=2), tmp_path)
    until(lambda: len(run.metrics()[0]) > 2, run)
    ranks = {process.environ()["RANK"]: process for process in agent_of(run).children()}
    assert sorted(ranks) == ["0", "1"]
    ranks["1"].kill()
    states = set()
    while (state := run.status().state) in LIVE_STATES:
        states.add(state)
        time.sleep(0.05)
    assert state == "done", run.log_tail(40)
    assert "exitcode: -9" in run.log_path.read_text()
    assert not run.error()
    rows = run.metrics()[0]
    assert [row["epoch"] for row in rows] == list(range(FIELDS["epochs"] + 1))
    for row, shared in zip(single.metrics()[0], rows, strict=True):
        assert row.get("loss", 0.0) == pytest.approx(shared.get("loss", 0.0), rel=1e-4)
    np.testing.assert_allclose(run.embeddings("final"), single.embeddings("final"), atol=1e-3)


@pytest.mark.slow
def test_a_stop_ends_all_processes(tmp_path: Path) -> None:
    run = jobs.submit(spec(method="isif", fields=FIELDS | {"epochs": 1000}, processes=2), tmp_path)
    until(lambda: len(run.metrics()[0]) > 1, run)
    agent = agent_of(run)
    family = [agent, *agent.children(recursive=True)]
    assert len(family) == 3
    assert jobs.stop(run).state == "stopped"
    psutil.wait_procs(family, timeout=30)
    assert not [process for process in family if process.is_running()
                and process.status() != psutil.STATUS_ZOMBIE]
    assert run.status().state == "stopped"


def test_every_gpu_of_a_run_is_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue.torch.cuda, "device_count", lambda: 4)
    shared = spec(method="isif", fields=FIELDS, device="cuda:1", processes=2)
    assert jobs.devices_of(shared) == ["cuda:1", "cuda:2"]
    whole = spec(method="isif", fields=FIELDS, device="cuda:all")
    assert (whole.device, whole.processes, jobs.devices_of(whole)) == (
        "cuda:0", 4, ["cuda:0", "cuda:1", "cuda:2", "cuda:3"])
    with pytest.raises(UserError, match="2 processes from the device 'cuda:3' need as many GPUs, and there are 4"):
        spec(method="isif", fields=FIELDS, device="cuda:3", processes=2)
    with pytest.raises(UserError, match="'cuda:all' starts one process on each of 4 GPUs, got processes=2"):
        spec(method="isif", fields=FIELDS, device="cuda:all", processes=2)


def test_each_process_has_its_own_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = []
    monkeypatch.setattr(distributed.torch.cuda, "set_device", lambda device: chosen.append(str(device)))
    monkeypatch.setattr(distributed, "rendezvous", lambda *_, **__: iter([(distributed.distributed.HashStore(), 0, 2)]))
    monkeypatch.setattr(distributed.distributed, "init_process_group", lambda *_, **__: None)
    monkeypatch.setattr(distributed.distributed, "destroy_process_group", lambda: None)
    for rank, own in (("0", None), ("1", "cuda:2")):
        for name, value in (("WORLD_SIZE", "2"), ("RANK", rank), ("LOCAL_RANK", rank)):
            monkeypatch.setenv(name, value)
        with distributed.join_process_group("cuda:1") as device:
            assert device == own
    assert chosen == ["cuda:1", "cuda:2"]


def test_a_worker_holds_the_locks_of_all_its_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = create_run(spec(method="isif", fields=FIELDS), tmp_path)
    monkeypatch.setattr(worker, "devices_of", lambda _spec: ["cuda:0", "cuda:1"])
    held = []

    def look(*_: object) -> None:
        held.extend(name for name in ("cuda:0", "cuda:1", "cpu") if jobs.dispatch.is_held(
            Path(jobs.device_lock(name).lock_file)))

    monkeypatch.setattr(worker._Work, "all", look)
    assert worker.work(run).state == "done"
    assert held == ["cuda:0", "cuda:1"]


def test_a_method_of_one_process_refuses_several() -> None:
    with pytest.raises(UserError, match=r"RPML trains in one process, got 2 processes\. Use one, or SRPML, PLM"):
        spec(processes=2)


def test_a_caution_says_when_processes_change_the_result() -> None:
    fields = {"trains": "all", "dimension": 8}
    assert jobs.caution_of_processes(spec(method="isif", backbone="cnn", processes=2,
                                          fields=fields | {"batch_norm": "batch"})).startswith(
        "With batch_norm 'batch' each of the 2 processes normalizes by its own part")
    for part, processes in (("all", 1), ("head", 2)):
        assert not jobs.caution_of_processes(spec(method="isif", backbone="cnn", processes=processes,
                                                  fields={"dimension": 8, "trains": part, "batch_norm": "batch"}))


def test_a_signal_without_a_stop_leaves_a_supervised_run_to_its_supervisor(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = create_run(spec(method="isif", fields=FIELDS), tmp_path)

    def end(*_: object) -> None:
        os.kill(os.getpid(), 15)

    monkeypatch.setattr(worker._Work, "all", end)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    assert worker.work(run).state == "running"
    assert run.status().state == "interrupted"
    monkeypatch.delenv("TORCHELASTIC_RUN_ID")
    assert worker.work(run).state == "stopped"


def test_processes_that_die_again_and_again_fail_the_run(tmp_path: Path) -> None:
    run = create_run(spec(method="isif", fields=FIELDS, processes=2), tmp_path)
    run.write_status(Status(state="running"))
    elastic._record_failure(run, RuntimeError("exit code -9"))
    assert run.stored_status().state == "failed"
    assert run.stored_status().message.startswith("One of the 2 processes died 4 times.")
    assert run.error() == "exit code -9"
    run.write_status(Status(state="stopped", message="Stopped."))
    elastic._record_failure(run, RuntimeError("exit code -15"))
    assert run.stored_status().state == "stopped"
