"""Array types, and the size from which arrays count as large."""

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
