"""Start, stop and queue runs. A run executes as `python -m udml_core work RUN` in a process group of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from filelock import FileLock

from udml_core.backbones import check_backbone, choose_spec, feature_width, image_seconds
from udml_core.backbones.pooling import Pooling
from udml_core.data.dataset import Dataset
from udml_core.data.features import features_path
from udml_core.data.places import cache_folder
from udml_core.data.splits import VALIDATION_SHARE, SplitName, default_split, holdout, make_split
from udml_core.errors import UserError
from udml_core.methods import find_method
from udml_core.runs import LIVE_STATES, Run, Select, Spec, Status, create, list_runs

PATIENCE = 3.0
"""Seconds that a worker gets to end by itself."""


def plan(dataset: Dataset, method: str, fields: Mapping[str, Any], backbone: str = "efficientnet-lite0",
         pooling: Pooling = "mean", size: int | None = None, split: SplitName | None = None, seed: int = 0,
         device: str = "auto", select: Select = "last") -> Spec:
    """A run's spec, with everything checked that can be checked before training.

    Raises:
        UserError: a value does not fit, naming it.
    """
    find_method(method).make(fields)
    check_backbone(backbone)
    if not 0 <= seed < 2**31:
        raise UserError(f"The seed must be between 0 and {2**31 - 1}, got {seed}.")
    name = split or default_split(dataset)
    parts = make_split(dataset, name)
    if len(parts.train) < 2 or len(parts.test) < 2:
        raise UserError(f"The split '{name}' needs at least 2 images in each half, got {len(parts.train)} to train and "
                        f"{len(parts.test)} to test. Add images or choose the split 'all'.")
    if select == "validation":
        _check_validation(dataset, parts.train, seed)
    encoder = choose_spec(backbone, dataset.native_size, dataset.gray, pooling, size, seed)
    return Spec(dataset=dataset.name, dataset_title=dataset.title, fingerprint=dataset.fingerprint, method=method,
                fields=dict(fields), encoder=encoder, split=name, seed=seed, device=resolve_device(device),
                select=select)


def _check_validation(dataset: Dataset, train: np.ndarray[Any, Any], seed: int) -> None:
    """MAP@R is defined where a class has two held-out images; without any, no epoch could be better than another."""
    if dataset.labels is None:
        raise UserError("Selecting the epoch by validation needs class labels, and this data set has none. "
                        "Use select 'last'.")
    labels = dataset.labels[train]
    if np.bincount(labels[holdout(labels, VALIDATION_SHARE, seed)]).max(initial=0) < 2:
        raise UserError(f"Selecting the epoch by validation holds out {VALIDATION_SHARE:.0%} of each class and needs "
                        f"two images of one class there; the largest class of the training half has "
                        f"{np.bincount(labels).max()} images. Use select 'last', or add images.")


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
    width = feature_width(spec.encoder)
    epoch = method.expected_seconds(train, width, per_image)
    activations = 120 * 600 * spec.encoder.size**2 if method.trains_encoder else 0
    return Expectation(0.0 if computed else len(dataset) * per_image, epoch * method.epochs_planned,
                       600e6 + 12.0 * train * width + activations)


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
        raise UserError(f"The device {text} was asked for, and {count} CUDA devices are here. Use --device cpu.")
    return f"cuda:{int(number or 0)}"


def submit(spec: Spec, root: Path) -> Run:
    """Create a run and start its worker, which waits for the device by itself."""
    run = create(spec, root)
    _launch(run)
    return run


def resume(run: Run) -> None:
    """Go on with a run behind its last finished epoch.

    Raises:
        UserError: it is done, or a worker is at it.
    """
    status = run.status()
    if status.state == "done":
        raise UserError(f"The run {run.id} is done; there is nothing to resume.")
    if status.state in LIVE_STATES:
        raise UserError(f"The run {run.id} is {status.state} already.")
    run.clear_failure()
    run.write_status(Status(state="waiting", ticket=time.time(), epoch=status.epoch, epochs=status.epochs))
    _launch(run)


def stop(run: Run) -> Status:
    """End a run's whole process group: asked first, after three seconds by force. Finished epochs stay."""
    run.request_stop()
    for order in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        if not run.is_alive():
            break
        _signal_group(run, order)
        deadline = time.monotonic() + PATIENCE
        while run.is_alive() and time.monotonic() < deadline:
            time.sleep(0.05)
    status = run.stored_status()
    if status.state in LIVE_STATES:
        status = status.model_copy(update={"state": "stopped", "finished": time.time(), "message": "Stopped."})
        run.write_status(status)
    return status


def place(run: Run, root: Path) -> int:
    """How many runs are before this one at its device; 0 means that it is next, or running."""
    mine, device = run.stored_status(), run.spec().device
    ahead = 0
    for other in list_runs(root):
        status = other.stored_status()
        if other.id == run.id or status.state not in LIVE_STATES or other.spec().device != device:
            continue
        earlier = status.state == "running" or (status.ticket, other.id) < (mine.ticket, run.id)
        if earlier and other.status().state in LIVE_STATES:
            ahead += 1
    return ahead


def device_lock(device: str) -> FileLock:
    """Held by the one run that works on a device, whatever folder of runs it belongs to."""
    folder = cache_folder() / "devices"
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / f"{device.replace(':', '-')}.lock")


def _launch(run: Run) -> None:
    package_root = str(Path(__file__).resolve().parents[1])
    paths = [package_root, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    group: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        group = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    with run.log_path.open("ab") as log:
        subprocess.Popen([sys.executable, "-m", "udml_core", "work", str(run.folder)], stdin=subprocess.DEVNULL,
                         stdout=log, stderr=log, env=environment, **group)


def _signal_group(run: Run, order: int) -> None:
    """Signal the worker and what it started. The lock is held, so the number in the status is the worker's."""
    number = run.stored_status().pid
    if number is None:
        return
    try:
        worker = psutil.Process(number)
        if not any(run.id in word for word in worker.cmdline()):  # a number that was given out again
            return
        family = [worker, *worker.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    if hasattr(os, "killpg") and os.getpgid(number) == number:
        os.killpg(number, order)
        return
    for process in family:
        try:
            process.send_signal(order)
        except psutil.NoSuchProcess:
            continue
