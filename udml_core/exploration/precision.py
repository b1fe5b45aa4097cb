"""Curves of mprec@K for several runs: over K, and over the width of the embedding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count, takewhile
from typing import Any

import numpy as np

from udml_core.base.arrays import Array

Row = Mapping[str, Any]
"""An evaluation of one embedding: measures by name, in percent."""


def precision_over_depth(row: Row) -> Array:
    """Return mprec@K (k,) for K = 1, 2, ….

    The curve ends before the first K that the evaluation does not contain.
    """
    return np.array([*takewhile(lambda value: value is not None, (row.get(f"mprec@{k}") for k in count(1)))], float)


def precision_over_width(kinds: Sequence[str], rows: Sequence[Row], depth: int = 10) -> dict[str, tuple[Array, Array]]:
    """Average mprec@K over the runs of each kind and width.

    Args:
        kinds: What each run is, without its width; runs of the same kind form one curve.
        rows: Evaluation of each run.
        depth: K.

    Returns:
        For each kind, the widths (w,), ascending, and the mean mprec@K at each width (w,).
    """
    values: dict[str, dict[int, list[float]]] = {}
    for kind, row in zip(kinds, rows, strict=True):
        values.setdefault(kind, {}).setdefault(int(row["dimension"]), []).append(row[f"mprec@{depth}"])
    return {kind: (np.array(sorted(by_width)), np.array([np.mean(by_width[width]) for width in sorted(by_width)]))
            for kind, by_width in values.items()}
