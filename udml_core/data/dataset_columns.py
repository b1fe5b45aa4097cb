"""Columns of a data set beside names and labels, to color and filter its images by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from udml_core.base.arrays import Array, Booleans
from udml_core.base.errors import UserError, quoted


class Columns(Mapping[str, Array]):
    """Columns by name, each read at its first use.

    A column is an array (n,) of float64 if all its values are numbers, NaN where one is missing, or else of text,
    None where one is missing.
    """

    def __init__(self, names: Sequence[str] = (), read: Callable[[str], Sequence[Any]] | None = None,
                 count: int = 0) -> None:
        """Name the columns.

        Args:
            names: Names of the columns.
            read: Returns the values of a column.
            count: Number of values that each column must have.
        """
        self._names = tuple(names)
        self._read = read
        self._count = count
        self._known: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        """Return a column.

        Raises:
            KeyError: There is no such column.
            UserError: The file of the column has changed.
        """
        if name not in self._names or self._read is None:
            raise KeyError(name)
        if name not in self._known:
            values = self._read(name)
            if len(values) != self._count:
                raise UserError(f"The column {quoted(name)} must have {self._count:,} values, got {len(values):,}, "
                                "because its file has changed. Reload the page, or open the data set again.")
            self._known[name] = as_column(values)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def as_column(values: Sequence[Any]) -> Array:
    """Return values as an array of numbers if all of them are numbers, or else of text; see `Columns`."""
    present = [value for value in values if value is not None]
    if present and not any(isinstance(value, bool) for value in present):
        try:
            return np.array([np.nan if value is None else float(value) for value in values])
        except (TypeError, ValueError, OverflowError):  # a text, a list, or an integer too large
            pass
    return np.array([None if value is None else str(value) for value in values], dtype=object)


def is_numeric(column: Array) -> bool:
    """Return whether a column has numbers."""
    return column.dtype.kind == "f"


def values_of(column: Array) -> list[str]:
    """Return the different values of a column of text, sorted."""
    return sorted({value for value in column if value is not None})


def class_columns(columns: Mapping[str, Array]) -> dict[str, int]:
    """Return the columns whose values can name classes, with their numbers of values.

    Every image has a class, a class has two images or more on average, and most classes have several. Columns of text
    come before whole numbers, and columns of fewer values first.
    """
    sizes: dict[str, int] = {}
    for name, column in columns.items():
        is_complete = bool(np.isfinite(column).all() and (column % 1 == 0).all()) if is_numeric(column) else (
            all(value is not None and value.strip() for value in column))
        images = Counter(column.tolist() if is_complete else ())
        alone = sum(count == 1 for count in images.values())
        if 2 <= len(images) <= len(column) / 2 and alone <= len(images) / 2:
            sizes[name] = len(images)
    return dict(sorted(sizes.items(), key=lambda item: (is_numeric(columns[item[0]]), item[1])))


def rows_with(column: Array, value: str | tuple[float, float]) -> Booleans:
    """Return the mask (n,) of the rows with a text, or with a number between two limits."""
    if isinstance(value, tuple):
        low, high = value
        return np.asarray((column >= low) & (column <= high))
    return np.asarray(column == value)
