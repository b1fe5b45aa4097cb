"""Division of a data set into training and test half."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from udml_core.base.arrays import Array, Booleans, Integers
from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset

SplitName = Literal["zero-shot", "seen", "all"]
Select = Literal["last", "validation", "recall", "classes", "judges"]
"""Rule that chooses the epoch to keep: the last, or the best by MAP@R or by recall@1 on images held out, or by MAP@R
on classes held out, or the epoch that an encoder prefers that took no part, without labels."""
HOLDING_OUT: tuple[Select, ...] = ("validation", "recall", "classes")
"""The rules that hold out labeled images."""
SPLITS: tuple[SplitName, ...] = get_args(SplitName)
SEEN_TEST_SHARE = 0.2
VALIDATION_SHARE = 0.15
"""Share of each class, or of the classes, of the training half that is held out to choose an epoch."""
FEWEST_CLASSES = 2
"""Number of classes that are held out at least, because an image of a single class has no wrong neighbor."""


@dataclass(frozen=True)
class Split:
    """Ascending image indices (int64) of each part of a data set.

    Attributes:
        name: Name of the split.
        train: Images to train on.
        test: Images to test on; disjoint from the training half, except in the split `all`.
        validation: Images of the training half that are held out of `train` to choose an epoch; empty by default.
        excluded: Images that belong to no part, because a user excluded them; empty by default.
    """

    name: SplitName
    train: Array
    test: Array
    validation: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    excluded: Array = field(default_factory=lambda: np.zeros(0, np.int64))

    def without(self, excluded: Integers) -> Split:
        """Leave images out of every part; each other image stays in its part.

        Args:
            excluded: Indices (m,) of the images.
        """
        train, test, validation = (part[~np.isin(part, excluded)] for part in (self.train, self.test, self.validation))
        return Split(self.name, train, test, validation, np.union1d(self.excluded, excluded))


def caution_of(dataset: Dataset, split: Split) -> str:
    """Say how many test images are alone in their class, so that no search finds another of it; empty if none is."""
    if dataset.labels is None or dataset.queries is not None or not len(split.test):
        return ""
    labels = dataset.labels[split.test]
    alone = int((np.bincount(labels)[labels] == 1).sum())
    if not alone:
        return ""
    state = "is alone in its class" if alone == 1 else "are alone in their class"
    subject = "Every test image is alone in its class" if alone == len(labels) else (
        f"{alone:,} of {len(labels):,} test images {state}")
    return (f"{subject} in the test half of the split '{split.name}'. R@k counts a miss there, because no search "
            "finds another image of the class. Add images of these classes, or use another split.")


def given_halves(dataset: Dataset) -> Booleans | None:
    """Return the mask (n,) of the test half that a data set gives; None if it gives no halves."""
    if dataset.official_test is not None:
        return dataset.official_test
    if dataset.training_classes is not None and dataset.labels is not None:
        return np.asarray(dataset.labels >= dataset.training_classes)
    return None


def words_of_halves(dataset: Dataset) -> str:
    """Say how many images the given halves have, such as `18 train, 12 test`; empty if none are given."""
    in_test = given_halves(dataset)
    return "" if in_test is None else f"{(~in_test).sum():,} train, {in_test.sum():,} test"


def words_of_split(dataset: Dataset, name: SplitName, choice: str = "the split '{}'") -> str:
    """Say whether a split uses the given halves, and how to choose the other; empty if no halves are given.

    Args:
        dataset: The data set.
        name: The split.
        choice: How another split is chosen.
    """
    halves, other = words_of_halves(dataset), choice.format("seen")
    if not halves:
        return ""
    if name != ("seen" if dataset.official_test is not None else "zero-shot"):
        given = other if dataset.official_test is not None else choice.format("zero-shot")
        return f"The split '{name}' does not use the given halves ({halves}); {given} does."
    whole = choice.format("all") + " trains and tests on all images"
    if name == "zero-shot" or dataset.labels is None:
        return f"The split '{name}' uses the given halves ({halves}); {whole}."
    return (f"The split '{name}' uses the given halves ({halves}); {choice.format('zero-shot')} divides the classes, "
            f"and {whole}.")


def default_split(dataset: Dataset) -> SplitName:
    """Return the halves that a user's own data give, else `zero-shot` for at least 4 classes, else `all`.

    Halves that share no class are `zero-shot`. Benchmarks are divided by classes, and classes for the evaluation only
    are judged on the authors' division, which is `seen`.
    """
    has_classes = dataset.labels is not None or dataset.evaluation_classes is not None
    if has_classes and dataset.official_test is not None and (
            dataset.divides_own_images or dataset.evaluation_classes is not None):
        return "seen"
    if dataset.divides_own_images and dataset.training_classes is not None:
        return "zero-shot"
    return "zero-shot" if dataset.labels is not None and len(dataset.class_names) >= 4 else "all"


def make_split(dataset: Dataset, name: SplitName, select: Select = "last", seed: int = 0) -> Split:
    """Divide a data set.

    - `zero-shot`: The authors' training classes are the training half, the other classes the test half. Without an
      official division of the classes, the training half is the first half of the classes by sorted name.
    - `seen`: The authors' division. Without an official division, the test half is a fifth of each class (of all
      images if unlabeled), drawn with seed 0.
    - `all`: Both halves are the whole data set.

    Args:
        dataset: The data set.
        name: Name of the split.
        select: With `validation` or `recall`, a share of each class is held out of the training half; with `classes`, a
            share of its classes, as in the split `zero-shot` the test classes are.
        seed: Seed of the held-out images.

    Raises:
        UserError: The split is `zero-shot`, but the data set has fewer than 2 classes.
    """
    train, test = _halves(dataset, name)
    if select in HOLDING_OUT and dataset.labels is not None:
        draw = holdout_classes if select == "classes" else holdout
        held_out = draw(dataset.labels[train], VALIDATION_SHARE, seed)
        return Split(name, train[~held_out], test, train[held_out])
    return Split(name, train, test)


def _halves(dataset: Dataset, name: SplitName) -> tuple[Integers, Integers]:
    indices = np.arange(len(dataset))
    if name == "all":
        return indices, indices
    if name == "seen":
        is_test = dataset.official_test if dataset.official_test is not None else _drawn_test(dataset)
        return indices[~is_test], indices[is_test]
    if dataset.evaluation_classes is not None:
        raise UserError(f"The zero-shot split needs one class for each image, and {dataset.title} "
                        f"{dataset.without_labels}. Use the split 'seen' or 'all'.")
    if dataset.labels is None or len(dataset.class_names) < 2:
        raise UserError(f"The zero-shot split needs at least 2 classes, got {len(dataset.class_names)} in "
                        f"{dataset.title}. {dataset.advice_on_classes}, or use the split 'all' or 'seen'.")
    if dataset.training_classes is not None:
        in_train = dataset.labels < dataset.training_classes
    else:
        by_name = sorted(range(len(dataset.class_names)), key=lambda index: dataset.class_names[index])
        in_train = np.isin(dataset.labels, by_name[: (len(by_name) + 1) // 2])
    return indices[in_train], indices[~in_train]


def fixed_sample(test: Integers, count: int) -> Array:
    """Draw at most `count` test images, ascending, with a fixed seed.

    A larger sample contains every smaller one.
    """
    return np.sort(np.random.default_rng(0).permutation(test)[:count])


def holdout(labels: Integers, share: float, seed: int) -> Booleans:
    """Draw a share of each class.

    The draw has at least one image of a class of two or more, but never all.

    Args:
        labels: Class of each image (n,).
        share: Share of each class to draw.
        seed: Seed of the draw.

    Returns:
        Mask (n,) of the drawn images.
    """
    random = np.random.default_rng(seed)
    drawn = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        count = min(max(1, round(share * len(members))), len(members) - 1)
        drawn[random.permutation(members)[:count]] = True
    return drawn


def holdout_classes(labels: Integers, share: float, seed: int) -> Booleans:
    """Draw a share of the classes, at least two, but leave at least two.

    Args:
        labels: Class of each image (n,).
        share: Share of the classes to draw.
        seed: Seed of the draw.

    Returns:
        Mask (n,) of the images of the drawn classes; nothing is drawn from fewer than four classes.
    """
    classes = np.unique(labels)
    count = max(FEWEST_CLASSES, round(share * len(classes)))
    if len(classes) - count < FEWEST_CLASSES:
        return np.zeros(len(labels), dtype=bool)
    return np.isin(labels, np.random.default_rng(seed).permutation(classes)[:count])


def _drawn_test(dataset: Dataset) -> Booleans:
    labels = dataset.labels if dataset.labels is not None else np.zeros(len(dataset), dtype=np.int64)
    return holdout(labels, SEEN_TEST_SHARE, seed=0)
