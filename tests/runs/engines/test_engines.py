"""Runs on a real Slurm cluster of one node and on submitit's local executor equal runs in this process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from safetensors.torch import load_file

from tests.running import spec, wait_for
from udml_core.runs import Run, create_run
from udml_core.runs.engines import EngineRequest, Owner, job_of, read_owner, states
from udml_core.runs.tasks import LIVE_STATES
from udml_core.work import jobs
from udml_core.work.jobs import dispatch

SCRIPT = Path(__file__).parents[3] / "assets" / "engines" / "start-slurm.sh"
LONG = {"dimension": 16, "epochs": 10, "steps": 3}
SHORT = {"dimension": 16, "epochs": 1, "steps": 3}
RUNS = 3
SERIAL = """
import sys
from pathlib import Path
from udml_core.runs import Run
from udml_core.work.workers import train
for folder in sys.argv[1:]:
    train.work(Run(Path(folder)))
"""


@dataclass(frozen=True)
class Engine:
    """An engine, and what ends and continues a job there.

    Attributes:
        request: What runs ask for.
        waiting: Pattern of what the status of a run says that has not started.
        kill: Ends the worker of a run without a warning.
        ended: What the status of a run says after its job was killed.
        resume: Continues the run.
    """

    request: EngineRequest
    waiting: str
    kill: Callable[[Run, Owner], object]
    ended: str
    resume: Callable[[Run, Owner], object]


SLURM = Engine(
    EngineRequest(engine="slurm", minutes=10), "pending",
    lambda _, owner: call("scancel", "--signal=KILL", owner.job), "Slurm ended job {job}: CANCELLED.",
    lambda _, owner: call("scontrol", "requeue", owner.job))
LOCAL = Engine(
    EngineRequest(engine="submitit-local", minutes=10), "submitit is running|waiting for another",
    lambda run, _: psutil.Process(run.status().pid or 0).kill(), "The job {job} of submitit ended.",
    lambda run, _: jobs.resume(run))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Start a cluster of one node; where it cannot start, warn and use submitit's local executor, unless it must."""
    folder = tmp_path_factory.mktemp("slurm")
    started = subprocess.run([SCRIPT, str(folder)], capture_output=True, text=True, timeout=60, check=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        if started.returncode:
            reason = f"Slurm did not start: {(started.stderr or started.stdout).strip().rstrip('.')}."
            if os.environ.get("UDML_NEEDS_SLURM"):
                pytest.fail(reason)
            warnings.warn(f"{reason} The test of several runs uses submitit's local executor.", stacklevel=1)
            yield LOCAL
            return
        patch.setenv("SLURM_CONF", started.stdout.strip().removeprefix("export SLURM_CONF="))
        patch.setattr(states, "SECONDS_KEPT", 0.2)
        yield SLURM
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


def kill_and_resume(run: Run, engine: Engine) -> Owner:
    """Kill the worker of a run in the middle and continue the run; return its first job."""
    until(lambda: len(run.metrics()[0]) > 3, run)
    owner = read_owner(run.folder)
    assert owner is not None
    engine.kill(run, owner)
    wait_for(run, "interrupted", "done")
    until(lambda: job_of(run.folder, owner).state == "ended", run)
    assert run.status().message.startswith(engine.ended.format(job=owner.job))
    assert 1 < run.stored_status().epoch < LONG["epochs"]
    engine.resume(run, owner)
    return owner


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


@pytest.mark.slow
def test_runs_give_the_results_of_serial_execution_also_after_a_kill(engine: Engine, tmp_path: Path) -> None:
    runs = submit(tmp_path / "runs", engine.request, RUNS)
    killed, last = runs[0], runs[-1]
    root = killed.folder.parent
    assert last.status().state == "waiting"
    assert re.search(engine.waiting, last.status().phase)
    jobs.wake(root)
    assert dispatch.head(root, "cpu") is None, "the queue of this machine starts a run of the engine"
    assert not jobs.waiting_runs(root)
    cancelled = jobs.submit(spec(fields=SHORT, seed=99), root, engine=engine.request)
    assert jobs.stop(cancelled).state == "stopped"

    kill_and_resume(killed, engine)
    wait_for(killed, *LIVE_STATES, "done")
    for run in runs:
        wait_for(run, "done", "failed", "stopped", "interrupted")
    assert_equal_to_serial(runs, tmp_path / "serial")
    assert cancelled.status().state == "stopped"
    assert not cancelled.metrics()[0]
    if engine is SLURM:
        listed = call("squeue", "--states=all", "--noheader", "--format=%j %T").splitlines()
        assert f"{cancelled.id} CANCELLED" in listed
        ids = {run.id for run in runs}
        assert [line.split()[1] for line in listed if line.split()[0] in ids] == ["COMPLETED"] * RUNS


@pytest.mark.slow
def test_submitit_local_continues_a_run_after_a_kill_and_at_the_time_limit(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    killed, = submit(tmp_path / "runs", LOCAL.request, 1)
    owner = kill_and_resume(killed, LOCAL)
    wait_for(killed, "done", "failed", "stopped", "interrupted")

    ended, = submit(tmp_path / "runs", LOCAL.request, 1)
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


NAMED = """
import sys, time
open("/proc/self/comm", "w").write(sys.argv[1])
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(not Path("/proc/self/comm").exists(), reason="the script needs Linux")
@pytest.mark.parametrize("name", ["munged", "slurmctld", "slurmd"])
def test_a_second_start_leaves_a_running_cluster_alone(name: str, tmp_path: Path) -> None:
    daemon = subprocess.Popen([sys.executable, "-c", NAMED, name], stdout=subprocess.PIPE)
    try:
        assert daemon.stdout is not None
        daemon.stdout.readline()
        (tmp_path / f"{name}.pid").write_text(f"{daemon.pid}\n")
        second = subprocess.run([SCRIPT, tmp_path], capture_output=True, text=True, timeout=60, check=False)
        assert (second.returncode, second.stdout) == (1, "")
        assert second.stderr.startswith(f"A cluster runs in {tmp_path}: {name} is process {daemon.pid}. Choose another")
        assert daemon.poll() is None
        assert [path.name for path in tmp_path.iterdir()] == [f"{name}.pid"]
    finally:
        daemon.kill()
        daemon.communicate()
