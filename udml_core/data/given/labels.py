"""Labels that people give: which class an image of a data set is in, by the image's name.

A line of the journal is an act: {"images": […], "class": …} gives labels, {"undo": true} takes the last act that still
stands back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from udml_core.data.dataset import Dataset
from udml_core.data.given.log import append_to_log, read_log
from udml_core.errors import UserError

KIND = "labels"
LONGEST_CLASS = 100
"""Letters of a class's name."""


def give(dataset: Dataset, images: Iterable[int], name: str) -> str:
    """Put images, by position, into a class; one undo takes them all back.

    Returns:
        The class as it is kept: spelled as it stands already, or else as the data set has it, where that differs only
        in capital letters. Two such classes are one to a person.

    Raises:
        UserError: the name is empty or too long, or the file cannot be written.
    """
    cleaned = " ".join(name.split())
    if not 1 <= len(cleaned) <= LONGEST_CLASS:
        raise UserError(f"A class needs a name of 1 to {LONGEST_CLASS} letters, got {len(cleaned)}. Type one.")
    spelled = {one.casefold(): one for one in (*dataset.class_names, *given(dataset).values())}
    kept = spelled.get(cleaned.casefold(), cleaned)
    chosen = [dataset.names[index] for index in images]
    if chosen:
        append_to_log(dataset, KIND, {"images": chosen, "class": kept})
    return kept


def undo(dataset: Dataset) -> list[int]:
    """Take the last act that still stands back, and say whose labels it gave; nothing where none stands.

    Raises:
        UserError: the file cannot be written.
    """
    acts = _standing(dataset)
    if not acts:
        return []
    append_to_log(dataset, KIND, {"undo": True})
    return list(labels_by_index(dataset, dict.fromkeys(acts[-1]["images"], "")))


def given(dataset: Dataset) -> dict[str, str]:
    """The labels that stand: an image's name to its class. The last one given to an image counts."""
    known = set(dataset.names)
    return {image: act["class"] for act in _standing(dataset) for image in act["images"] if image in known}


def classes(dataset: Dataset) -> tuple[str, ...]:
    """Every class that an image was ever put into, in the order of their first acts. What is taken back or named
    otherwise later leaves the others where they are, so that a class keeps its number, its key and its colour."""
    return tuple(dict.fromkeys(act["class"] for act in _acts(dataset) if "undo" not in act))


def labels_by_index(dataset: Dataset, labels: Mapping[str, str]) -> dict[int, str]:
    """Labels by image position, of those images that the data set has."""
    place = {name: index for index, name in enumerate(dataset.names)}
    return {place[image]: label for image, label in labels.items() if image in place}


def _standing(dataset: Dataset) -> list[dict[str, Any]]:
    """The acts that were not taken back, in order."""
    standing: list[dict[str, Any]] = []
    for act in _acts(dataset):
        if "undo" not in act:
            standing.append(act)
        elif standing:
            standing.pop()
    return standing


def _acts(dataset: Dataset) -> list[dict[str, Any]]:
    """All that was done, in order."""
    return [row for row in read_log(dataset, KIND) if _gives(row) or row.get("undo") is True]


def _gives(row: Mapping[str, Any]) -> bool:
    images = row.get("images")
    return (isinstance(images, list) and all(isinstance(one, str) for one in images)
            and isinstance(row.get("class"), str))
