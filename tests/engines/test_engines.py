"""Runs on a real Slurm cluster of one node and on submitit's local executor equal runs in this process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from safetensors.torch import load_file

from tests.running import spec, wait_for
from udml_core import jobs
from udml_core.engines import EngineRequest, job_of, read_owner, states
from udml_core.jobs import dispatch
from udml_core.runs import Run, create_run
from udml_core.tasks import LIVE_STATES

SCRIPT = Path(__file__).parents[2] / "assets" / "engines" / "start-slurm.sh"
LONG = {"dimension": 16, "epochs": 10, "steps": 3}
SHORT = {"dimension": 16, "epochs": 1, "steps": 3}
RUNS = 6
SLURM = EngineRequest(engine="slurm", minutes=10)
LOCAL = EngineRequest(engine="submitit-local", minutes=10)
SERIAL = """
import sys
from pathlib import Path
from udml_core.runs import Run
from udml_core.workers import train
for folder in sys.argv[1:]:
    train.work(Run(Path(folder)))
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Start a cluster of one node; skip the test with the reason where it cannot start, unless it must."""
    folder = tmp_path_factory.mktemp("slurm")
    started = subprocess.run([SCRIPT, str(folder)], capture_output=True, text=True, timeout=60, check=False)
    if started.returncode:
        reason = f"Slurm did not start: {started.stderr.strip() or started.stdout.strip()}"
        (pytest.fail if os.environ.get("UDML_NEEDS_SLURM") else pytest.skip)(reason)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", started.stdout.strip().removeprefix("export SLURM_CONF="))
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setattr(states, "SECONDS_KEPT", 0.2)
        yield
        subprocess.run([SCRIPT, "--stop", str(folder)], timeout=60, check=True)


def call(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout


def until(condition: Callable[[], Any], run: Run, seconds: float = 600) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, (run.status(), run.log_tail(40))
        time.sleep(0.05)


def submit(root: Path, engine: EngineRequest, count: int) -> list[Run]:
    """Hand runs to an engine, the longest first."""
    return [jobs.submit(spec(fields=SHORT if seed else LONG, seed=seed), root, engine=engine) for seed in range(count)]


def assert_equal_to_serial(runs: list[Run], root: Path) -> None:
    """Compare weights, embeddings and curves with runs that one new process executes in turn, bit by bit."""
    serials = [create_run(spec(fields=SHORT if seed else LONG, seed=seed), root) for seed in range(len(runs))]
    subprocess.run([sys.executable, "-c", SERIAL, *(str(run.folder) for run in serials)], check=True, timeout=300)
    for run, serial in zip(runs, serials, strict=True):
        assert (run.status().state, serial.status().state) == ("done", "done")
        for which in ("initial", "final"):
            np.testing.assert_array_equal(run.embeddings(which), serial.embeddings(which))
        weights, expected = load_file(run.embedder_path), load_file(serial.embedder_path)
        assert weights.keys() == expected.keys()
        assert all(weights[name].equal(value) for name, value in expected.items())
        kept, known = ([{name: value for name, value in row.items() if name != "seconds"} for row in one.metrics()[0]]
                       for one in (run, serial))
        assert kept == known


def test_slurm_gives_the_results_of_serial_execution_also_after_a_kill(cluster: None, tmp_path: Path) -> None:
    runs = submit(tmp_path / "runs", SLURM, RUNS)
    killed, last = runs[0], runs[-1]
    root = killed.folder.parent
    assert last.status().state == "waiting"
    assert "pending" in last.status().phase
    jobs.wake(root)
    assert dispatch.head(root, "cpu") is None, "the queue of this machine starts a run of Slurm"
    assert not jobs.waiting_runs(root)
    cancelled = jobs.submit(spec(fields=SHORT, seed=99), root, engine=SLURM)
    assert jobs.stop(cancelled).state == "stopped"

    until(lambda: len(killed.metrics()[0]) > 3, killed)
    owner = read_owner(killed.folder)
    assert owner is not None
    call("scancel", "--signal=KILL", owner.job)
    wait_for(killed, "interrupted", "done")
    assert killed.status().message.startswith(f"Slurm ended job {owner.job}: CANCELLED.")
    reached = killed.stored_status().epoch
    assert 2 < reached < LONG["epochs"]
    call("scontrol", "requeue", owner.job)
    wait_for(killed, *LIVE_STATES)
    for run in runs:
        wait_for(run, "done", "failed", "stopped", "interrupted")
    assert_equal_to_serial(runs, tmp_path / "serial")
    assert cancelled.status().state == "stopped"
    assert not cancelled.metrics()[0]
    listed = call("squeue", "--states=all", "--noheader", "--format=%j %T").splitlines()
    assert f"{cancelled.id} CANCELLED" in listed
    assert [line.split()[1] for line in listed if line.split()[0] in {run.id for run in runs}] == ["COMPLETED"] * RUNS


def test_submitit_local_gives_the_results_of_serial_execution_also_after_a_kill(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    killed = jobs.submit(spec(fields=LONG), tmp_path / "runs", engine=LOCAL)
    until(lambda: len(killed.metrics()[0]) > 3, killed)
    assert dispatch.head(killed.folder.parent, "cpu") is None
    owner = read_owner(killed.folder)
    assert owner is not None
    psutil.Process(killed.status().pid or 0).kill()
    wait_for(killed, "interrupted", "done")
    until(lambda: job_of(killed.folder, owner).state == "ended", killed)
    assert killed.status().message == f"The job {owner.job} of submitit ended."
    jobs.resume(killed)
    wait_for(killed, "done", "failed", "stopped", "interrupted")

    ended = jobs.submit(spec(fields=LONG), tmp_path / "runs", engine=LOCAL)
    until(lambda: len(ended.metrics()[0]) > 3, ended)
    job = read_owner(ended.folder)
    assert job is not None
    task = psutil.Process(int(job.job)).children()[0]
    task.send_signal(signal.SIGUSR2)  # what the end of the time limit sends
    until(lambda: not task.is_running() or task.status() == psutil.STATUS_ZOMBIE, ended)
    wait_for(ended, "done", "failed", "stopped", "interrupted")
    renewed = read_owner(killed.folder)
    assert renewed is not None
    assert renewed.job != owner.job
    assert read_owner(ended.folder) == job, "the job was submitted again, not requeued"
    assert_equal_to_serial([killed], tmp_path / "serial")
    np.testing.assert_array_equal(ended.embeddings("final"), killed.embeddings("final"))
