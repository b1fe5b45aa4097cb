"""Labels that people give: which class an image of a data set is in, by the image's name.

One line an act, appended beside the data set's cache, so that nothing given is ever lost: {"images": […], "class": …}
gives labels, {"undo": true} takes the last act that still stands back. A line that was cut short is passed over.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock

from udml_core.data.dataset import Dataset
from udml_core.data.places import dataset_cache
from udml_core.errors import UserError

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
        _append(dataset, {"images": chosen, "class": kept})
    return kept


def undo(dataset: Dataset) -> list[int]:
    """Take the last act that still stands back, and say whose labels it gave; nothing where none stands.

    Raises:
        UserError: the file cannot be written.
    """
    acts = _standing(dataset)
    if not acts:
        return []
    _append(dataset, {"undo": True})
    return list(by_position(dataset, dict.fromkeys(acts[-1]["images"], "")))


def given(dataset: Dataset) -> dict[str, str]:
    """The labels that stand: an image's name to its class. The last one given to an image counts."""
    known = set(dataset.names)
    return {image: act["class"] for act in _standing(dataset) for image in act["images"] if image in known}


def classes(dataset: Dataset) -> tuple[str, ...]:
    """Every class that an image was ever put into, in the order of their first acts. What is taken back or named
    otherwise later leaves the others where they are, so that a class keeps its number, its key and its colour."""
    return tuple(dict.fromkeys(act["class"] for act in _acts(dataset) if "undo" not in act))


def by_position(dataset: Dataset, labels: Mapping[str, str]) -> dict[int, str]:
    """Labels by image position, of those images that the data set has."""
    place = {name: index for index, name in enumerate(dataset.names)}
    return {place[image]: label for image, label in labels.items() if image in place}


def annotations_path(dataset: Dataset) -> Path:
    """Where the acts are kept."""
    return dataset_cache(dataset.fingerprint) / "labels.jsonl"


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
    try:
        lines = annotations_path(dataset).read_bytes().splitlines()
    except OSError:
        return []
    return [act for act in map(_read, lines) if act is not None]


def _read(line: bytes) -> dict[str, Any] | None:
    """An act, or None for a line that is none."""
    try:
        act = json.loads(line)
    except ValueError:
        return None
    if not isinstance(act, dict):
        return None
    images = act.get("images")
    gives = (isinstance(images, list) and all(isinstance(one, str) for one in images)
             and isinstance(act.get("class"), str))
    return act if gives or act.get("undo") is True else None


def _append(dataset: Dataset, act: Mapping[str, Any]) -> None:
    """Add one line in one write; two windows that label at once wait for each other."""
    path = annotations_path(dataset)
    line = json.dumps(act, ensure_ascii=False).encode() + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_suffix(".lock")), path.open("a+b") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                line = line if file.read(1) == b"\n" else b"\n" + line  # a writer was killed within its line
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise UserError(f"The label could not be kept in {path}: {error}. Free some space, or name another folder "
                        "with UDML_CACHE.") from error
