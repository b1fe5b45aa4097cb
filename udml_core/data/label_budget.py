"""The few labels that a run trains on: drawn from the data set's, or given by a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.data.given.labels import labels_by_index
from udml_core.data.splits import Select
from udml_core.errors import UserError

LabelSource = Literal["drawn", "given"]
"""Where few labels come from."""
PER_CLASS, PER_SMALL_CLASS, SMALL_CLASS = 10, 5, 100


def default_select(source: LabelSource) -> Select:
    """How the epoch is chosen unless told: labels that were given tell it without a single image held out."""
    return "validation" if source == "given" else "last"


def default_per_class(dataset: Dataset, train: Array) -> int:
    """10 labels a class, 5 where the typical class of the training half has fewer than 100 images."""
    if dataset.labels is None:
        return PER_CLASS
    sizes = np.bincount(dataset.labels[train])
    return PER_SMALL_CLASS if np.median(sizes[sizes > 0]) < SMALL_CLASS else PER_CLASS


def drawn_labels(dataset: Dataset, train: Array, per_class: int, seed: int) -> Array:
    """The labels of `per_class` images of each class of the training half, (n,) int64, −1 elsewhere.

    A larger draw of the same seed holds a smaller one.

    Raises:
        UserError: the data set has no labels.
    """
    if dataset.labels is None:
        raise UserError(f"Drawing labels needs a data set with classes, and {dataset.title} has none. Give labels "
                        "yourself and train with the labels 'given', or sort the images into one sub-folder a class.")
    labels = np.full(len(dataset), -1)
    random = np.random.default_rng([seed, 17])
    of_train = dataset.labels[train]
    for label in np.unique(of_train):
        labels[random.permutation(train[of_train == label])[:per_class]] = label
    return labels


def given_labels(dataset: Dataset, train: Array, given: Mapping[str, str]) -> Array:
    """Labels by image name as (n,) int64, −1 where there is none or the image does not train.

    Classes are numbered in the order of their names.
    """
    place = {name: number for number, name in enumerate(sorted(set(given.values())))}
    labels = np.full(len(dataset), -1)
    for position, name in labels_by_index(dataset, given).items():
        labels[position] = place[name]
    trains = np.zeros(len(dataset), dtype=bool)
    trains[train] = True
    return np.where(trains, labels, -1)


def check_labels(labels: Array) -> None:
    """Learning from few labels needs a pair of one class and a pair of two.

    Args:
        labels: (n,) int, −1 where there is none.

    Raises:
        UserError: saying what there is.
    """
    sizes = np.bincount(labels[labels >= 0])
    sizes = sizes[sizes > 0]
    if len(sizes) < 2 or sizes.max() < 2:
        raise UserError(f"Learning from few labels needs at least 2 classes in the training half, one of them with at "
                        f"least 2 labels; got {sizes.sum()} labels in {len(sizes)} classes. Give more labels, or raise "
                        "the number of labels per class.")
