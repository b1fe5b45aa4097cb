"""Start, stop and queue what works in the background.

A run executes as `python -m udml_core work RUN`, an analysis as `python -m udml_core analyse-work FOLDER`, each in a
process group of its own. Runs take turns at a device; analyses run on the CPU at once.
"""

from __future__ import annotations

import hashlib
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import psutil
import torch
from filelock import FileLock

from udml_core.analyses import Analysis, AnalysisSpec, analysis_at, create_analysis, find_analysis
from udml_core.backbones import check_backbone, choose_spec, feature_width, image_seconds, needs_batches
from udml_core.backbones.pooling import Pooling
from udml_core.data.dataset import Dataset, read_given_image
from udml_core.data.features import features_path
from udml_core.data.given.labels import given
from udml_core.data.given.pairs import MOST_PAIRS, PairSet
from udml_core.data.label_budget import LabelSource, check_labels, default_per_class, default_select
from udml_core.data.splits import SPLITS, VALIDATION_SHARE, Select, Split, SplitName, default_split, make_split
from udml_core.errors import UserError
from udml_core.methods import Method, PairMethod, find_method
from udml_core.methods.shared.projection import check_encoder
from udml_core.paths import cache_folder
from udml_core.runs import Run, Spec, create, list_runs
from udml_core.tasks import ADVICE, LIVE_STATES, Status, Task

PATIENCE = 3.0
"""Seconds that a worker gets to end by itself."""
BORN_TOLERANCE = 2.0
"""Seconds by which two processes may differ about when a third began: the clock is set now and then."""
ASSUMED_WIDTH = 1024
"""Of features whose network tells it only once it is loaded, for guesses."""
MOST_PLACED = 200
CHANGEABLE = ("epochs", "batch", "bias", "margin", "learning_rate")
"""Fields that a continued run may have otherwise."""


def plan(dataset: Dataset, method: str, fields: Mapping[str, Any], backbone: str = "efficientnet-lite0",
         pooling: Pooling = "mean", size: int | None = None, split: SplitName | None = None, seed: int = 0,
         device: str = "auto", select: Select | None = None, labels: LabelSource = "drawn",
         labels_per_class: int | None = None, most_pairs: int = MOST_PAIRS, pairs: PairSet | None = None) -> Spec:
    """A run's spec, with everything checked that can be checked before training.

    Args:
        select: validation where labels were given, else last, unless told.
        labels, labels_per_class: for methods that learn from few labels: drawn from the data set's by the seed, or
            those that a person has given so far.
        most_pairs: how many a method that learns from pairs draws from the labels, at most.
        pairs: what it learns from in their place, to be handed to `submit` as well.

    Raises:
        UserError: a value does not fit, naming it.
    """
    built = find_method(method).make(fields)
    check_backbone(backbone)
    if not 0 <= seed < 2**31:
        raise UserError(f"The seed must be between 0 and {2**31 - 1}, got {seed}.")
    name, select = split or default_split(dataset), select or default_select(labels)
    for what, chosen, choices in (("split", name, SPLITS), ("selection of the epoch", select, get_args(Select)),
                                  ("source of labels", labels, get_args(LabelSource))):
        if chosen not in choices:
            raise UserError(f"The {what} must be one of {', '.join(choices)}, got '{chosen}'.")
    parts = make_split(dataset, name, select if labels == "drawn" else "last", seed)
    if len(parts.train) < 2 or len(parts.test) < 2:
        raise UserError(f"The split '{name}' needs at least 2 images in each half, got {len(parts.train)} to train and "
                        f"{len(parts.test)} to test. Add images or choose the split 'all'.")
    if select == "validation" and labels == "drawn":
        _check_validation(dataset, parts)
    _check_supervision(built, dataset, parts, most_pairs, pairs)
    encoder = choose_spec(backbone, dataset.native_size, dataset.gray, pooling, size, seed)
    built.check(len(parts.train), feature_width(encoder))
    check_encoder(getattr(built, "trains", "head") == "encoder", encoder)
    if built.trains_encoder and getattr(built, "batch_norm", "batch") == "frozen" and needs_batches(encoder):
        raise UserError(f"{type(built).__name__}.batch_norm must be 'batch' where {backbone} trains from scratch, as "
                        "it has learnt no statistics to keep, got 'frozen'. Set the field 'batch_norm' to 'batch'.")
    spec = Spec(dataset=dataset.name, dataset_title=dataset.title, fingerprint=dataset.fingerprint, method=method,
                fields=dict(fields), encoder=encoder, split=name, seed=seed, device=resolve_device(device),
                select=select, labels=labels, labels_per_class=labels_per_class,
                given_labels=given(dataset) if labels == "given" else {},
                pairs="labels" if pairs is None else "given", most_pairs=most_pairs)
    if built.supervision == "few":
        spec = spec.model_copy(update={"labels_per_class": _labels_a_class(spec, dataset, parts)})
        few = spec.few_labels(dataset, parts.train)
        assert few is not None
        check_labels(few)
    elif labels != "drawn" or labels_per_class is not None:
        raise UserError("Only methods that learn from few labels are told how many or which, and "
                        f"{built.name} is none of them. Leave labels and the number of labels per class out, or choose "
                        "another method.")
    return spec


def plan_continuation(run: Run, dataset: Dataset, pairs: PairSet, fields: Mapping[str, Any], device: str = "auto"
                      ) -> Spec:
    """The spec of a new run that starts from what a finished one kept and learns from further pairs only: the paper's
    online use. Data set, features, split, seed and method are the finished run's, which stays as it is.

    Args:
        pairs: to be handed to `submit` as well, with the finished run's folder of runs.
        fields: what is to be otherwise, of those that do not shape what is learnt; `epochs` are the new run's own, 1
            unless told.

    Raises:
        UserError: the run cannot be continued, or a value does not fit.
    """
    spec, state = run.spec(), run.status().state
    before = spec.build_method()
    if not isinstance(before, PairMethod):
        raise UserError(f"Only NML, ML and KML go on with further pairs, and {run.id} is {before.title}. Name a run of "
                        "one of these.")
    if state != "done":
        raise UserError(f"Only a finished run is continued, and {run.id} is {state}. {ADVICE[state]}")
    run.kept_checkpoint()
    changed = spec.fields | {"epochs": 1} | dict(fields)
    built = find_method(spec.method).make(changed)
    for name, value in built:
        if name not in CHANGEABLE and value != getattr(before, name):
            raise UserError(f"A continued run keeps the {name} that it starts with, {getattr(before, name)}, got "
                            f"{value}. Leave it out, or train anew; what can change are {', '.join(CHANGEABLE)}.")
    run.check_dataset(dataset)
    train = make_split(dataset, spec.split, spec.holds_out, spec.seed).train
    pairs.within(train).check()
    built.check(len(train), feature_width(spec.encoder))
    return Spec.model_validate(spec.model_dump(exclude={"created", "versions"}) | {
        "fields": changed, "device": resolve_device(device), "pairs": "given", "starts_from": run.id})


def _labels_a_class(spec: Spec, dataset: Dataset, parts: Split) -> int | None:
    """How many labels of each class are drawn; None where they are given."""
    if spec.labels == "given":
        if spec.labels_per_class is not None:
            raise UserError(f"Labels that were given are all used, and labels_per_class={spec.labels_per_class} asks "
                            "to draw some. Leave it out, or train with the labels 'drawn'.")
        return None
    if spec.labels_per_class is None or dataset.labels is None:
        return default_per_class(dataset, parts.train)
    largest = int(np.bincount(dataset.labels[parts.train]).max())
    if not 1 <= spec.labels_per_class <= largest:
        raise UserError(f"The number of labels per class must be between 1 and {largest:,}, the images that the "
                        f"largest class of the training half has, got {spec.labels_per_class:,}. Choose one of these.")
    return spec.labels_per_class


def _check_supervision(method: Method, dataset: Dataset, parts: Split, most_pairs: int, pairs: PairSet | None) -> None:
    """Whether the data set has what a method learns from."""
    if method.supervision == "pairs" and pairs is not None:
        pairs.within(parts.train).check()
        return
    if pairs is not None:
        raise UserError(f"{method.title} learns from no pairs, and some were given. Leave them out, or choose NML.")
    if not 2 <= most_pairs <= MOST_PAIRS:
        raise UserError(f"The number of pairs must be between 2 and {MOST_PAIRS:,}, got {most_pairs:,}.")
    if method.supervision in ("all", "pairs") and dataset.labels is None:
        other = " or give pairs of images," if method.supervision == "pairs" else ""
        raise UserError(f"{method.title} learns from class labels, and {dataset.title} has none. Sort the images into "
                        f"one sub-folder a class,{other} or choose another method.")


def _check_validation(dataset: Dataset, parts: Split) -> None:
    """MAP@R is defined where a class has two held-out images; without any, no epoch could be better than another."""
    if dataset.labels is None:
        raise UserError("Selecting the epoch by validation needs class labels, and this data set has none. "
                        "Use select 'last'.")
    if np.bincount(dataset.labels[parts.validation]).max(initial=0) < 2:
        half = np.concatenate([parts.train, parts.validation])
        raise UserError(f"Selecting the epoch by validation holds out {VALIDATION_SHARE:.0%} of each class and needs "
                        f"two images of one class there; the largest class of the training half has "
                        f"{np.bincount(dataset.labels[half]).max()} images. Use select 'last', or add images.")


@dataclass(frozen=True)
class Expectation:
    """A rough guess before the start: seconds of features still to compute and of training, and bytes of memory."""

    feature_seconds: float
    training_seconds: float
    memory: float


def expect(spec: Spec, dataset: Dataset) -> Expectation:
    """What a run will take on two CPU cores, within a factor of two or three."""
    method = spec.build_method()
    train = len(make_split(dataset, spec.split).train)
    per_image = image_seconds(spec.encoder)
    computed = features_path(dataset, spec.encoder).exists()
    width = feature_width(spec.encoder) or ASSUMED_WIDTH
    epoch = method.expected_seconds(train, width, per_image)
    activations = 120 * 600 * spec.encoder.size**2 if method.trains_encoder else 0
    encoded = (0 if computed else len(dataset)) + method.views_needed * train
    return Expectation(encoded * per_image, epoch * method.epochs_planned,
                       600e6 + method.expected_bytes(train, width) + activations)


def resolve_device(text: str) -> str:
    """`cpu` or `cuda:N` from `auto`, `cpu`, `cuda` or `cuda:N`.

    Raises:
        UserError: the device is not there.
    """
    count = torch.cuda.device_count()
    if text == "auto":
        return "cuda:0" if count else "cpu"
    if text == "cpu":
        return text
    name, _, number = text.partition(":")
    if name != "cuda" or not (number or "0").isdecimal():
        raise UserError(f"The device must be auto, cpu or cuda:N, got '{text}'.")
    if int(number or 0) >= count:
        raise UserError(f"The device {text} was asked for, and {count} CUDA devices are here. Start a run with the "
                        "device cpu.")
    return f"cuda:{int(number or 0)}"


def submit(spec: Spec, root: Path, pairs: PairSet | None = None) -> Run:
    """Create a run, with the pairs that it was planned with, and start its worker, which waits for its turn by itself.
    """
    run = create(spec, root, pairs)
    _launch(run)
    return run


def analyse(run: Run, spec: AnalysisSpec, images: Mapping[str, bytes] | None = None) -> Analysis:
    """The analysis that was asked for: the one that is there or under way, else one that is started now.

    Args:
        images: PNG files that are to be placed, by name; see `place_images`.

    Raises:
        UserError: the run is not done, or the map that it is to be made from is not.
    """
    status = run.status()
    if status.state != "done":
        raise UserError(f"Only finished runs are analysed, and {run.id} is {status.state}. {ADVICE[status.state]}")
    if spec.source and not find_analysis(run, spec.source).is_done():
        raise UserError(f"The map {spec.source} is needed first, and it is "
                        f"{find_analysis(run, spec.source).status().state}.")
    analysis = analysis_at(run, spec)
    if not analysis.folder.exists():
        _launch(create_analysis(run, spec, images))
    elif not analysis.is_done() and analysis.status().state not in LIVE_STATES:
        _start_again(analysis)
    return analysis


def place_images(run: Run, projection: Analysis, frame: str, files: Sequence[tuple[str, bytes]]) -> Analysis:
    """Place images that a person brings on a frame of a finished map, in the background.

    Args:
        files: names, and contents in any format that is read.

    Raises:
        UserError: a file is no image, there are none or too many, or the map has no such frame.
    """
    if not 1 <= len(files) <= MOST_PLACED:
        raise UserError(f"Between 1 and {MOST_PLACED} images are placed at a time, got {len(files)}.")
    if frame not in projection.spec().frames:
        raise UserError(f"The map {projection.id} has the frames {', '.join(projection.spec().frames)}, "
                        f"and '{frame}' was asked for.")
    images = {f"{number:04d}.png": _as_png(name, content) for number, (name, content) in enumerate(files)}
    digest = hashlib.sha256(b"".join(hashlib.sha256(content).digest() for _, content in files)).hexdigest()
    spec = AnalysisSpec(kind="placed", source=projection.id, frame=frame, names=tuple(name for name, _ in files),
                        content=digest)
    return analyse(run, spec, images)


def _as_png(name: str, content: bytes) -> bytes:
    written = io.BytesIO()
    read_given_image(io.BytesIO(content), name).save(written, "PNG")
    return written.getvalue()


def resume(task: Run | Analysis) -> None:
    """Go on with a run behind its last finished epoch, or compute an analysis again. Of a run that is done, results
    that cannot be read are made anew.

    Raises:
        UserError: it is done, a worker is at it, or its method is not known any more.
    """
    if isinstance(task, Run):
        task.spec().build_method()
    state = task.status().state
    if state == "done" and not (isinstance(task, Run) and task.broken_result()):
        raise UserError(f"{task.id} is done; there is nothing to resume.")
    if state in LIVE_STATES:
        raise UserError(f"{task.id} is {state} already.")
    _start_again(task)


def _start_again(task: Run | Analysis) -> None:
    status = task.stored_status()
    task.clear_failure()
    task.write_status(Status(state="waiting", ticket=time.time(), epoch=status.epoch, epochs=status.epochs))
    _launch(task)


def stop(task: Task) -> Status:
    """End a task's whole process group: asked first, after three seconds by force. Finished epochs stay.

    A task that nobody works on and that waits for nobody stays as it is.

    Raises:
        UserError: its worker goes on all the same.
    """
    if task.status().state not in LIVE_STATES:
        return task.status()
    task.request_stop()
    for order in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        if not task.is_alive():
            break
        _signal_group(task, order)
        deadline = time.monotonic() + PATIENCE
        while task.is_alive() and time.monotonic() < deadline:
            time.sleep(0.05)
    status = task.stored_status()
    if task.is_alive():
        raise UserError(f"{task.id} was asked to stop and goes on: its worker (process {status.pid}) could not be "
                        "ended from here. It ends by itself at its next step; if it does not, end that process.")
    if status.state in LIVE_STATES:
        status = status.model_copy(update={"state": "stopped", "finished": time.time(), "message": "Stopped."})
        task.write_status(status)
    return status


def place(run: Run, root: Path) -> int:
    """How many runs are before this one at its device; 0 means that it is next, or running."""
    mine, device = run.stored_status(), run.spec().device
    ahead = 0
    for other in list_runs(root):
        status = other.stored_status()
        if other.id == run.id or status.state not in LIVE_STATES or _device_of(other) != device:
            continue
        earlier = status.state == "running" or (status.ticket, other.id) < (mine.ticket, run.id)
        if earlier and other.status().state in LIVE_STATES:
            ahead += 1
    return ahead


def _device_of(run: Run) -> str | None:
    """None where the run was removed meanwhile."""
    try:
        return run.spec().device
    except UserError:
        return None


def device_lock(device: str) -> FileLock:
    """Held by the one run that works on a device, whatever folder of runs it belongs to."""
    folder = cache_folder() / "devices"
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / f"{device.replace(':', '-')}.lock")


def _launch(task: Run | Analysis) -> None:
    command = "work" if isinstance(task, Run) else "analyse-work"
    package_root = str(Path(__file__).resolve().parents[1])
    paths = [package_root, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONIOENCODING": "utf-8"}
    group: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        group = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    with task.log_path.open("ab") as log:
        subprocess.Popen([sys.executable, "-m", "udml_core", command, str(task.folder)], stdin=subprocess.DEVNULL,
                         stdout=log, stderr=log, env=environment, **group)


def _signal_group(task: Task, order: int) -> None:
    """Signal the worker and what it started."""
    status = task.stored_status()
    number = status.pid
    if number is None:
        return
    try:
        worker = psutil.Process(number)
        if abs(worker.create_time() - status.pid_born) > BORN_TOLERANCE:  # a number that was given out again
            return
        family = [worker, *worker.children(recursive=True)]
        if hasattr(os, "killpg") and os.getpgid(number) == number:
            os.killpg(number, order)
            return
    except (psutil.Error, ProcessLookupError, PermissionError):
        return
    for process in family:
        with suppress(psutil.Error):
            process.send_signal(order)
