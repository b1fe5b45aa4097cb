"""Which images train and which test."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.errors import UserError

SplitName = Literal["zero-shot", "seen", "all"]
Select = Literal["last", "validation"]
"""How the epoch that is kept is chosen."""
SPLITS: tuple[SplitName, ...] = get_args(SplitName)
SEEN_TEST_SHARE = 0.2
VALIDATION_SHARE = 0.15
"""Of each class of the training half, for choosing an epoch."""


@dataclass(frozen=True)
class Split:
    """train, test, validation: ascending image positions, int64.

    train and test are disjoint but in the split `all`, where every image is tested. validation: images of the training
    half that are held out of `train`, for choosing an epoch; usually none.
    """

    name: SplitName
    train: Array
    test: Array
    validation: Array = field(default_factory=lambda: np.zeros(0, np.int64))


def default_split(dataset: Dataset) -> SplitName:
    """`zero-shot` where the classes allow it; unlabeled images all train and are all searched."""
    return "zero-shot" if dataset.labels is not None and len(dataset.class_names) >= 4 else "all"


def make_split(dataset: Dataset, name: SplitName, select: Select = "last", seed: int = 0) -> Split:
    """Divide a data set; with the selection by validation, `train` is without a share of each class drawn by `seed`.

    zero-shot: the first half of the classes by sorted name trains, the second half tests. seen: the authors' division
    where there is one, else a fifth of each class tests (of all images without labels), drawn with seed 0. all: every
    image trains and every image is searched.

    Raises:
        UserError: `zero-shot` without labels, or with fewer than 2 classes.
    """
    train, test = _halves(dataset, name)
    if select == "validation" and dataset.labels is not None:
        held_out = holdout(dataset.labels[train], VALIDATION_SHARE, seed)
        return Split(name, train[~held_out], test, train[held_out])
    return Split(name, train, test)


def _halves(dataset: Dataset, name: SplitName) -> tuple[Array, Array]:
    everything = np.arange(len(dataset))
    if name == "all":
        return everything, everything
    if name == "seen":
        is_test = dataset.official_test if dataset.official_test is not None else _drawn(dataset)
        return everything[~is_test], everything[is_test]
    if dataset.labels is None or len(dataset.class_names) < 2:
        raise UserError(f"The zero-shot split needs at least 2 classes; {dataset.title} has no class labels. "
                        "Use the split 'all' or 'seen', or sort the images into one sub-folder a class.")
    by_name = sorted(range(len(dataset.class_names)), key=lambda index: dataset.class_names[index])
    trains = np.isin(dataset.labels, by_name[: (len(by_name) + 1) // 2])
    return everything[trains], everything[~trains]


def fixed_sample(test: Array, count: int) -> Array:
    """At most `count` of the test images, ascending; a smaller sample lies within a larger one."""
    return np.sort(np.random.default_rng(0).permutation(test)[:count])


def holdout(labels: Array, share: float, seed: int) -> Array:
    """A bool mask (n,) that draws `share` of each class, at least one image and never all of a class of two or more."""
    random = np.random.default_rng(seed)
    drawn = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        count = min(max(1, round(share * len(members))), len(members) - 1)
        drawn[random.permutation(members)[:count]] = True
    return drawn


def _drawn(dataset: Dataset) -> Array:
    labels = dataset.labels if dataset.labels is not None else np.zeros(len(dataset), dtype=np.int64)
    return holdout(labels, SEEN_TEST_SHARE, seed=0)
