"""Plans, and real workers that start, wait, stop and resume."""

from __future__ import annotations

import mmap
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest

from tests.running import spec, suspended, wait_for, worked, write_digits
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.augmentation import CROPS
from udml_core.data.encoders import Encoder, EncoderSpec, choose_spec
from udml_core.data.features import activations_of, features_of
from udml_core.data.given import labels as annotations
from udml_core.data.splits import make_split
from udml_core.methods.closed_form import Frozen
from udml_core.methods.rpml import RPML
from udml_core.runs import Run, RunRequest, create_run
from udml_core.runs.analyses import list_analyses, plan_analysis
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.work import jobs
from udml_core.work.jobs import needed_memory
from udml_core.work.jobs.needed_memory import expected_memory
from udml_core.work.workers import follow_up
from udml_core.work.workers import train as worker
from udml_core.work.workers.execute import Reporter, execute

ROOT = Path(__file__).resolve().parents[2]
LONG = {"dimension": 32, "epochs": 900}
SHORT: dict[str, Any] = {"method": "pca", "fields": {"dimension": 16}}


@pytest.mark.parametrize(("options", "message"), [
    ({"backbone": "nonsense"}, "The backbone must be one of"),
    ({"backbone": "timm:vit_tiny"}, "'timm:vit_tiny' is unknown. Similar names: "),
    ({"device": "gpu"}, "must be auto, cpu, cuda:N or cuda:all"),
    ({"device": "cuda:77"}, r"this machine has \d+ CUDA devices"),
    ({"seed": -1}, "seed must be a whole number between 0 and 2,147,483,647, got -1"),
    ({"method": "nonsense"}, "The method must be one of rpml"),
    ({"fields": {"alpha": 120}}, "RPML.alpha must be between 0 and 90 degrees"),
    ({"pooling": "rmac"}, "Raw pixels have no feature maps"),
    ({"fields": {"dimension": 128}},
     "RPML.dimension must be at most the features' dimension 64, got 128. Lower the field 'dimension'"),
    ({"fields": {"dimension": 65}, "method": "srpml"}, "at most the features' dimension 64, got 65"),
    ({"method": "pca", "fields": {"dimension": 128}},
     r"at most 64 dimensions \(1438 images of 64-d features\), got dimension=128. Lower"),
    *(({"method": method, "fields": {"trains": "all", "dimension": 16}}, "'pixels' has nothing to train. Set the f")
      for method in ("plm", "pslr", "isif", "nce", "rotnet", "ssdml", "triplet")),
    ({"method": "deepcluster", "fields": {"clusters": 5000, "dimension": 16}},
     "DeepCluster.clusters must be at most the number of training images 1438, got 5000. Lower the field 'clusters'"),
    ({"method": "exemplar", "fields": {"classes": 1, "dimension": 16}},
     "Exemplar.classes must be 0 or between 2 and the number of training images 1438, got 1. Change the field"),
    ({"method": "lrml", "fields": {"trains": "all"}}, "'pixels' has nothing to train. Set the field 'trains' to"),
    ({"method": "lrml", "labels": "x"}, "labels must be one of 'drawn', 'given', got 'x'"),
    ({"select": "x"}, "select must be one of 'last', 'validation', 'recall', 'classes', 'judges', got 'x'"),
    ({"split": "x"}, "split must be one of 'zero-shot', 'seen', 'all', got 'x'"),
    ({"backbone": "squeezenet", "size": 8}, "size of squeezenet must be between 15 and 1024 pixels, got 8"),
    ({"backbone": "efficientnet-lite0", "size": 31}, "must be between 32 and 1024 pixels, got 31"),
    ({"method": "isif", "backbone": "cnn", "fields": {"trains": "all"}},
     r"ISIF\.batch_norm must be 'batch' .* cnn trains from scratch"),
    ({"method": "srpml", "backbone": "resnet18-small", "fields": {}}, "SRPML.batch_norm must be 'batch'"),
])
def test_requests_that_do_not_fit_are_rejected(options: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        spec(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [
    {"backbone": "cnn", "fields": {"trains": "all", "batch_norm": "batch"}}, {"backbone": "cnn"},
    {"backbone": "cifar-quick", "fields": {"trains": "all", "dimension": 64}},
    {"backbone": "squeezenet", "fields": {"trains": "all"}}], ids=str)
def test_frozen_batch_statistics_are_allowed_if_pretrained_or_unused(options: dict[str, object]) -> None:
    assert spec(method="isif", **options).method == "isif"  # type: ignore[arg-type]


def test_a_folder_with_too_few_images_for_a_method_is_rejected(tmp_path: Path) -> None:
    folder = str(write_digits(tmp_path / "flat", 5, by_class=False))
    for options, message in (({"method": "whiten"}, "got 5 images and n_neighbors=5"),
                             ({"method": "pca", "fields": {"dimension": 6}}, "at most 5 dimensions"),
                             ({"fields": {"dimension": 6, "beginning": "pca"}}, "at most 5 dimensions")):
        with pytest.raises(UserError, match=message):
            spec(dataset=folder, split=None, **options)  # type: ignore[arg-type]
    assert spec(dataset=folder, split=None, fields={"dimension": 6}).split == "all"


def test_few_images_lower_the_default_dimension_and_nothing_else(tmp_path: Path) -> None:
    folder = str(write_digits(tmp_path / "flat", 5, by_class=False))
    for options in ({"method": "pca"}, {"method": "rpml", "fields": {"beginning": "pca"}}):
        request = RunRequest.make({"dataset": folder, **options})
        planned = jobs.plan(request, catalog.load(folder))
        assert planned.fields["dimension"] == 5
        words = jobs.words_of_dimension(planned, request)
        assert words.startswith("The embedding has 5 dimensions, not the default of ")
    for options in ({"method": "pca", "fields": {"dimension": 4}}, {"method": "frozen"}, {"method": "rpml"}):
        request = RunRequest.make({"dataset": folder, **options})
        assert jobs.words_of_dimension(jobs.plan(request, catalog.load(folder)), request) == ""


def test_unlabeled_images_use_the_split_all_and_reject_options_that_need_labels(tmp_path: Path) -> None:
    folder = str(write_digits(tmp_path / "flat", by_class=False))
    assert spec(dataset=folder, split=None, method="frozen").split == "all"
    with pytest.raises(UserError, match="needs class labels"):
        spec(dataset=folder, split=None, method="pca", select="validation")
    with pytest.raises(UserError, match="zero-shot split needs at least 2 classes"):
        spec(dataset=folder, split="zero-shot", method="pca")


@pytest.mark.parametrize(("per_class", "works"), [(9, False), (10, True)])
def test_validation_needs_a_class_with_two_images_held_out(per_class: int, works: bool, tmp_path: Path) -> None:
    for index, path in enumerate(sorted(write_digits(tmp_path / "flat", 4 * per_class, by_class=False).iterdir())):
        target = tmp_path / "classes" / str(index % 4) / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
    options = {"dataset": str(tmp_path / "classes"), "split": "zero-shot", "method": "frozen", "select": "validation"}
    if works:
        run = create_run(spec(**options), tmp_path / "runs")
        assert worker.work(run).state == "done"
        assert all(0 <= row["validation map@r"] <= 1 for row in run.metrics()[0])
        assert run.best_embedder_path.exists()
        return
    with pytest.raises(UserError, match=r"holds out 15% of each class .* has 9 images\. Use select 'last'"):
        spec(**options)


def test_numbers_of_few_labels_have_defaults_and_are_checked(tmp_path: Path) -> None:
    assert spec("lrml").labels_per_class == 10
    assert spec("lrml", labels_per_class=3).labels_per_class == 3
    assert spec("frozen").labels_per_class is None
    for options, message in (
            ({"method": "frozen", "labels_per_class": 5}, "and frozen does not"),
            ({"method": "frozen", "labels": "given"}, "and frozen does not"),
            ({"method": "lrml", "labels_per_class": 0}, "labels_per_class must be a whole number .* 1, got 0"),
            ({"method": "lrml", "labels_per_class": 10**6}, "between 1 and 146, the size of the .* got 1,000,000"),
            ({"method": "lrml", "labels_per_class": 1}, "got 10 labels in 10 cl"),
            ({"method": "lrml", "labels": "given", "labels_per_class": 5}, "labels_per_class=5 does not apply")):
        with pytest.raises(UserError, match=message):
            spec(**options)  # type: ignore[arg-type]
    folder = str(write_digits(tmp_path / "flat", by_class=False))
    with pytest.raises(UserError, match="labels"):
        spec("lrml", dataset=folder, split=None)


def test_assigned_labels_select_the_epoch_unless_the_last_is_requested(tmp_path: Path,
                                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    for start in range(2):
        annotations.assign(catalog.load("digits"), range(start, 20, 2), f"class {start}")
    for options, select in (({"labels": "given"}, "validation"), ({"labels": "given", "select": "last"}, "last"),
                            ({}, "last"), ({"select": "validation"}, "validation")):
        assert spec("lrml", split="all", **options).select == select  # type: ignore[arg-type]


def test_the_estimate_counts_features_only_if_they_are_not_cached() -> None:
    dataset = catalog.load("digits")
    planned = spec(backbone="cnn", seed=91)
    assert jobs.estimate(planned, dataset).feature_seconds > 0
    features_of(dataset, Encoder(planned.encoder))
    estimate = jobs.estimate(planned, dataset)
    assert estimate.feature_seconds == 0
    assert estimate.training_seconds > 0
    assert estimate.memory > 1e8


def test_a_run_beyond_the_memory_is_refused_with_what_to_change(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = choose_spec("pixels", 112, False, size=112)  # 37,632 values an image
    needed = expected_memory(Frozen(), wide, *images_of_halves(2951, 2951))
    assert 2e9 < needed < 5e9, "measured: 3.5 GB on 5,902 birds, a part of which the process has freed"
    assert expected_memory(Frozen(), wide, *images_of_halves(2951, 20_000)) > 3 * needed, "every test image is compared"
    assert expected_memory(RPML(dimension=64), wide, *images_of_halves(2951, 2951)) < needed
    monkeypatch.setattr(needed_memory, "free_memory", lambda: 5e8)
    monkeypatch.setattr(psutil, "process_iter", lambda _: [])
    with pytest.raises(UserError, match=r"about 0\.6 GB of memory, and 0\.5 GB are free here\. Close other programs"):
        spec()
    request = RunRequest.make({"dataset": "digits", "method": "rpml", "fields": {"dimension": 16}})
    assert jobs.plan(request, catalog.load("digits"), gpus=1), "on another machine"
    worker = {"cmdline": ["python", "-m", "udml_core", "ready-work", "runs"], "memory_info": SimpleNamespace(rss=2e8)}
    other = {"cmdline": ["python", "-m", "udml_core", "app"], "memory_info": SimpleNamespace(rss=9e9)}
    hidden = {"cmdline": None, "memory_info": None}
    monkeypatch.setattr(psutil, "process_iter", lambda _: [SimpleNamespace(info=of) for of in (worker, other, hidden)])
    assert spec(), "the run that works now ends before this one starts"


@pytest.mark.parametrize(("kind", "fix"), [
    ("umap", "This map needs about"), ("graph", "This graph needs about"), ("refine", "This refinement needs about"),
    ("audit", "This audit needs about"), ("pca", "choose a smaller scope, such as the test half")])
def test_an_analysis_beyond_the_memory_is_refused_before_it_starts(
        kind: str, fix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = create_run(spec(**SHORT), tmp_path)
    assert worker.work(run, analyse=False).state == "done"
    monkeypatch.setattr(psutil, "process_iter", lambda _: [])
    monkeypatch.setattr(needed_memory, "free_memory", lambda: 5e8)
    launched: list[Any] = []
    monkeypatch.setattr(jobs.launch, "launch", launched.append)
    with pytest.raises(UserError, match=fix):
        jobs.analyse(run, plan_analysis(kind))
    assert not list_analyses(run)
    assert not launched
    monkeypatch.setattr(needed_memory, "free_memory", lambda: 2e9)
    assert jobs.analyse(run, plan_analysis(kind)).folder == launched[0].folder
    monkeypatch.setattr(needed_memory, "free_memory", lambda: 5e8)
    assert jobs.analyse(run, plan_analysis(kind)), "one that waits was checked"


def test_a_map_that_follows_a_run_is_refused_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = create_run(spec(**SHORT), tmp_path)
    assert worker.work(run, analyse=False).state == "done"
    monkeypatch.setattr(needed_memory, "free_memory", lambda: 5e8)

    def earlier(root: Path) -> SimpleNamespace:
        words = ["python", "-m", "udml_core", "analyse-work", str(root / "run" / "analyses" / "umap-1")]
        return SimpleNamespace(info={"cmdline": words, "memory_info": SimpleNamespace(rss=2e9)})

    monkeypatch.setattr(psutil, "process_iter", lambda _: [earlier(tmp_path)])
    needed_memory.check_analysis(run, plan_analysis("tsne"))  # it begins when the one that works has ended
    monkeypatch.setattr(psutil, "process_iter", lambda _: [earlier(tmp_path / "elsewhere")])
    with pytest.raises(UserError, match="This map needs about"):
        follow_up._compute(run, plan_analysis("tsne"))
    assert not list_analyses(run)


def test_only_the_half_that_an_analysis_covers_must_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Digits have 1,797 images, of which 359 are tested; a class has at most 37 of these."""
    run = create_run(spec(**SHORT), tmp_path)
    assert worker.work(run, analyse=False).state == "done"
    needed: list[float] = []
    monkeypatch.setattr(needed_memory, "_check", lambda bytes_, *_: needed.append(bytes_))
    monkeypatch.setattr(needed_memory, "free_memory", lambda: 0.0)
    for scope in ("test", "all"):
        jobs.needed_memory.check_analysis(run, plan_analysis("refine", scope=scope, recipe="whiten"))
    of = Refinement(recipe="whiten").expected_bytes
    assert [size - needed_memory.PROGRAM for size in needed] == [of(359, 16, 37), of(1797, 16, 183)]
    assert of(10_000, 16, 900) > 5 * of(10_000, 16, 0), "MAP@R compares all images of a class"
    assert of(10_000, 16, 5_000) == of(10_000, 16, 0), "of large classes it is not computed"


def test_a_run_keeps_what_each_part_was_planned_to_need_and_needed(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    much = 300_000_000
    evaluate_run = worker.evaluate_run

    def evaluate_with_much_memory(*arguments: Any) -> Any:
        with mmap.mmap(-1, much) as block:  # an array could reuse memory that was freed
            block[::4096] = bytes(len(range(0, much, 4096)))
        return evaluate_run(*arguments)

    monkeypatch.setattr(worker, "evaluate_run", evaluate_with_much_memory)
    planned = spec(**SHORT)
    run = create_run(planned, tmp_path)
    assert worker.work(run).state == "done"
    parts = jobs.memory_by_part(run.status())
    assert list(parts) == ["features", "training", "index", "evaluation", "first map"]
    expected = jobs.memory_of(planned, catalog.load("digits"))
    assert {name: of[0] for name, of in parts.items()} == expected
    assert jobs.estimate(planned, catalog.load("digits")).memory_by_part == expected
    measured = {name: of[1] or 0.0 for name, of in parts.items()}
    assert min(measured.values()) > 1e8
    if sys.platform == "linux":
        others = [measured[name] for name in ("features", "training", "index", "first map")]
        assert measured["evaluation"] > max(others) + much / 2
    earlier = run.status().model_copy(update={"planned": {}, "peaks": {}})
    assert jobs.memory_by_part(earlier) == {}, "a run of an earlier version"


def images_of_halves(train: int, test: int, labels: bool = True, overlap: int = 0) -> tuple[Any, Any]:
    """Return what the memory of a run depends on: a data set, and halves that share some images."""
    class Images(SimpleNamespace):
        def __len__(self) -> int:
            return train + test - overlap

    images = Images(labels=np.zeros(0) if labels else None, evaluation_classes=None)
    return images, SimpleNamespace(train=range(train), test=range(test))


@pytest.mark.parametrize(("train", "test", "labels", "measured"), [
    (100_000, 100_000, False, 0.88e9), (300_000, 300_000, False, 1.39e9), (99_798, 100_202, True, 1.14e9),
    (299_903, 300_097, True, 1.78e9), (1_000_000, 1_000_000, False, 3.1e9)])
def test_the_expected_memory_is_near_the_measured_peak(train: int, test: int, labels: bool, measured: float,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    """Measured: the resident memory of runs of frozen vectors of 128 numbers, with all images in both halves or not."""
    monkeypatch.setattr(needed_memory, "feature_width", lambda _: 128)
    overlap = 0 if labels else train
    described = images_of_halves(train, test, labels, overlap)
    expected = expected_memory(Frozen(), EncoderSpec(backbone="pixels"), *described)
    assert 0.95 * measured < expected < 1.25 * measured


def test_the_estimate_counts_early_blocks_once_if_the_last_blocks_are_trained() -> None:
    """A pass costs 0.0005 + 0.1·8²/10⁶ s, 32 % of it in the late blocks; an activation is 128 maps of 2×2 float16."""
    dataset = catalog.load("digits")
    fields = {"batch": 100, "proxies": 0, "epochs": 2, "dimension": 8}
    last, full = (spec("plm", fields=fields | {"trains": part, "batch_norm": "batch"}, backbone="cnn", seed=92,
                       split="zero-shot")
                  for part in ("last", "all"))
    encoder = Encoder(last.encoder)
    features_of(dataset, encoder)
    train, image, pass_ = make_split(dataset, "zero-shot").train, 128 * 2 * 2 * 2, 0.0005 + 0.1 * 64 / 1e6
    before, other = jobs.estimate(last, dataset), jobs.estimate(full, dataset)
    views = 4 * len(train) + len(dataset)
    assert before.feature_seconds == pytest.approx(0.68 * pass_ * views)
    assert before.disk == pytest.approx(image * views)
    assert other.training_seconds - before.training_seconds == pytest.approx(2 * 7 * 0.68 * pass_ * len(train))
    assert other.memory - before.memory == pytest.approx(120 * 600 * 0.68 * 64)
    assert (other.feature_seconds, other.disk) == (0, 0)
    activations_of(dataset, encoder, train, 4, CROPS, 92)
    assert jobs.estimate(last, dataset).disk == pytest.approx(image * len(dataset))
    activations_of(dataset, encoder, np.arange(len(dataset)), 1, CROPS, 0)
    after = jobs.estimate(last, dataset)
    assert (after.feature_seconds, after.disk) == (0, 0)
    assert after.training_seconds == before.training_seconds


def test_the_command_line_raises_the_memory_thresholds_before_it_loads_a_numerical_library() -> None:
    code = ("import sys\n"
            "from udml_core import __main__ as program\n"
            "program.keep_freed_memory = lambda: print('torch' in sys.modules)\n"
            "sys.argv = ['udml', '--help']\n"
            "program.main()")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "False"


@pytest.mark.slow
def test_runs_start_in_the_order_of_submission_unless_moved_and_can_be_stopped(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    first = jobs.submit(spec(fields=LONG), root)
    wait_for(first, "running")
    second, third, moved = waiting = [jobs.submit(spec(**SHORT), root) for _ in range(3)]
    assert [jobs.queue_position(run, root) for run in (first, *waiting)] == [0, 1, 2, 3]
    jobs.move(moved, 0)
    assert [jobs.queue_position(run, root) for run in (first, *waiting)] == [0, 2, 3, 1]
    assert [run.status().state for run in (first, *waiting)] == ["running", "waiting", "waiting", "waiting"]
    began = time.monotonic()
    jobs.stop(first)
    assert time.monotonic() - began < 5
    assert first.status().state == "stopped"
    for run in waiting:
        wait_for(run, "done")
    assert (moved.status().finished or 0) <= (second.status().started or 0)
    assert (second.status().finished or 0) <= (third.status().started or 0)
    with pytest.raises(UserError, match="is done"):
        jobs.resume(second)


@pytest.mark.slow
def test_all_waiting_runs_are_canceled_and_none_starts(tmp_path: Path) -> None:
    with jobs.device_lock("cpu"):  # as if another program's run trained
        runs = [jobs.submit(spec(method="frozen"), tmp_path / "runs") for _ in range(4)]
        assert jobs.cancel_waiting(tmp_path / "runs") == 4
    time.sleep(2)  # a dispatcher looks at the device every 0.3 s
    assert [run.status().state for run in runs] == ["stopped"] * 4
    assert [run.id for run in runs if run.log_path.exists()] == []
    assert jobs.cancel_waiting(tmp_path / "runs") == 0


def test_a_run_that_waits_for_another_program_can_be_stopped_and_resumed(tmp_path: Path) -> None:
    with jobs.device_lock("cpu").acquire():
        run = jobs.submit(spec(**SHORT), tmp_path / "runs")
        time.sleep(2)
        assert run.status().state == "waiting"
        assert not run.is_alive()
        began = time.monotonic()
        jobs.stop(run)
        assert time.monotonic() - began < 5
        assert run.status().state == "stopped"
        assert not run.is_alive()
        jobs.resume(run)
    wait_for(run, "done")


STAND_IN = """
import os, subprocess, sys, time
from pathlib import Path
import psutil
from udml_core.runs.tasks import Task
task = Task(Path(sys.argv[1]))
lock = task.lock().acquire()
child = subprocess.Popen(["sleep", "60"])
(task.folder / "child").write_text(str(child.pid))
born = psutil.Process().create_time()
task.write_status(task.stored_status().model_copy(update={"state": "running", "pid": os.getpid(), "pid_born": born}))
time.sleep(60)
"""
"""A worker that holds the lock, has a child process and ignores requests to stop."""


@pytest.mark.slow
@pytest.mark.parametrize("suspended", [False, True])
def test_stop_ends_a_worker_and_its_children_within_five_seconds(suspended: bool, tmp_path: Path) -> None:
    run = create_run(spec(fields=LONG), tmp_path / "runs")
    worker = subprocess.Popen([sys.executable, "-c", STAND_IN, str(run.folder)], start_new_session=True)
    wait_for(run, "running")
    child = psutil.Process(int((run.folder / "child").read_text()))
    if suspended:
        os.kill(worker.pid, signal.SIGSTOP)  # a suspended process reacts to SIGKILL only
    began = time.monotonic()
    jobs.stop(run)
    assert time.monotonic() - began < 5
    assert run.status().state == "stopped"
    assert not run.is_alive()
    assert worker.wait(30) != 0  # both would end by themselves after 60 seconds
    _, alive = psutil.wait_procs([child], timeout=30)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.slow
def test_stop_ends_a_worker_that_was_started_with_a_relative_path(tmp_path: Path) -> None:
    run = create_run(spec(fields=LONG), tmp_path / "runs")
    worker = subprocess.Popen([sys.executable, "-m", "udml_core", "work", "."], cwd=run.folder,
                              env=os.environ | {"PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL)
    wait_for(run, "running")
    began = time.monotonic()
    assert jobs.stop(run).state == "stopped"
    assert time.monotonic() - began < 5
    worker.wait(30)
    assert run.status().state == "stopped"


@pytest.mark.slow
def test_a_worker_without_signals_obeys_the_stop_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = jobs.submit(spec(fields=LONG), tmp_path / "runs")
    wait_for(run, "running")
    monkeypatch.setattr("udml_core.work.jobs.launch._signal_group", lambda *_: None)
    monkeypatch.setattr("udml_core.work.jobs.launch.PATIENCE", 60.0)
    assert jobs.stop(run).state == "stopped"
    assert "stopped" in run.log_tail()


@pytest.mark.parametrize(("stops", "state", "message"), [
    (True, "stopped", "Stopped."), (False, "failed", "RuntimeError: Foreign code was interrupted.")])
def test_an_error_after_a_request_to_stop_is_a_stop_and_no_failure(
        stops: bool, state: str, message: str, tmp_path: Path) -> None:
    def fail(_: Reporter) -> None:
        if stops:
            run.request_stop()
        raise RuntimeError("Foreign code was interrupted.")

    run = create_run(spec(), tmp_path)
    status = execute(run, fail)
    assert (status.state, status.message) == (state, message)
    assert run.status() == status


def test_a_worker_that_cannot_be_stopped_is_not_reported_as_stopped(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test holds the lock, and another process uses the status's process number."""
    monkeypatch.setattr("udml_core.work.jobs.launch.PATIENCE", 0.1)
    run = create_run(spec(), tmp_path / "runs")
    running = run.stored_status().model_copy(update={"state": "running", "pid": os.getpid(), "pid_born": 1.0})
    run.write_status(running)
    with run.lock().acquire(), pytest.raises(UserError, match="did not stop: its worker, process"):
        jobs.stop(run)
    assert run.stored_status() == running


def test_stop_does_not_change_a_finished_run(tmp_path: Path) -> None:
    run = worked(tmp_path / "runs", method="pca", fields={"dimension": 16})
    before = run.status()
    assert jobs.stop(run) == before
    assert not run.stop_requested()
    run.request_stop()
    assert worker.work(run) == run.status() == before


@pytest.mark.slow
def test_a_worker_whose_run_is_removed_ends_and_writes_nothing(tmp_path: Path) -> None:
    run = jobs.submit(spec(fields=LONG), tmp_path / "runs")
    wait_for(run, "running")
    process = psutil.Process(run.status().pid)
    while run.folder.exists():
        shutil.rmtree(run.folder, ignore_errors=True)
    assert run.status().state == "interrupted"
    process.wait(60)
    assert not run.folder.exists()


def test_a_removed_run_leaves_the_queue(tmp_path: Path) -> None:
    run = create_run(spec(), tmp_path / "runs")
    with jobs.device_lock("cpu").acquire():
        waiting = Thread(target=lambda: time.sleep(0.5) or shutil.rmtree(run.folder))
        waiting.start()
        status = worker.work(run)
        waiting.join()
    assert (status.state, "was removed" in status.message or "could not be read" in status.message) == ("failed", True)
    assert not run.folder.exists()


def test_a_killed_run_is_interrupted_and_can_be_resumed(tmp_path: Path) -> None:
    run: Run = jobs.submit(spec(fields={"dimension": 16, "epochs": 10}), tmp_path / "runs")
    wait_for(run, "running")
    with suspended(run):
        with pytest.raises(UserError, match="already"):
            jobs.resume(run)
        os.killpg(run.status().pid or 0, signal.SIGKILL)
    wait_for(run, "interrupted")
    jobs.resume(run)
    wait_for(run, "done")
    assert [row["epoch"] for row in run.metrics()[0]] == list(range(11))


@pytest.mark.slow
def test_a_run_stopped_before_its_worker_starts_does_no_work(tmp_path: Path) -> None:
    run = jobs.submit(spec(fields=LONG), tmp_path / "runs")
    jobs.stop(run)
    assert run.status().state == "stopped"
    other = jobs.submit(spec(**SHORT), tmp_path / "runs")
    wait_for(other, "done")
    assert run.status().state == "stopped"
    assert run.metrics()[0] == []
