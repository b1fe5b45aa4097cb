"""Settings of the example runs: a run with them gains visibly, and can be compared with the example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from udml_core.data.dataset import Dataset
from udml_core.methods import find_method
from udml_core.runs import Run, Spec, are_examples_shown, example_runs

SHARED = ("backbone", "pooling", "split")
"""Options that give a run the frozen features and the test images of an example."""
WIDTH = "dimension"
"""The field of an embedding's width, which all methods with a projection have."""


@dataclass(frozen=True)
class ExampleSettings:
    """What a run takes from an example on the same images.

    Attributes:
        run: The example.
        fields: Hyper-parameters that differ from the defaults. For a run of another method, only the width of its
            embedding and, where the encoder has nothing to train, the part that it trains.
        options: Options of a run that decide features and test images.
    """

    run: Run
    fields: Mapping[str, Any]
    options: Mapping[str, Any]


def examples_on(fingerprint: str, root: Path) -> list[Run]:
    """List the examples on the images of a data set; none if the user hid the examples.

    Args:
        fingerprint: Fingerprint of the data set.
        root: The user's folder of runs.
    """
    if not are_examples_shown(root):
        return []
    return [run for run in example_runs() if run.spec().fingerprint == fingerprint]


def example_settings(dataset: Dataset, root: Path, method: str = "") -> ExampleSettings | None:
    """Return what a run takes from the example of its method, else from the first example on its images.

    Args:
        dataset: The data set.
        root: The user's folder of runs.
        method: The method of the run; any method if empty.

    Returns:
        The settings; None if no example is on these images.
    """
    examples = examples_on(dataset.fingerprint, root)
    example = next((run for run in examples if run.spec().method == method), next(iter(examples), None))
    if example is None:
        return None
    spec = example.spec()
    fields = spec.changed_fields()
    if method not in ("", spec.method):  # 64 pixels, for example, allow no method its default width
        known = find_method(method).model_fields
        fields = {name: spec.fields[name] for name in (WIDTH,) if name in known and name in spec.fields}
        if "trains" in known and not spec.encoder.trainable:
            fields["trains"] = "head"
    return ExampleSettings(example, fields, {name: getattr(spec, name) for name in SHARED})


def shares_test_images(spec: Spec, example: Run, dataset: Dataset) -> bool:
    """Return whether a planned run searches the test images of an example on the same data set."""
    return np.array_equal(spec.halves(dataset, "last").test, example.spec().halves(dataset, "last").test)
