"""What holds for every layout."""

from __future__ import annotations

import numpy as np

from udml_core.arrays import Array


def median_move(one: Array, other: Array) -> float:
    """The median way of a point from one layout to another, as a share of the layout's extent."""
    return float(np.median(np.linalg.norm(one - other, axis=1)) / np.ptp(one, axis=0).max())
