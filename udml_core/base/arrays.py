"""Array types, blocks of large arrays, rows of images and samples of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = np.ndarray[Any, Any]
"""An array whose data type varies or is named in the docstring."""
Floats = npt.NDArray[np.floating]
Integers = npt.NDArray[np.integer]
Booleans = npt.NDArray[np.bool_]
LARGE = 200_000
"""Number of rows above which searches, maps and evaluations are approximate or take a sample."""

WIDE = 4_096
"""Dimensions from which points are converted to float64 in blocks. Their distances are computed in it at once,
because float32 could tell too few of them apart."""
BLOCK_ENTRIES = 8_000_000
"""Numbers of a block of a matrix that is converted at once, 64 MB in float64."""


def blocks(count: int, other: int) -> Iterator[slice]:
    """Split rows or columns, so that a block of a matrix has at most `BLOCK_ENTRIES` numbers.

    Args:
        count: How many rows or columns are split.
        other: How many the matrix has along its other axis.
    """
    step = max(1, BLOCK_ENTRIES // max(1, other))
    return (slice(start, start + step) for start in range(0, count, step))


def smaller_product(points: Array, mean: Array) -> Array:
    """Return the product of centered points X (n, d) and their transpose: XXᵀ if n < d, else XᵀX.

    Both have the same positive eigenvalues; the smaller one saves minutes for few points of many dimensions.

    Args:
        points: (n, d).
        mean: (d,), subtracted from each point.
    """
    count, width = points.shape
    products = np.zeros((min(count, width),) * 2)
    if count < width:
        for columns in blocks(width, count):
            centered = points[:, columns] - mean[columns]
            products += centered @ centered.T
    else:
        for rows in blocks(count, width):
            centered = points[rows] - mean
            products += centered.T @ centered
    return products


def rows_of(indices: Integers, wanted: Integers | int) -> Integers:
    """Return the row of each wanted image.

    Args:
        indices: Image indices (n,), ascending.
        wanted: Image indices of any shape.

    Returns:
        Rows of this shape; −1 for an image that is not among the indices.
    """
    rows = np.searchsorted(indices, wanted).clip(max=max(0, len(indices) - 1))
    return np.where(indices[rows] == wanted, rows, -1) if len(indices) else np.full(np.shape(wanted), -1)


def rows_by_group(rows: Integers, groups: Integers) -> list[Integers]:
    """Return the rows of each group, by ascending group.

    Args:
        rows: Rows (m,) to divide, whose order stays within a group.
        groups: Group (n,) of every row.
    """
    order = rows[np.argsort(groups[rows], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1) if len(order) else []


def some_rows(array: Array, rows: Integers) -> Array:
    """Return rows of an array; the array itself, without a copy, if they are all of its rows.

    Args:
        array: (n, …).
        rows: Different rows (m,), ascending.
    """
    return array if len(rows) == len(array) else array[rows]


def evenly_spaced(count: int, most: int) -> Integers:
    """Return at most `most` of the rows 0 to count − 1, evenly spaced, both ends included."""
    return np.linspace(0, count - 1, min(count, most)).astype(np.int64)


def misfit(arrays: Mapping[str, Array], shapes: Mapping[str, str]) -> str | None:
    """Return what is wrong with the names, types or shapes of arrays; None if all fit.

    Args:
        arrays: The arrays by name.
        shapes: For each name its type and axes, such as `int n k`: int, bool, float or text, then one word an axis.
            Axes of one word have one length, and a number is a length.
    """
    kinds, lengths = {"int": "iu", "bool": "b", "float": "f", "text": "U"}, dict[str, int]()
    if set(arrays) != set(shapes):
        return f"it has the arrays {', '.join(sorted(arrays)) or 'none'}, not {', '.join(sorted(shapes))}"
    for name, words in shapes.items():
        kind, *axes = words.split()
        array = arrays[name]
        expected = tuple(int(axis) if axis.isdecimal() else lengths.setdefault(axis, length)
                         for axis, length in zip(axes, array.shape, strict=False))
        if array.dtype.kind not in kinds[kind] or len(axes) != array.ndim or array.shape != expected:
            return f"{name} is {array.dtype} {array.shape}, not {kind} ({', '.join(axes)})"
    return None
