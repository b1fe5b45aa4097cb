"""Array types, the size from which arrays count as large, rows of images and samples of rows."""

from __future__ import annotations

from collections.abc import Mapping
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
