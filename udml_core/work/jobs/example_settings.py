"""Settings of the example runs: a run with them gains visibly, and can be compared with the example."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from udml_core.data.dataset import Dataset
from udml_core.methods import Method, find_method
from udml_core.runs import Run, Spec, are_examples_shown, example_runs
from udml_core.runs.analyses.kinds.opinion import Verdicts
from udml_core.runs.opinions import opinion_of
from udml_core.runs.verdict import standing
from udml_core.work.jobs.settings import Settings

SHARED = ("backbone", "pooling", "split")
"""Options that give a run the frozen features and the test images of an example."""
WIDTH = "dimension"
"""The field of an embedding's width, which all methods with a projection have."""


def examples_on(fingerprint: str, root: Path) -> list[Run]:
    """List the examples on the images of a data set; none if the user hid the examples.

    Args:
        fingerprint: Fingerprint of the data set.
        root: The user's folder of runs.
    """
    if not are_examples_shown(root):
        return []
    return [run for run in example_runs() if run.spec().fingerprint == fingerprint]


def find_example(dataset: Dataset, root: Path, method: str = "") -> Run | None:
    """Return the example of a method, else the first example on its images.

    Args:
        dataset: The data set.
        root: The user's folder of runs.
        method: The method of the run; any method if empty.

    Returns:
        The example; None if no example is on these images.
    """
    examples = examples_on(dataset.fingerprint, root)
    return next((run for run in examples if run.spec().method == method), next(iter(examples), None))


def winning_example(dataset: Dataset, root: Path) -> str:
    """Return the method of the first example on the images that ended above PCA; empty if none did.

    Args:
        dataset: The data set.
        root: The user's folder of runs.
    """
    return next((run.spec().method for run in examples_on(dataset.fingerprint, root) if proof_of(run)), "")


def proof_of(example: Run) -> str:
    """Return the MAP@R of an example that ended above PCA of its width, in words; empty for another example."""
    of = standing(example.evaluation())
    if of.after is None or of.pca is None or of.after <= of.pca:
        return ""
    return f"{of.after:.1f} % of the whole group found, where PCA of the same width has {of.pca:.1f} %"


def verdicts_on(example: Run) -> Verdicts | None:
    """Return what judges without labels say of an example against the plain search; None if none is recorded."""
    opinions = opinion_of(example)
    return None if opinions is None else opinions.verdicts("final")


def is_supported(example: Run) -> bool:
    """Return whether judges without labels find an example better in one question, and worse in none."""
    verdicts = verdicts_on(example)
    return verdicts is not None and "better" in verdicts and "worse" not in verdicts


def example_settings(example: Run, method: type[Method]) -> Settings:
    """Return what a run takes from an example on the same images.

    A run of another method takes only the width of the embedding and, where the encoder has nothing to train, the part
    that it trains.
    """
    spec = example.spec()
    what, fields = "Settings", spec.changed_fields()
    if method.card.name != spec.method:  # 64 pixels, for example, allow no method its default width
        known = method.model_fields
        what = "Backbone, split and dimension"
        fields = {name: spec.fields[name] for name in (WIDTH,) if name in known and name in spec.fields}
        if "trains" in known and not spec.encoder.trainable:
            fields["trains"] = "head"
    return Settings("example", fields, {name: getattr(spec, name) for name in SHARED},
                    f"{what} of the example {example_title(example)}.")


def example_title(example: Run) -> str:
    """Return the title of an example in a sentence, such as RPML on Digits."""
    spec = example.spec()
    return f"{find_method(spec.method).card.title} on {spec.dataset_title.split(',')[0]}"


def shares_test_images(spec: Spec, example: Run, dataset: Dataset) -> bool:
    """Return whether a planned run searches the test images of an example on the same data set."""
    return np.array_equal(spec.halves(dataset, "last").test, example.spec().halves(dataset, "last").test)
