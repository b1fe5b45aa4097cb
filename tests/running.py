"""Small real runs for the tests of runs, jobs, worker, retrieval and command line."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from PIL import Image
from sklearn.datasets import load_digits

from udml_core import jobs
from udml_core.data import catalog
from udml_core.runs import Run, RunRequest, Spec, create_run
from udml_core.tasks import Task
from udml_core.workers import train as worker


def spec(method: str = "rpml", dataset: str = "digits", split: Any = "seen", **rest: Any) -> Spec:
    fields = rest.pop("fields", {"dimension": 16, "epochs": 2, "steps": 3} if method == "rpml" else {})
    pairs = rest.pop("pairs", None)
    request = {"dataset": dataset, "method": method, "fields": fields, "backbone": "pixels", "split": split} | rest
    return jobs.plan(RunRequest.make(request), catalog.load(dataset), pairs)


def worked(root: Path, **given: Any) -> Run:
    """A run that was executed here, in this process."""
    run = create_run(spec(**given), root, given.get("pairs"))
    worker.work(run)
    return run


def until(run: Task, *states: str, seconds: float = 240) -> float:
    """Wait for a state; the seconds that it took."""
    began = time.monotonic()
    while run.status().state not in states:
        assert time.monotonic() - began < seconds, run.status()
        time.sleep(0.02)
    return time.monotonic() - began


def write_digits(folder: Path, count: int = 60, by_class: bool = True) -> Path:
    """Digits as PNG files, in a sub-folder a class or side by side."""
    digits = load_digits()
    for index in range(count):
        place = folder / f"class {digits.target[index]}" if by_class else folder
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray((digits.images[index] * 15).astype("uint8")).resize((24, 24)).save(place / f"{index:03}.png")
    return folder
