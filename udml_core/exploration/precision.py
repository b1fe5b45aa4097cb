"""mprec@K of several runs beside each other: over K, and over the width of their embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count, takewhile
from typing import Any

import numpy as np

from udml_core.arrays import Array

Row = Mapping[str, Any]
"""An evaluation of one embedding: measures by name, in percent."""


def over_depth(row: Row) -> Array:
    """mprec@K (k,) for K = 1, 2, …, as far as an evaluation keeps them."""
    return np.array([*takewhile(lambda value: value is not None, (row.get(f"mprec@{k}") for k in count(1)))], float)


def over_width(kinds: Sequence[str], rows: Sequence[Row], depth: int = 10) -> dict[str, tuple[Array, Array]]:
    """Of each kind of run the widths (w,), ascending, and the mean of mprec@`depth` over its runs of each width (w,).

    Args:
        kinds, rows: what each run is but for its width, and its evaluation.
    """
    values: dict[str, dict[int, list[float]]] = {}
    for kind, row in zip(kinds, rows, strict=True):
        values.setdefault(kind, {}).setdefault(int(row["dimension"]), []).append(row[f"mprec@{depth}"])
    return {kind: (np.array(sorted(found)), np.array([np.mean(found[width]) for width in sorted(found)]))
            for kind, found in values.items()}
