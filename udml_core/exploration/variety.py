"""Orders that show many classes early."""

from __future__ import annotations

import numpy as np

from udml_core.base.arrays import Array


def classes_in_turn(labels: Array) -> Array:
    """Return rows (n,) so that the first row of every class comes first, then every second one, and so on.

    Args:
        labels: Classes (n,) of a list, most important first.
    """
    turns: dict[int, int] = {}
    turn_of = np.empty(len(labels), dtype=np.int64)
    for row, label in enumerate(np.asarray(labels).tolist()):
        turn_of[row] = turns[label] = turns.get(label, -1) + 1
    return np.argsort(turn_of, kind="stable")
