"""Images that users exclude from training and evaluation, by name.

Each line of the log is one action: {"exclude": […]} adds images to the list, {"include": […]} removes them, and
{"undo": true} reverts the last action that was not reverted yet. Images from a file, which another program may have
written, have its name: {"exclude": […], "file": NAME}. {"switch": NAME, "on": false} ignores that file until it is
switched on. Files of images are never changed or removed here.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from udml_core.base.arrays import Integers
from udml_core.base.errors import UserError, quoted
from udml_core.base.files import read_regular
from udml_core.base.spreadsheets import unguarded, write_rows
from udml_core.data.dataset import Dataset
from udml_core.data.given.log import append_to_log, kept, read_actions
from udml_core.data.sources.table_files import find_column, separator

KIND = "exclusions"
COLUMN = "image"
"""Column of image names in a file, as in the lists of images that the pages export."""
MOST_BYTES = 32_000_000
"""Largest file of names; half a million long names fit."""
EXPECTED_FILE = f"Expected a CSV file in UTF-8 with the column {COLUMN} in its first line, and one image name a line."
ACTIONS = ("exclude", "include")


@dataclass(frozen=True, eq=False)
class ImageList:
    """The images that a file names.

    Attributes:
        images: Ascending indices (m,) int64 of the named images.
        unknown: Names that no image of the data set has.
    """

    images: Integers
    unknown: tuple[str, ...]


def excluded_images(dataset: Dataset) -> Integers:
    """Return the ascending indices (m,) int64 of the images on the exclusion list."""
    return kept("excluded images", dataset, [KIND], lambda: indices_of(dataset, _replay(dataset)[0])).copy()


def excluded_names(dataset: Dataset) -> tuple[str, ...]:
    """Return the names of the images on the exclusion list, in the order of the data set."""
    return tuple(dataset.names[index] for index in excluded_images(dataset))


def listed_names(dataset: Dataset) -> tuple[str, ...]:
    """Return all names on the exclusion list, with images that have left the folder."""
    return tuple(_replay(dataset)[0])


def exclude(dataset: Dataset, images: Iterable[int], file: str = "") -> int:
    """Add images to the exclusion list in one action.

    Args:
        dataset: The data set.
        images: Indices of the images; images on the list stay there.
        file: Name of the file that lists them; empty for images that the user chose.

    Returns:
        The number of images that were not on the list before.

    Raises:
        UserError: The list cannot be written.
    """
    before = set(excluded_images(dataset).tolist())
    listed = list(images)
    new = [index for index in listed if index not in before]
    _append(dataset, "exclude", listed if file else new, {"file": file} if file else {})
    return len(set(new))


def include(dataset: Dataset, images: Iterable[int]) -> int:
    """Remove images from the exclusion list in one action.

    Args:
        dataset: The data set.
        images: Indices of the images; other images than those on the list do not change.

    Returns:
        The number of removed images.

    Raises:
        UserError: The list cannot be written.
    """
    before = set(excluded_images(dataset).tolist())
    return _append(dataset, "include", [index for index in images if index in before])


def undo(dataset: Dataset) -> int:
    """Revert the last action.

    Returns:
        The number of its images; 0 if there is no action to revert.

    Raises:
        UserError: The list cannot be written.
    """
    actions = _replay(dataset)[1]
    if not actions:
        return 0
    append_to_log(dataset, KIND, {"undo": True})
    return len(actions[-1][1])


def can_undo(dataset: Dataset) -> bool:
    """Return whether there is an action to revert."""
    return bool(_replay(dataset)[1])


def digest_of(names: Iterable[str]) -> str:
    """Return a digest of a list of names that does not depend on their order."""
    return hashlib.sha256(json.dumps(sorted(names)).encode()).hexdigest()


def indices_of(dataset: Dataset, names: Iterable[str]) -> Integers:
    """Return the ascending indices (m,) int64 of the images with these names; unknown names are left out."""
    return np.array(list(dataset.indices_by_name(set(names)).values()), np.int64)


def find_names(names: Iterable[str], dataset: Dataset) -> list[int]:
    """Return the indices of the images with these names.

    Raises:
        UserError: A name is not that of an image.
    """
    wanted = list(names)
    index_of = dataset.indices_by_name(set(wanted))
    unknown = [name for name in wanted if name not in index_of]
    if unknown:
        raise UserError(f"{dataset.title} has no image {quoted(unknown[0])}. Names are as in this data set, such as "
                        f"{quoted(dataset.names[0])}.")
    return [index_of[name] for name in wanted]


def write_list(dataset: Dataset) -> bytes:
    """Write the exclusion list as the CSV file that `read_list` reads."""
    return list_of(excluded_names(dataset))


def list_of(names: Iterable[str]) -> bytes:
    """Write names of images as the CSV file that `read_list` reads."""
    table = io.StringIO()
    write_rows(table, [[COLUMN], *([name] for name in names)])
    return table.getvalue().encode()


def read_list(path: Path, dataset: Dataset) -> ImageList:
    """Read the images that a CSV file names in its column `image`.

    Raises:
        UserError: The file cannot be read, or names no image of the data set.
    """
    try:
        content = read_regular(path, MOST_BYTES)
    except OSError as error:
        raise UserError(f"The list of images {path} could not be read: {error}. {EXPECTED_FILE}") from error
    return parse_list(content, str(path), dataset)


def parse_list(content: bytes, name: str, dataset: Dataset) -> ImageList:
    """Parse the content of a CSV file of image names as `read_list` does.

    A name is only compared with the names of the data set's images; no file of that name is opened.

    Args:
        content: The content of the file.
        name: The name of the file in error messages.
        dataset: The data set.

    Raises:
        UserError: The content is too long, is not such a file, or names no image of the data set.
    """
    if len(content) > MOST_BYTES:
        raise UserError(f"The list of images {name} has {len(content):,} bytes, and at most {MOST_BYTES:,} are read. "
                        "Divide it into several files.")
    try:
        text = content.decode("utf-8-sig")
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator(text))
        columns = next(rows, [])
        column = find_column(columns, [COLUMN])
        position = None if column is None else columns.index(column)
        known = set(dataset.names)
        cells = [] if position is None else [row[position] for row in rows if row[position:]]
        listed = dict.fromkeys(unguarded(cell, known) for cell in cells)
        listed.pop("", None)
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"The list of images {name} could not be read: {error}. {EXPECTED_FILE}") from error
    if position is None:
        raise UserError(f"The list of images {name} has the columns {', '.join(columns)[:100] or 'none'}. "
                        f"{EXPECTED_FILE}")
    images, unknown = indices_of(dataset, listed), tuple(text for text in listed if text not in known)
    if not len(images):
        first = f", and its first name is {quoted(unknown[0])}" if unknown else ""
        raise UserError(f"The list of images {name} names no image of {dataset.title}{first}. The names must be as in "
                        f"this data set, such as {quoted(dataset.names[0])}.")
    return ImageList(images, unknown)


def switch_file(dataset: Dataset, file: str, is_on: bool) -> None:
    """Ignore the images that a file excludes, or exclude them again; undo reverts it.

    Raises:
        UserError: The list cannot be written.
    """
    append_to_log(dataset, KIND, {"switch": file, "on": is_on})


def excluding_files(dataset: Dataset) -> dict[str, tuple[int, bool]]:
    """Return the files that exclude images, with the number of their images and whether they count."""
    by_file, off = _sources(_actions(dataset))
    return {file: (len(names), file not in off) for file, names in by_file.items() if file and names}


def _append(dataset: Dataset, action: str, images: list[int], more: Mapping[str, str] = MappingProxyType({})) -> int:
    names = [dataset.names[index] for index in dict.fromkeys(images)]
    if names:
        append_to_log(dataset, KIND, {action: names, **more})
    return len(names)


def _replay(dataset: Dataset) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Return the excluded names and the actions that were not reverted, in order; damaged lines are skipped."""
    actions = _actions(dataset)
    by_file, off = _sources(actions)
    excluded = dict.fromkeys(name for file, names in by_file.items() if file not in off for name in names)
    return list(excluded), [(action, list(by_file.get(row[action], ())) if action == "switch" else row[action])
                            for action, row in actions]


def _actions(dataset: Dataset) -> list[tuple[str, Mapping[str, Any]]]:
    rows = read_actions(dataset, KIND, lambda row: _action_of(row) is not None)
    return [(action, row) for row in rows if (action := _action_of(row)) is not None]


def _sources(actions: Iterable[tuple[str, Mapping[str, Any]]]) -> tuple[dict[str, dict[str, None]], set[str]]:
    """Return the names by the file that excludes them, empty for the user's own choice, and the files that are off."""
    by_file: dict[str, dict[str, None]] = {"": {}}
    off: set[str] = set()
    for action, row in actions:
        if action == "switch":
            off = off - {row["switch"]} if row.get("on") else off | {row["switch"]}
        elif action == "exclude":
            file = str(row.get("file", ""))
            by_file.setdefault(file, {}).update(dict.fromkeys(row["exclude"]))
            off.discard(file)
        else:
            included = set(row["include"])
            by_file = {file: {name: None for name in names if name not in included} for file, names in by_file.items()}
    return by_file, off


def _action_of(row: Mapping[str, Any]) -> str | None:
    """Return what a line does to the list; None if it is damaged."""
    if isinstance(row.get("switch"), str):
        return "switch"
    return next((name for name in ACTIONS if _is_names(row.get(name))), None)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)
