"""Measures of layouts that several tests use."""

from __future__ import annotations

import numpy as np

from udml_core.base.arrays import Array


def median_move(before: Array, after: Array) -> float:
    """Return the median distance of a point between two layouts.

    It is a share of the first layout's extent.
    """
    return float(np.median(np.linalg.norm(before - after, axis=1)) / np.ptp(before, axis=0).max())
