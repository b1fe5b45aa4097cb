"""Starting, queueing, stopping and resuming real workers."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import psutil
import pytest

from tests.running import spec, until, worked, write_digits
from udml_core import jobs
from udml_core.backbones import Encoder
from udml_core.data import catalog
from udml_core.data.features import features_of
from udml_core.data.given import labels as annotations
from udml_core.errors import UserError
from udml_core.runs import Run, create_run
from udml_core.workers import train as worker

ROOT = Path(__file__).resolve().parents[1]
LONG = {"dimension": 32, "epochs": 900}


@pytest.mark.parametrize(("given", "message"), [
    ({"backbone": "nonsense"}, "The backbone must be one of"),
    ({"backbone": "timm:vit_tiny"}, "not installed"),
    ({"device": "gpu"}, "must be auto, cpu or cuda:N"),
    ({"device": "cuda:77"}, "CUDA devices are here"),
    ({"seed": -1}, "The seed must be between 0"),
    ({"method": "nonsense"}, "The method must be one of rpml"),
    ({"fields": {"alpha": 120}}, "RPML.alpha must be between 0 and 90 degrees"),
    ({"pooling": "rmac"}, "Raw pixels have no feature maps"),
    ({"fields": {}}, "RPML.dimension must be at most the features' width 64, got 128. Lower the field 'dimension'"),
    ({"fields": {"dimension": 65}, "method": "srpml"}, "at most the features' width 64, got 65"),
    ({"method": "pca"}, r"at most 64 dimensions \(1438 images of 64-d features\), got dimension=128. Lower"),
    *(({"method": method, "fields": {"trains": "encoder", "dimension": 16}}, "'pixels' has nothing to train. Set the f")
      for method in ("plm", "pslr", "isif", "nce", "ssdml", "triplet")),
    ({"method": "lrml", "fields": {"trains": "encoder"}}, "'pixels' has nothing to train. Set the field 'trains' to"),
    ({"method": "lrml", "labels": "x"}, "The source of labels must be one of drawn, given, got 'x'"),
    ({"select": "x"}, "The selection of the epoch must be one of last, validation, got 'x'"),
    ({"split": "x"}, "The split must be one of zero-shot, seen, all, got 'x'"),
    ({"backbone": "squeezenet", "size": 8}, "size of squeezenet must be between 15 and 1024 pixels, got 8"),
    ({"backbone": "efficientnet-lite0", "size": 31}, "must be between 32 and 1024 pixels, got 31"),
    ({"method": "isif", "backbone": "cnn", "fields": {"trains": "encoder"}},
     "ISIF.batch_norm must be 'batch' where cnn trains from scratch"),
    ({"method": "srpml", "backbone": "resnet18-small", "fields": {}}, "SRPML.batch_norm must be 'batch'"),
])
def test_a_plan_that_cannot_work_is_refused_before_the_start(given: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        spec(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [
    {"backbone": "cnn", "fields": {"trains": "encoder", "batch_norm": "batch"}}, {"backbone": "cnn"},
    {"backbone": "cifar-quick", "fields": {"trains": "encoder", "dimension": 64}},
    {"backbone": "squeezenet", "fields": {"trains": "encoder"}}], ids=str)
def test_batch_normalization_may_stay_as_it_is_where_it_has_learnt_or_does_not_train(given: dict[str, object]) -> None:
    assert spec(method="isif", **given).method == "isif"  # type: ignore[arg-type]


def test_a_folder_of_few_images_is_refused_before_the_start_where_a_method_needs_more(tmp_path: Path) -> None:
    folder = str(write_digits(tmp_path / "flat", 5, by_class=False))
    for given, message in (({"method": "whiten"}, "got 5 images and n_neighbors=5"),
                           ({"method": "pca", "fields": {"dimension": 6}}, "at most 5 dimensions"),
                           ({"fields": {"dimension": 6, "beginning": "pca"}}, "at most 5 dimensions")):
        with pytest.raises(UserError, match=message):
            spec(dataset=folder, split=None, **given)  # type: ignore[arg-type]
    assert spec(dataset=folder, split=None, fields={"dimension": 6}).split == "all"


def test_unlabeled_images_train_as_all_and_refuse_what_needs_labels(tmp_path: Path) -> None:
    folder = str(write_digits(tmp_path / "flat", by_class=False))
    assert spec(dataset=folder, split=None, method="frozen").split == "all"
    with pytest.raises(UserError, match="needs class labels"):
        spec(dataset=folder, split=None, method="pca", select="validation")
    with pytest.raises(UserError, match="zero-shot split needs at least 2 classes"):
        spec(dataset=folder, split="zero-shot", method="pca")


@pytest.mark.parametrize(("per_class", "works"), [(9, False), (10, True)])
def test_validation_needs_a_class_with_two_images_held_out(per_class: int, works: bool, tmp_path: Path) -> None:
    for index, path in enumerate(sorted(write_digits(tmp_path / "flat", 4 * per_class, by_class=False).iterdir())):
        place = tmp_path / "classes" / str(index % 4) / path.name
        place.parent.mkdir(parents=True, exist_ok=True)
        path.rename(place)
    given = {"dataset": str(tmp_path / "classes"), "split": "zero-shot", "method": "frozen", "select": "validation"}
    if works:
        run = create_run(spec(**given), tmp_path / "runs")
        assert worker.work(run).state == "done"
        assert all(0 <= row["validation map@r"] <= 1 for row in run.metrics()[0])
        assert run.best_embedder_path.exists()
        return
    with pytest.raises(UserError, match=r"holds out 15% of each class .* has 9 images\. Use select 'last'"):
        spec(**given)


def test_few_labels_are_counted_and_refused_where_they_do_not_fit(tmp_path: Path) -> None:
    assert spec("lrml").labels_per_class == 10
    assert spec("lrml", labels_per_class=3).labels_per_class == 3
    assert spec("frozen").labels_per_class is None
    for given, message in (
            ({"method": "frozen", "labels_per_class": 5}, "and frozen is none of them"),
            ({"method": "frozen", "labels": "given"}, "and frozen is none of them"),
            ({"method": "lrml", "labels_per_class": 0}, "per class must be between 1 and 146, .* got 0"),
            ({"method": "lrml", "labels_per_class": 10**6}, "between 1 and 146, the images that .* 1,000,000"),
            ({"method": "lrml", "labels_per_class": 1}, "one of them with at least 2 labels; got 10 labels in 10 cl"),
            ({"method": "lrml", "labels": "given", "labels_per_class": 5}, "labels_per_class=5 asks to draw some")):
        with pytest.raises(UserError, match=message):
            spec(**given)  # type: ignore[arg-type]
    folder = str(write_digits(tmp_path / "flat", by_class=False))
    with pytest.raises(UserError, match="Give labels yourself"):
        spec("lrml", dataset=folder, split=None)


def test_given_labels_choose_the_epoch_unless_the_last_is_asked_for(tmp_path: Path,
                                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    for start in range(2):
        annotations.give(catalog.load("digits"), range(start, 20, 2), f"class {start}")
    for given, select in (({"labels": "given"}, "validation"), ({"labels": "given", "select": "last"}, "last"),
                          ({}, "last"), ({"select": "validation"}, "validation")):
        assert spec("lrml", split="all", **given).select == select  # type: ignore[arg-type]


def test_the_expected_time_counts_features_only_while_they_are_missing() -> None:
    dataset = catalog.load("digits")
    planned = spec(backbone="cnn", seed=91)
    assert jobs.estimate(planned, dataset).feature_seconds > 0
    features_of(dataset, Encoder(planned.encoder))
    expected = jobs.estimate(planned, dataset)
    assert expected.feature_seconds == 0
    assert expected.training_seconds > 0
    assert expected.memory > 1e8


def test_runs_wait_their_turn_first_in_first_out_and_any_of_them_can_be_stopped(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    first = jobs.submit(spec(fields=LONG), root)
    until(first, "running")
    second = jobs.submit(spec(fields={"dimension": 16, "epochs": 1}), root)
    third = jobs.submit(spec(method="pca", fields={"dimension": 16}), root)
    deadline = time.monotonic() + 120
    while not (second.is_alive() and third.is_alive()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert [jobs.queue_position(run, root) for run in (first, second, third)] == [0, 1, 2]
    assert [run.status().state for run in (first, second, third)] == ["running", "waiting", "waiting"]
    began = time.monotonic()
    jobs.stop(first)
    assert time.monotonic() - began < 5
    assert first.status().state == "stopped"
    until(third, "done")
    until(second, "done")
    assert (second.status().finished or 0) <= (third.status().started or 0)
    with pytest.raises(UserError, match="is done"):
        jobs.resume(second)


def test_a_run_that_waits_for_another_program_can_be_stopped_and_resumed(tmp_path: Path) -> None:
    with jobs.device_lock("cpu").acquire():
        run = jobs.submit(spec(method="pca", fields={"dimension": 16}), tmp_path / "runs")
        deadline = time.monotonic() + 120
        while run.stored_status().phase != "waiting for another program's run":
            assert time.monotonic() < deadline, run.stored_status()
            time.sleep(0.02)
        assert run.status().state == "waiting"
        began = time.monotonic()
        jobs.stop(run)
        assert time.monotonic() - began < 5
        assert run.status().state == "stopped"
        assert not run.is_alive()
        jobs.resume(run)
    until(run, "done")


def test_stop_ends_the_whole_process_group_within_five_seconds_also_one_that_does_not_listen(tmp_path: Path) -> None:
    run = jobs.submit(spec(fields=LONG), tmp_path / "runs")
    until(run, "running")
    worker = psutil.Process(run.status().pid)
    os.kill(worker.pid, signal.SIGSTOP)  # deaf to everything but the kill
    began = time.monotonic()
    jobs.stop(run)
    assert time.monotonic() - began < 5
    assert not run.is_alive()
    assert run.status().state == "stopped"
    assert not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE


def test_stop_reaches_the_processes_that_a_worker_started(tmp_path: Path) -> None:
    """A stand-in worker that holds the lock and has a child: the real one has none to look for."""
    run = create_run(spec(fields=LONG), tmp_path / "runs")
    code = ("import subprocess, sys, time; from pathlib import Path; from udml_core.runs import Run; import os\n"
            "run = Run(Path(sys.argv[1])); lock = run.lock().acquire()\n"
            "child = subprocess.Popen(['sleep', '60']); (run.folder / 'child').write_text(str(child.pid))\n"
            "import psutil; born = psutil.Process().create_time()\n"
            "update = {'state': 'running', 'pid': os.getpid(), 'pid_born': born}\n"
            "run.write_status(run.stored_status().model_copy(update=update))\n"
            "time.sleep(60)")
    worker = subprocess.Popen([sys.executable, "-c", code, str(run.folder)], start_new_session=True)
    until(run, "running")
    child = psutil.Process(int((run.folder / "child").read_text()))
    jobs.stop(run)
    assert worker.wait(5) != 0
    _, alive = psutil.wait_procs([child], timeout=3)
    assert not [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]


def test_stop_ends_a_worker_that_was_started_by_another_spelling(tmp_path: Path) -> None:
    run = create_run(spec(fields=LONG), tmp_path / "runs")
    worker = subprocess.Popen([sys.executable, "-m", "udml_core", "work", "."], cwd=run.folder,
                              env=os.environ | {"PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL)
    until(run, "running")
    began = time.monotonic()
    assert jobs.stop(run).state == "stopped"
    assert time.monotonic() - began < 5
    worker.wait(30)
    assert run.status().state == "stopped"


def test_a_worker_that_no_signal_reaches_sees_the_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = jobs.submit(spec(fields=LONG), tmp_path / "runs")
    until(run, "running")
    monkeypatch.setattr("udml_core.jobs.launch._signal_group", lambda *_: None)
    assert jobs.stop(run).state == "stopped"
    assert "stopped" in run.log_tail()


def test_what_could_not_be_stopped_is_not_called_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in that holds the lock and hears nothing: this very process, under a number that was given out again."""
    monkeypatch.setattr("udml_core.jobs.launch.PATIENCE", 0.1)
    run = create_run(spec(), tmp_path / "runs")
    running = run.stored_status().model_copy(update={"state": "running", "pid": os.getpid(), "pid_born": 1.0})
    run.write_status(running)
    with run.lock().acquire(), pytest.raises(UserError, match="was asked to stop and goes on"):
        jobs.stop(run)
    assert run.stored_status() == running


def test_stop_leaves_what_is_done_as_it_is(tmp_path: Path) -> None:
    run = worked(tmp_path / "runs", method="pca", fields={"dimension": 16})
    before = run.status()
    assert jobs.stop(run) == before
    assert not run.stop_requested()
    run.request_stop()
    assert worker.work(run) == run.status() == before


def test_a_worker_whose_run_is_removed_ends_and_makes_nothing_anew(tmp_path: Path) -> None:
    run = jobs.submit(spec(fields=LONG), tmp_path / "runs")
    until(run, "running")
    process = psutil.Process(run.status().pid)
    while run.folder.exists():
        shutil.rmtree(run.folder, ignore_errors=True)
    assert run.status().state == "interrupted"
    process.wait(10)
    assert not run.folder.exists()


def test_a_run_that_is_removed_while_it_waits_leaves_the_queue(tmp_path: Path) -> None:
    run = create_run(spec(), tmp_path / "runs")
    with jobs.device_lock("cpu").acquire():
        waiting = Thread(target=lambda: time.sleep(0.5) or shutil.rmtree(run.folder))
        waiting.start()
        status = worker.work(run)
        waiting.join()
    assert (status.state, "was removed" in status.message or "could not be read" in status.message) == ("failed", True)
    assert not run.folder.exists()


def test_a_run_that_was_killed_is_interrupted_and_resumes_to_its_end(tmp_path: Path) -> None:
    run: Run = jobs.submit(spec(fields={"dimension": 16, "epochs": 60}), tmp_path / "runs")
    until(run, "running")
    with pytest.raises(UserError, match="already"):
        jobs.resume(run)
    os.killpg(run.status().pid or 0, signal.SIGKILL)
    until(run, "interrupted")
    jobs.resume(run)
    until(run, "done")
    assert [row["epoch"] for row in run.metrics()[0]] == list(range(61))


def test_stopping_before_the_worker_has_come_up_keeps_it_from_working(tmp_path: Path) -> None:
    run = jobs.submit(spec(fields=LONG), tmp_path / "runs")
    jobs.stop(run)
    assert run.status().state == "stopped"
    deadline = time.monotonic() + 20
    while "stopped" not in run.log_tail() and time.monotonic() < deadline and run.metrics()[0] == []:
        if _gone(run):
            break
        time.sleep(0.05)
    assert run.status().state == "stopped"
    assert run.metrics()[0] == []


def _gone(run: Run) -> bool:
    """Whether no process works on a run any more."""
    return not any(str(run.folder) in (process.info["cmdline"] or [])
                   and process.info["status"] != psutil.STATUS_ZOMBIE
                   for process in psutil.process_iter(["cmdline", "status"]))
