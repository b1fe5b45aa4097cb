"""Ownership, states and refusals, without starting anything."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pages.parts.shell.run_status import state_line
from tests.running import spec
from udml_core.base.errors import UserError
from udml_core.cli.commands import app
from udml_core.cli.output import summarize_run
from udml_core.runs import Run, Spec, create_run
from udml_core.runs.engines import EngineRequest, Owner, cancel, check_engine, job_of, read_owner, states, submission
from udml_core.runs.engines.submission import private_folder
from udml_core.runs.tasks import STARTING_SECONDS, Status
from udml_core.work import jobs
from udml_core.work.jobs import dispatch, launch
from udml_core.work.jobs.follow_ups import is_busy
from udml_core.work.sweeps import make_sweep, resume_sweep, start_sweep

SLURM = EngineRequest(engine="slurm")


def owned(root: Path, job: str = "7", age: float = 0.0, **more: Any) -> Run:
    """Create a run that an engine owns."""
    run = create_run(spec(method="pca", fields={"dimension": 8}), root)
    Owner(request=more.pop("request", SLURM), job=job, user="me", submitted=time.time() - age, **more).write(run.folder)
    return run


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What `squeue` prints; an empty list says that it fails."""
    lines: list[str] = []

    def answer(words: list[str], **_: object) -> SimpleNamespace:
        return SimpleNamespace(returncode=int(not lines), stdout="\n".join(lines), stderr="slurm_load_jobs error: down")

    monkeypatch.setattr(states, "_answers", {})
    monkeypatch.setattr(states.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(states.subprocess, "run", answer)
    monkeypatch.setattr(states, "SECONDS_KEPT", -1.0)
    return lines


@pytest.mark.parametrize(("code", "stored", "state", "words"), [
    ("PENDING|Resources", "waiting", "waiting", "job 7 of Slurm is pending (Resources)"),
    ("PENDING|Priority", "running", "waiting", "job 7 of Slurm is pending (Priority)"),
    ("RUNNING|None", "waiting", "waiting", "job 7 of Slurm is running"),
    ("RUNNING|None", "running", "running", ""),
    ("COMPLETING|None", "running", "running", ""),
    ("CANCELLED|None", "waiting", "interrupted", "Slurm ended job 7: CANCELLED."),
    ("NODE_FAIL|None", "running", "interrupted", "Slurm ended job 7: NODE_FAIL."),
    ("PENDING|None", "stopped", "stopped", ""), ("RUNNING|None", "done", "done", "")])
def test_the_state_of_a_run_is_what_slurm_says_while_no_worker_lives(
        code: str, stored: Any, state: str, words: str, tmp_path: Path, listed: list[str]) -> None:
    run = owned(tmp_path)
    run.write_status(Status(state=stored, ticket=time.time() - 2 * STARTING_SECONDS))
    listed.extend([f"3|FAILED|None|{run.id}", f"7|{code}|{run.id}", "9|RUNNING|None|another-job"])
    status = run.status()
    assert status.state == state
    assert words in (status.phase, status.message)
    assert summarize_run(run)["engine"] == "slurm"


def test_a_worker_that_lives_is_believed_before_slurm(tmp_path: Path, listed: list[str]) -> None:
    run = owned(tmp_path)
    run.write_status(Status(state="running", epoch=3))
    listed.append(f"7|FAILED|None|{run.id}")
    with run.lock().acquire():
        assert run.status().state == "running"
    assert run.status().state == "interrupted"


def test_a_run_stays_as_it_was_while_slurm_does_not_answer(tmp_path: Path, listed: list[str]) -> None:
    run = owned(tmp_path)
    run.write_status(Status(state="waiting"))
    assert (run.status().state, run.status().phase) == (
        "waiting", "Slurm does not answer: slurm_load_jobs error: down")
    run.write_status(Status(state="running"))
    assert run.status().state == "running"
    with pytest.raises(UserError, match=r"could not be cancelled in Slurm: slurm_load_jobs error: down\. Try again, "
                                        r"or run `scancel --user=me --name="):
        jobs.stop(run)


def test_a_job_whose_number_was_lost_is_found_by_its_name(tmp_path: Path, listed: list[str]) -> None:
    run = owned(tmp_path, job="", age=2 * STARTING_SECONDS)
    listed.append("9|RUNNING|None|another-job")
    assert (run.status().state, run.status().message) == ("interrupted", "Slurm did not get the job.")
    listed.append(f"12|PENDING|Priority|{run.id}")
    assert run.status().phase == "job 12 of Slurm is pending (Priority)"


def test_a_submission_in_progress_waits(tmp_path: Path, listed: list[str]) -> None:
    run = owned(tmp_path, job="")
    listed.append("9|RUNNING|None|another-job")
    assert run.status().state == "waiting"


def test_the_queue_of_this_machine_never_starts_the_run_of_an_engine(tmp_path: Path, listed: list[str]) -> None:
    own, other = create_run(spec(method="pca", fields={"dimension": 8}), tmp_path), owned(tmp_path)
    for run in (own, other):
        run.write_status(Status(ticket=1.0))
        run.queue({})  # even if it was queued here before
    listed.append(f"7|PENDING|None|{other.id}")
    assert [task for task, _ in dispatch.waiting(tmp_path, "cpu")] == [own.folder]
    assert jobs.waiting_runs(tmp_path) == [own]
    assert jobs.queue_positions(tmp_path) == {own: 0}
    assert (jobs.queue_position(own, tmp_path), jobs.queue_position(other, tmp_path)) == (0, 0)
    assert jobs.place_in_queue(other) == "job 7 of Slurm is pending"
    with pytest.raises(UserError, match="only a waiting run can be moved"):
        jobs.move(other, 0)


def test_the_page_runs_says_what_slurm_says(tmp_path: Path, listed: list[str]) -> None:
    run = owned(tmp_path)
    listed.append(f"7|PENDING|Resources|{run.id}")
    assert state_line(run, run.status()) == "Waiting: job 7 of Slurm is pending (Resources)."
    listed[:] = [f"7|TIMEOUT|None|{run.id}"]
    assert state_line(run, run.status()).startswith("Slurm ended job 7: TIMEOUT. ")


def test_maps_do_not_wait_for_a_cluster(tmp_path: Path, listed: list[str]) -> None:
    run = owned(tmp_path)
    listed.append(f"7|PENDING|Resources|{run.id}")
    assert run.status().state == "waiting"
    assert not is_busy(tmp_path)
    (run.folder / "engine.json").unlink()
    assert is_busy(tmp_path)


def test_a_sweep_keeps_its_engine_when_it_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = []

    def submit(planned: Spec, root: Path, maps: bool, engine: EngineRequest | None) -> Run:
        chosen.append(engine)
        return create_run(planned, root)

    monkeypatch.setattr(jobs, "submit", submit)
    described = make_sweep({"data": "digits", "methods": {"pca": {"dimension": [4, 8]}},
                            "options": {"backbone": "pixels", "split": "seen"}}, "widths")
    begun = start_sweep(described, tmp_path, engine=SLURM)
    assert chosen == [SLURM, SLURM]
    shutil.rmtree(begun.sweep.members()[0].run.folder)  # type: ignore[union-attr]
    resume_sweep(begun.sweep)
    assert chosen == [SLURM, SLURM, SLURM]


@pytest.mark.parametrize("code", ["", "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "])
def test_a_local_job_is_known_by_its_process_and_machine(
        code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that was started in the background of a script ignores SIGINT."""
    monkeypatch.setattr(states, "TIME_TO_END", 0.5)
    request, host = EngineRequest(engine="submitit-local"), socket.gethostname()
    run = owned(tmp_path, str(os.getpid()), request=request, host=host)  # this process is no job of submitit
    owner = read_owner(run.folder)
    assert owner is not None
    assert job_of(run.folder, owner).state == "ended"
    cancel(run.folder, owner)  # and is not signalled
    assert job_of(run.folder, owner.model_copy(update={"host": "elsewhere"})).state == "unknown"
    code += "import time; print(flush=True); time.sleep(20)"
    words = [sys.executable, "-c", code, "submitit.local._local", f"pickles/{run.id}"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as job:
        assert job.stdout is not None
        job.stdout.readline()  # it has started
        own = owner.model_copy(update={"job": str(job.pid)})
        assert job_of(run.folder, own).state == "running"
        cancel(run.folder, own)
        assert job_of(run.folder, own).state == "ended"


@pytest.mark.parametrize(("values", "message"), [
    ({"engine": "slurm", "minutes": 0}, "minutes must be a whole number between 1 and"),
    ({"engine": "sge"}, r"engine must be one of 'slurm', 'submitit-local', got 'sge'"),
    ({"engine": "slurm", "partition": "gpu\n#SBATCH --wrap=x"}, "partition"),
    ({"engine": "slurm", "gpu": 1}, "no field 'gpu'")])
def test_a_wrong_engine_option_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        EngineRequest.make(values)


def test_options_of_a_cluster_are_refused_on_this_machine() -> None:
    with pytest.raises(UserError, match="The engine option 'partition' belongs to the engine 'slurm'"):
        check_engine(EngineRequest(engine="submitit-local", partition="gpu"))


def test_a_missing_package_and_a_missing_command_say_what_to_install(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submission.shutil, "which", lambda _name: None)
    with pytest.raises(UserError, match=r"sbatch is not on the PATH\. Run this on a machine of the cluster"):
        check_engine(SLURM)
    monkeypatch.setattr(submission, "find_spec", lambda _name: None)
    for engine in ("slurm", "submitit-local"):
        with pytest.raises(UserError, match=r"Install it with `pip install submitit`\."):
            jobs.submit(spec(method="pca", fields={"dimension": 8}), tmp_path, engine=EngineRequest(engine=engine))
    assert not list(tmp_path.iterdir()), "a run was created"


def test_the_folder_that_is_executed_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "runs"
    assert private_folder(root) == root / ".engines"
    assert (root / ".engines").stat().st_mode & 0o777 == 0o700
    (root / ".engines").chmod(0o777)
    private_folder(root)
    assert (root / ".engines").stat().st_mode & 0o777 == 0o700
    root.chmod(0o777)
    with pytest.raises(UserError, match=r"Other users can write to .*Set UDML_ENGINES to a folder"):
        private_folder(root)
    monkeypatch.setenv("UDML_ENGINES", str(tmp_path / "mine"))
    assert private_folder(root) == tmp_path / "mine"
    (tmp_path / "mine").rmdir()
    (tmp_path / "mine").symlink_to(root)
    with pytest.raises(UserError, match="belongs to another user or is a link"):
        private_folder(root)


def test_a_refused_submission_fails_the_run_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(words: list[str], stdout: Any, **_: Any) -> SimpleNamespace:
        stdout.write(b"Traceback\nsbatch: error: invalid partition specified: none\n")
        stdout.flush()
        return SimpleNamespace(returncode=1)

    monkeypatch.setattr(submission.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(submission.subprocess, "run", refuse)
    with pytest.raises(UserError, match=r"did not accept .*: sbatch: error: invalid partition .*: none\. Ch"):
        jobs.submit(spec(method="pca", fields={"dimension": 8}), tmp_path, engine=SLURM)
    (run,) = (Run(path) for path in tmp_path.iterdir() if not path.name.startswith("."))
    assert run.status().state == "failed"
    assert "invalid partition specified: none" in run.status().message


def test_a_run_can_continue_on_another_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = owned(tmp_path)
    run.write_status(Status(state="stopped"))
    started, handed = [], []
    monkeypatch.setattr(launch, "ensure_dispatcher", lambda _root, lane: started.append(lane))
    monkeypatch.setattr(launch, "check_engine", lambda _request: None)
    monkeypatch.setattr(launch, "hand_over", lambda _folder, request, _settings: handed.append(request))
    jobs.resume(run, "local")
    assert (started, read_owner(run.folder), run.is_queued()) == (["cpu"], None, True)
    run.write_status(Status(state="stopped"))
    jobs.resume(run, SLURM)
    assert (handed, run.is_queued()) == ([SLURM], False)
    Owner(request=SLURM).write(run.folder)
    run.write_status(Status(state="stopped"))
    jobs.resume(run)
    assert handed == [SLURM, SLURM]


def test_a_worker_of_slurm_needs_no_lock_of_a_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slurm grants its devices, and the machines of a cluster share the folder of the locks."""
    monkeypatch.setenv("UDML_CACHE", os.environ["UDML_CACHE"])
    with jobs.device_lock("cpu").acquire(timeout=30):
        run = owned(tmp_path, request=SLURM)
        from udml_core.work.workers import train as worker

        assert worker.work(run, analyse=False).state == "done"


def test_gpus_of_a_cluster_need_not_exist_here() -> None:
    assert jobs.resolve_device("auto", 2) == "cuda:0"
    assert jobs.resolve_device("cuda:1", 2) == "cuda:1"
    with pytest.raises(UserError, match=r"the engine options request 0 CUDA devices\. Add --engine-option gpus=1"):
        jobs.resolve_device("cuda", 0)


@pytest.mark.parametrize(("words", "message"), [
    (["--engine-option", "gpus=1"], "--engine-option belongs to the engines 'slurm' and 'submitit-local'"),
    (["--engine", "submitit-local", "--engine-option", "gpus"], "--engine-option needs FIELD=VALUE, got 'gpus'"),
    (["--engine", "submitit-local", "--engine-option", "gpus=1"], "The engine option 'gpus' belongs to")])
def test_the_command_line_refuses_wrong_engine_options(words: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        app(["train", "--dataset", "digits", "--method", "pca", *words], standalone_mode=False)


def test_runs_of_this_machine_have_no_owner(tmp_path: Path) -> None:
    run = create_run(spec(method="pca", fields={"dimension": 8}), tmp_path)
    assert read_owner(run.folder) is None
    assert json.loads(json.dumps(summarize_run(run)))["engine"] == "local"
