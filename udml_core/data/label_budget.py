"""The few labels that a run trains on.

They are drawn from the data set, or assigned by a user.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from udml_core.base.arrays import Integers
from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset
from udml_core.data.given.labels import labels_by_index
from udml_core.data.splits import Select

LabelSource = Literal["drawn", "given"]
"""Source of few labels."""
PER_CLASS, PER_SMALL_CLASS, SMALL_CLASS = 10, 5, 100
"""Labels drawn from each class: the second number if the median class is smaller than the third, else the first."""


def default_select(source: LabelSource) -> Select:
    """Return the default choice of the epoch.

    Assigned labels can validate without holding out an image.
    """
    return "validation" if source == "given" else "last"


def default_per_class(dataset: Dataset, train: Integers) -> int:
    """Return the default number of labels for each class: 10 or 5.

    It is 5 if the median class of the training half has fewer than 100 images.
    """
    if dataset.labels is None:
        return PER_CLASS
    sizes = np.bincount(dataset.labels[train])
    return PER_SMALL_CLASS if np.median(sizes[sizes > 0]) < SMALL_CLASS else PER_CLASS


def drawn_labels(dataset: Dataset, train: Integers, per_class: int, seed: int) -> Integers:
    """Draw the labels of some images of each class of the training half.

    A larger draw with the same seed contains every smaller one.

    Args:
        dataset: The data set.
        train: Indices of the training half.
        per_class: Number of labels to draw from each class.
        seed: Seed of the draw.

    Returns:
        Labels (n,) int64 over the whole data set, −1 where unknown.

    Raises:
        UserError: The data set has no labels.
    """
    if dataset.labels is None:
        raise UserError(f"Drawing labels needs a data set with classes, but {dataset.title} "
                        f"{dataset.without_labels}. Assign labels in the app and train with labels 'given', or "
                        f"{dataset.advice_on_classes[:1].lower()}{dataset.advice_on_classes[1:]}.")
    labels = np.full(len(dataset), -1)
    random = np.random.default_rng([seed, 17])
    train_labels = dataset.labels[train]
    for label in np.unique(train_labels):
        labels[random.permutation(train[train_labels == label])[:per_class]] = label
    return labels


def given_labels(dataset: Dataset, train: Integers, given: Mapping[str, str]) -> Integers:
    """Convert assigned labels to class numbers in the order of the class names.

    Args:
        dataset: The data set.
        train: Indices of the training half.
        given: Assigned class by image name.

    Returns:
        Labels (n,) int64 over the whole data set, −1 for unlabeled images and images outside the training half.
    """
    number_of = {name: number for number, name in enumerate(sorted(set(given.values())))}
    labels = np.full(len(dataset), -1)
    for index, name in labels_by_index(dataset, given).items():
        labels[index] = number_of[name]
    in_train = np.zeros(len(dataset), dtype=bool)
    in_train[train] = True
    return np.where(in_train, labels, -1)


def check_labels(labels: Integers) -> None:
    """Check that the labels contain a similar and a dissimilar pair.

    Args:
        labels: Labels (n,) int, −1 where unknown.

    Raises:
        UserError: There are too few labels or classes.
    """
    sizes = np.bincount(labels[labels >= 0])
    sizes = sizes[sizes > 0]
    if len(sizes) < 2 or sizes.max() < 2:
        raise UserError("Learning from few labels needs at least 2 classes in the training half, one of them with at "
                        f"least 2 labels; got {sizes.sum()} labels in {len(sizes)} classes. Assign more labels, or "
                        "raise labels_per_class.")
