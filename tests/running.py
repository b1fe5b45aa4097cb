"""Small real runs for tests."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock
from PIL import Image
from sklearn.datasets import load_digits

from udml_core.data import catalog
from udml_core.data.given.pair_sets import PairSet
from udml_core.data.sources.fashion_mnist import FashionMini
from udml_core.runs import Run, RunRequest, Spec, create_run
from udml_core.runs.tasks import Task
from udml_core.work import jobs
from udml_core.work.workers import train as worker

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.running", "sklearn.cluster", "sklearn.neighbors", "torch._dynamo"])
"""Children of a process that has imported what small runs need: starting and killing them costs no imports."""


def spec(method: str = "rpml", dataset: str = "digits", split: Any = "seen", **rest: Any) -> Spec:
    """Plan a run on raw pixels that takes about a second."""
    fields = rest.pop("fields", {"dimension": 16, "epochs": 2, "steps": 3} if method == "rpml" else {})
    pairs = rest.pop("pairs", None)
    request = {"dataset": dataset, "method": method, "fields": fields, "backbone": "pixels", "split": split} | rest
    return jobs.plan(RunRequest.make(request), catalog.load(dataset), pairs)


def repeat_request(run: Run) -> RunRequest:
    """Return a request that trains an equal run again."""
    values = {name: getattr(run.spec(), name) for name in RunRequest.model_fields}
    return RunRequest.model_validate(values | {"device": "auto"}, strict=False)


def trained(root: Path, **request: Any) -> Run:
    """Execute a new run in this process, for tests of training itself."""
    run = create_run(spec(**request), root, request.get("pairs"))
    worker.work(run)
    return run


def worked(root: Path, **request: Any) -> Run:
    """Return an executed run in its own folder.

    An equal request trains once in a test session and is copied."""
    planned, pairs = spec(**request), request.get("pairs")
    run = create_run(planned, root, pairs)
    own_spec = (run.folder / "spec.json").read_bytes()
    shutil.copytree(_executed(planned, pairs), run.folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("lock"))
    (run.folder / "spec.json").write_bytes(own_spec)
    return run


def _executed(planned: Spec, pairs: PairSet | None) -> Path:
    """Return the folder of an executed run, which all processes of the session share."""
    content = planned.model_dump_json(exclude={"created"}).encode()
    if pairs is not None:
        content += pairs.pairs.tobytes() + pairs.same.tobytes()
    folder = Path(os.environ["UDML_TEST_RUNS"]) / hashlib.sha256(content).hexdigest()
    folder.parent.mkdir(exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        if not folder.exists():
            run = create_run(planned, folder.with_suffix(".part"), pairs)
            worker.work(run)
            run.folder.rename(folder)
            folder.with_suffix(".part").rmdir()
    return folder


def wait_for(run: Task, *states: str, seconds: float = 800) -> float:
    """Wait until a task has one of the states, and return the elapsed seconds; on a busy machine that takes minutes."""
    began = time.monotonic()
    while run.status().state not in states:
        assert time.monotonic() - began < seconds, run.status()
        time.sleep(0.02)
    return time.monotonic() - began


@contextmanager
def suspended(run: Task) -> Iterator[None]:
    """Suspend a task's worker, so that a short task stays in progress on a machine of any speed."""
    pid = run.status().pid or 0
    os.kill(pid, signal.SIGSTOP)
    try:
        assert run.status().state == "running", "the task ended before it was suspended"
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def write_clothes(folder: Path, classes: str, copies: dict[int, int] | None = None) -> Path:
    """Write images of clothes, 0.png and on, each in the subfolder that a letter of `classes` names.

    Args:
        folder: The folder to write to.
        classes: The class of each image, one letter each.
        copies: By number of an image, the number of the image that it repeats.
    """
    images = FashionMini().load(lambda _share, _step: None).images
    for number, name in enumerate(classes):
        path = folder / name / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        images[(copies or {}).get(number, number)].save(path)
    return folder


def write_digits(folder: Path, count: int = 60, by_class: bool = True) -> Path:
    """Write images of digits as PNG files.

    The files lie in one subfolder for each class or directly in the folder."""
    digits = load_digits()
    for index in range(count):
        parent = folder / f"class {digits.target[index]}" if by_class else folder
        parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((digits.images[index] * 15).astype("uint8")).resize((24, 24)).save(parent / f"{index:03}.png")
    return folder
