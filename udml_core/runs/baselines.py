"""Frozen features and PCA measured as the curves are: on the same images, with the same measures."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from udml_core.base.arrays import Array, blocks
from udml_core.base.errors import UserError
from udml_core.base.files import jsonable, read_json, replace_text
from udml_core.data.dataset import Dataset
from udml_core.data.features import features_at_hand
from udml_core.data.splits import fixed_sample
from udml_core.methods import Head
from udml_core.methods.closed_form import principal_directions
from udml_core.numerics.evaluation import map_at_r, recall_at_k
from udml_core.runs.folder import Run

JUDGED = 1000
"""Number of images of the sample that curves are computed from, and of training images stored for every epoch."""
MOST_COMPUTED = 20_000
"""Largest data set whose baselines a page computes for a run that has not stored them."""
BASELINES_FILE = "baselines.json"
Baselines = Mapping[str, Mapping[str, float]]


def sample_measures(embeddings: Array, labels: Array) -> dict[str, float]:
    """Measure an embedding (j, l) of the judged images, with labels (j,), as the curves are measured."""
    return {"sample recall@1": recall_at_k(embeddings, labels, (1,))[1],
            "sample map@r": map_at_r(embeddings, labels)[0]}


def sample_baselines(features: Array, labels: Array, train: Array, judged: Array, width: int,
                     unit_length: bool) -> Baselines:
    """Measure frozen features and centered PCA on the images that the curves judge.

    Args:
        labels: Labels (n,).
        features: As for `baseline_embeddings`, like all others.

    Returns:
        Measures from 0 to 1, by baseline and by the name of the curve.
    """
    return {name: sample_measures(embeddings, labels[judged])
            for name, embeddings in baseline_embeddings(features, train, judged, width, unit_length).items()}


def baseline_embeddings(features: Array, train: Array, judged: Array, width: int,
                        unit_length: bool) -> dict[str, Array]:
    """Return the frozen features and the centered PCA of the images that the curves judge, by name.

    Args:
        features: The frozen encoder's features (n, d).
        train: Indices of the training half, from which PCA is computed.
        judged: Indices (j,) of the judged test images.
        width: Width of the run's embedding, to which PCA reduces.
        unit_length: Whether the run's embeddings have unit length; PCA's then have, too, so that both are compared by
            the same distance.
    """
    rows = _unit_rows(features, train)
    mean = rows.mean(0)
    weight = principal_directions(rows, min(width, *rows.shape), mean)
    del rows  # wide features are not twice in memory
    head = Head(weight, mean, unit_length)
    parts = [head(torch.from_numpy(np.asarray(features[judged[some]], dtype=np.float32))).numpy()
             for some in blocks(len(judged), features.shape[1])]
    return {"frozen": _unit_rows(features, judged).numpy(), "centered pca": np.concatenate(parts)}


def _unit_rows(features: Array, indices: Array) -> Tensor:
    """Return some rows (m, d) of the features at unit length, in one copy."""
    rows = torch.from_numpy(np.asarray(features[indices], dtype=np.float32))
    return normalize(rows, dim=1, out=rows)


def judged_images(sample: Array, test: Array) -> Array:
    """Return the indices of the images of the fixed sample that curves are computed from."""
    return sample[np.isin(sample, fixed_sample(test, JUDGED))]


def read_baselines(run: Run) -> Baselines | None:
    """Read the stored baselines of the curves; None if there are none or the file is damaged."""
    try:
        stored = read_json(run.folder / BASELINES_FILE)
    except (OSError, ValueError):
        return None
    is_valid = isinstance(stored, dict) and all(isinstance(row, dict) for row in stored.values())
    return stored if is_valid else None


def forget_baselines(run: Run) -> None:
    """Delete the stored baselines; a page computes them again."""
    (run.folder / BASELINES_FILE).unlink(missing_ok=True)


def write_baselines(run: Run, baselines: Baselines) -> None:
    """Store the baselines of the curves."""
    run.check_writable()
    replace_text(run.folder / BASELINES_FILE, json.dumps(jsonable(baselines), indent=1))


def baselines_of(run: Run, dataset: Dataset) -> Baselines | None:
    """Return the baselines of the curves, from the run or, for an older run, from the stored features.

    Returns:
        The baselines; None without labels or epochs, if the features or the model are not stored, or if the data set
        is large.
    """
    stored = read_baselines(run)
    if stored is not None or dataset.labels is None:
        return stored
    rivals = judged_baselines(run, dataset)
    if rivals is None:
        return None
    labels = dataset.labels[judged_images(run.sample_indices(), run.spec().halves(dataset).test)]
    return {name: sample_measures(embeddings, labels) for name, embeddings in rivals.items()}


def judged_baselines(run: Run, dataset: Dataset) -> dict[str, Array] | None:
    """Return the baselines' embeddings (j, l) of the images that the curves judge, by name.

    Returns:
        The embeddings; None without epochs, if the features or the model are not stored, or if the data set is large.
    """
    numbers = run.epoch_numbers()
    if not numbers or len(dataset) > MOST_COMPUTED:
        return None
    spec = run.spec()
    split = spec.halves(dataset)
    try:
        features = features_at_hand(dataset, spec.encoder)
        unit_length = run.is_normalized("final")
    except UserError:
        return None
    judged = judged_images(run.sample_indices(), split.test)
    width = run.epoch_sample(numbers[-1]).shape[1]
    return baseline_embeddings(features, split.train, judged, width, unit_length)
