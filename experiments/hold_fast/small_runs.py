"""Small runs to break, and what must hold for them afterwards."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
from PIL import Image
from sklearn.datasets import load_digits

from experiments.hold_fast.attempt import shared_folder
from experiments.hold_fast.forked import in_child
from udml_core.data import catalog
from udml_core.runs import Run, RunRequest, Spec, create_run
from udml_core.work import jobs
from udml_core.work.workers import train as worker

IMAGES = 200
METHODS: dict[str, dict[str, Any]] = {
    "rpml": {"dimension": 8, "epochs": 4, "steps": 2, "epsilon": 0.8},
    "plm": {"dimension": 8, "epochs": 3, "proxies": 10, "learning_rate": 0.001},
    "ssdml": {"dimension": 8, "epochs": 3, "partition": 60, "partition_epochs": 1, "batch": 40, "steps": 1},
    "nml": {"dimension": 8, "epochs": 3},
    "triplet": {"dimension": 8, "epochs": 3, "learning_rate": 0.1},
    "isif": {"dimension": 8, "epochs": 3, "learning_rate": 0.01},
    "pslr": {"dimension": 8, "epochs": 3, "learning_rate": 0.01},
    "nce": {"dimension": 8, "epochs": 3, "learning_rate": 0.01, "noise": 100},
    "seraph": {"steps": 5},
    "lrml": {},
    "pca": {"dimension": 8},
    "triplet-recall": {"dimension": 4, "epochs": 4, "learning_rate": 6.0},
    "isif-encoder": {"dimension": 8, "epochs": 2, "learning_rate": 0.01, "trains": "all", "batch_norm": "batch"},
}
"""Methods and fields whose runs take less than a second."""
OPTIONS: dict[str, dict[str, Any]] = {
    "triplet-recall": {"method": "triplet", "select": "recall"},
    "isif-encoder": {"method": "isif", "backbone": "cnn"},
}
"""What further runs change besides fields: one selects its epoch (the first of four), one trains its encoder."""


@cache
def digits_folder() -> Path:
    """Return a folder of digits, one subfolder for each class: a data set on which a run takes half a second."""
    digits, folder = load_digits(), shared_folder("digits")
    for index in range(IMAGES):
        path = folder / f"class {digits.target[index]}" / f"{index:03}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray((digits.images[index] * 15).astype("uint8")).save(path)
    return folder


@cache
def planned(method: str, **fields: Any) -> Spec:
    """Plan a small run of a method."""
    name = str(digits_folder())
    request = {"dataset": name, "method": method, "fields": METHODS[method] | fields, "backbone": "pixels",
               "split": "seen", "size": 8} | OPTIONS.get(method, {})
    return jobs.plan(RunRequest.make(request), catalog.load(name))


@cache
def undisturbed(method: str, **fields: Any) -> Run:
    """Return a run that nothing disturbed."""
    run = create_run(planned(method, **fields), shared_folder("undisturbed"))
    in_child(lambda: worker.work(run))
    if run.status().state != "done":
        raise RuntimeError(f"the undisturbed run of {method} is {run.status()}: {run.log_tail()}")
    return run


def finished_epochs(run: Run) -> int:
    """Return the number of finished epochs, each of which must be readable.

    Raises:
        AssertionError: An epoch of the curves is missing or damaged.
    """
    numbers = [row["epoch"] for row in run.metrics()[0]]
    assert numbers == list(range(len(numbers))), f"the curves have the epochs {numbers}"
    for number in numbers:
        assert np.isfinite(run.epoch_sample(number)).all(), f"the sample of epoch {number} is damaged"
    checkpoint = run.read_checkpoint()
    kept = checkpoint[0] if checkpoint else 0
    assert kept >= len(numbers) - 2, f"the checkpoint is of epoch {kept}, the curves have {len(numbers)} rows"
    return len(numbers)


def difference(run: Run, whole: Run) -> str | None:
    """Return how the results and curves of a run differ from another run; None if they are equal."""
    if run.status().state != "done":
        return f"the run is {run.status().state}: {run.status().message}; {run.log_tail()}"
    for which in ("initial", "final"):
        if not np.array_equal(run.embeddings(which), whole.embeddings(which)):  # type: ignore[arg-type]
            return f"the {which} embeddings differ"
    tensors, expected = (safetensors.torch.load_file(each.embedder_path) for each in (run, whole))
    if tensors.keys() != expected.keys() or any((tensors[name] != expected[name]).any() for name in tensors):
        return "the embedders differ"
    if run.evaluation() != whole.evaluation():
        return f"the evaluations differ: {run.evaluation()} and {whole.evaluation()}"
    curves = [[{name: value for name, value in row.items() if name != "seconds"} for row in each.metrics()[0]]
              for each in (run, whole)]
    return None if curves[0] == curves[1] else f"the curves differ: {curves[0]} and {curves[1]}"


def finish(run: Run) -> None:
    """Resume a run in a child process, as its worker would, until it ends."""
    if run.status().state != "done":
        run.clear_failure()
        in_child(lambda: worker.work(run))
