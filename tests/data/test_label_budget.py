"""The few labels of a run: drawn with a seed, or assigned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.label_budget import check_labels, default_per_class, drawn_labels, given_labels
from udml_core.data.splits import make_split


def test_labels_are_drawn_from_each_class_of_the_training_half_with_the_seed() -> None:
    dataset = catalog.load("digits")
    train = make_split(dataset, "zero-shot").train
    labels = drawn_labels(dataset, train, 7, 3)
    known = np.flatnonzero(labels >= 0)
    assert np.bincount(labels[known]).tolist() == [7] * 5
    assert set(known) <= set(train)
    assert dataset.labels is not None
    np.testing.assert_array_equal(labels[known], dataset.labels[known])
    np.testing.assert_array_equal(labels, drawn_labels(dataset, train, 7, 3))
    assert (labels != drawn_labels(dataset, train, 7, 4)).any()
    more = drawn_labels(dataset, train, 9, 3)
    np.testing.assert_array_equal(more[known], labels[known])
    all_labels = drawn_labels(dataset, train, 10_000, 0)
    np.testing.assert_array_equal(np.flatnonzero(all_labels >= 0), train)


def test_the_default_is_ten_labels_per_class_and_five_for_small_classes() -> None:
    dataset = catalog.load("digits")
    assert default_per_class(dataset, np.arange(len(dataset))) == 10
    assert default_per_class(dataset, np.arange(300)) == 5
    assert default_per_class(replace(dataset, labels=None), np.arange(300)) == 10


def test_labels_cannot_be_drawn_without_classes() -> None:
    dataset = replace(catalog.load("digits"), labels=None)
    with pytest.raises(UserError, match=r"needs a data set with classes, but .* has none\. Assign labels"):
        drawn_labels(dataset, np.arange(10), 5, 0)


def test_assigned_labels_are_numbered_by_class_name_and_count_only_in_the_training_half() -> None:
    dataset = replace(catalog.load("digits"), labels=None)
    names = dataset.names
    labels = given_labels(dataset, np.arange(100), {names[3]: "dog", names[50]: "cat", names[200]: "ant",
                                                    "unknown": "eel"})
    assert labels[[3, 50, 200]].tolist() == [2, 1, -1]
    assert (labels >= 0).sum() == 2


@pytest.mark.parametrize("labels", [[-1, -1], [0, 0, -1], [0, 1, 2], []])
def test_labels_need_two_classes_and_two_labels_of_one_class(labels: list[int]) -> None:
    with pytest.raises(UserError, match="at least 2 classes in the training half, one of them with at least 2 labels"):
        check_labels(np.array(labels, dtype=np.int64))
    check_labels(np.array([0, 5, 5, -1]))
