"""Labels that users assign to images by name.

Each line of the log is one action: {"images": […], "class": …} assigns a class, {"undo": true} reverts the last action
that was not reverted yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset
from udml_core.data.given.log import append_to_log, read_log

KIND = "labels"
LONGEST_CLASS = 100
"""Longest name of a class, in letters."""


def assign(dataset: Dataset, images: Iterable[int], name: str) -> str:
    """Assign images to a class in one action.

    Args:
        dataset: The data set.
        images: Indices of the images.
        name: Name of the class.

    Returns:
        The name as stored. If an assigned class, or else a class of the data set, has the same letters in another case,
        its spelling is used.

    Raises:
        UserError: The name is empty or too long, or the log cannot be written.
    """
    cleaned = " ".join(name.split())
    if not 1 <= len(cleaned) <= LONGEST_CLASS:
        raise UserError(f"A class needs a name of 1 to {LONGEST_CLASS} letters, got {len(cleaned)} letters. "
                        "Type a name.")
    spellings = {known.casefold(): known for known in (*dataset.class_names, *assigned_labels(dataset).values())}
    stored_name = spellings.get(cleaned.casefold(), cleaned)
    image_names = [dataset.names[index] for index in images]
    if image_names:
        append_to_log(dataset, KIND, {"images": image_names, "class": stored_name})
    return stored_name


def undo(dataset: Dataset) -> list[int]:
    """Revert the last action and return the indices of its images.

    The indices are empty if there is no action to revert.

    Raises:
        UserError: The log cannot be written.
    """
    actions = _effective_actions(dataset)
    if not actions:
        return []
    append_to_log(dataset, KIND, {"undo": True})
    return list(labels_by_index(dataset, dict.fromkeys(actions[-1]["images"], "")))


def assigned_labels(dataset: Dataset) -> dict[str, str]:
    """Return the assigned class by image name; the last assignment of an image counts."""
    labels = {image: action["class"] for action in _effective_actions(dataset) for image in action["images"]}
    known = dataset.indices_by_name(labels)
    return {image: label for image, label in labels.items() if image in known}


def assigned_classes(dataset: Dataset) -> tuple[str, ...]:
    """Return every class that was assigned, in the order of the first assignments that were not reverted.

    A class that lost its images to another class stays in the list, so that the others keep their numbers, keyboard
    keys and colors.
    """
    return tuple(dict.fromkeys(action["class"] for action in _effective_actions(dataset)))


def labels_by_index(dataset: Dataset, labels: Mapping[str, str]) -> dict[int, str]:
    """Convert labels by image name to labels by index.

    Images that the data set does not contain are dropped.
    """
    index_of = dataset.indices_by_name(labels)
    return {index_of[image]: label for image, label in labels.items() if image in index_of}


def _effective_actions(dataset: Dataset) -> list[dict[str, Any]]:
    """Return the assignments that were not reverted, in order."""
    effective: list[dict[str, Any]] = []
    for action in _actions(dataset):
        if "undo" not in action:
            effective.append(action)
        elif effective:
            effective.pop()
    return effective


def _actions(dataset: Dataset) -> list[dict[str, Any]]:
    """Return all valid lines of the log, in order."""
    return [row for row in read_log(dataset, KIND) if _is_assignment(row) or row.get("undo") is True]


def _is_assignment(row: Mapping[str, Any]) -> bool:
    images = row.get("images")
    return (isinstance(images, list) and all(isinstance(image, str) for image in images)
            and isinstance(row.get("class"), str))
