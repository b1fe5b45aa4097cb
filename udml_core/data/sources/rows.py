"""Rows of tables that name images, whatever the format of the table."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from udml_core.base.errors import UserError, quoted
from udml_core.data.dataset import Skipped
from udml_core.data.sources.listed import Listing
from udml_core.data.sources.table_files import HALVES, by_value, test_words, value_text


class Row(NamedTuple):
    """A row of a table: path or name, label, half and other values of an image; None where the table has no value.

    The half is a word such as train, one of `HALVES`.
    """

    file: str
    label: str | None
    half: str | None
    others: tuple[Any, ...]


def rows_of(files: Sequence[str], labels: Sequence[Any] | None, halves: Sequence[Any], others: Sequence[Sequence[Any]]
            ) -> list[Row]:
    """Return the rows of columns.

    Args:
        files: Path or name of each image (n).
        labels: Value (n) that names the class; None without classes.
        halves: Word (n) for the half, such as a split's name.
        others: The other columns, each (n).
    """
    texts = [None] * len(files) if labels is None else [label_text(value) for value in labels]
    words = [word if word in HALVES else None for word in (str(value).strip().lower() for value in halves)]
    return [Row(*row) for row in zip(files, texts, words, zip(*others, strict=True) if others else [()] * len(files),
                                     strict=True)]


def plain_path(file: str) -> str:
    """Return a path with forward slashes and without `./`, as `listed` names the image."""
    path = file.replace("\\", "/")
    return path if ".." in path else posixpath.normpath(path)


def label_text(value: Any) -> str | None:
    """Return a label as text; None if there is no value, which Parquet files also write as an undefined number."""
    if value is None or value != value:
        return None
    if isinstance(value, list | dict):
        raise UserError(f"A label must be a text or a number, got {quoted(value)}. An image can have one class only. "
                        "Choose another column with #label=COLUMN after the name.")
    return value_text(value)


def with_classes(listing: Listing, classes: Sequence[Sequence[str] | None]) -> Listing:
    """Return images with classes of which each can have several or none.

    Args:
        listing: The images, without labels.
        classes: Names of the classes of each image (n).
    """
    names = sorted({name for several in classes for name in several or ()}, key=by_value)
    number_of = {name: number for number, name in enumerate(names)}
    flags = np.zeros((len(classes), len(names)), dtype=bool)
    for row, several in enumerate(classes):
        flags[row, [number_of[name] for name in several or ()]] = True
    return replace(listing, class_names=names, evaluation_classes=flags)


def listing_of(rows: Sequence[Row], has_labels: bool, columns: Sequence[str], left_out: Sequence[Skipped]) -> Listing:
    """Return the images of rows.

    Args:
        rows: The rows, which all have a label if `has_labels`.
        has_labels: Whether the labels are the classes.
        columns: Names of the other values.
        left_out: Images that are not used, with the reason.
    """
    files, labels, tests = [row.file for row in rows], [row.label or "" for row in rows], test_words(
        row.half for row in rows if row.half is not None)
    halves = [None if row.half is None else row.half in tests for row in rows]
    others = {name: [row.others[number] for row in rows] for number, name in enumerate(columns)}
    # The division counts only if it is known for each image, and has both halves.
    in_test = [bool(half) for half in halves] if {True, False} == set(halves) else None
    if not has_labels:
        return Listing(files, in_test=in_test, columns=others, left_out=left_out)
    train, test = ({label for label, half in zip(labels, halves, strict=True) if half is is_test}
                   for is_test in (False, True))
    divided = in_test is not None and not train & test
    names = sorted(train, key=by_value) + sorted(test, key=by_value) if divided else sorted(
        set(labels), key=by_value)
    number_of = {name: number for number, name in enumerate(names)}
    return Listing(files, [number_of[label] for label in labels], names, None if divided else in_test,
                   len(train) if divided else None, columns=others, left_out=left_out)
