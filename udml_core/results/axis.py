"""The part of an axis on which most values of a measure lie, so that an outlier does not stretch it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

FAR = 3.0
"""Widths of the middle half by which an outlier is beyond it: Tukey's outer fence."""
ROOM = 0.12
"""Distance of the outliers' marks from the other values, as a share of these values' range."""
FEWEST = 5
"""Values of which some can be outliers."""


def outer_fence(values: Sequence[float], lower_is_better: bool = False) -> float | None:
    """Return the value beyond which the worse values of a measure are outliers.

    Args:
        values: The values, in any order.
        lower_is_better: Whether outliers lie above the others instead of below.

    Returns:
        Tukey's outer fence; None if no value is beyond it, or if the values are too few or too equal to say.

    References:
        J. W. Tukey, "Exploratory Data Analysis", 1977, chapter 2.
    """
    if len(values) < FEWEST:
        return None
    first, third = np.percentile(values, (25, 75))
    width = FAR * (third - first)
    fence = float(third + width if lower_is_better else first - width)
    is_beyond = max(values) > fence if lower_is_better else min(values) < fence
    return fence if width > 0 and is_beyond else None


def place_beyond(values: Sequence[float], fence: float, lower_is_better: bool = False) -> float:
    """Return the place of the outliers' marks on an axis: a little beyond the worst value within the fence."""
    inside = [value for value in values if (value <= fence if lower_is_better else value >= fence)]
    room = ROOM * (max(inside) - min(inside))
    return max(inside) + room if lower_is_better else min(inside) - room
