"""A small bar for each run: how far MAP@R and R@1 are from the better baseline, in gray where chance may be why."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence

from ..draw.palette import AFTER, BEFORE, LEVEL, MISS

BAR_WIDTH, BAR_HEIGHT = 80, 20
"""Size of a picture in pixels."""
ROWS = ((3, 8), (13, 4))
"""Top and height of the bar of each measure: the main measure is thicker."""
LEAST_SCALE = 5.0
"""Percentage points of half of the width at least, so that a difference of a tenth stays small."""


COLORS = {1: AFTER, 0: LEVEL, -1: MISS}
"""The color of a bar by its side of the baselines."""


def baseline_bars(differences: Sequence[Sequence[float | None]], sides: Sequence[Sequence[int]]) -> list[str | None]:
    """Draw the differences of each run to the better baseline as bars from a middle line, on one scale for all runs.

    Args:
        differences: Percentage points of the two measures for each run; None where one was not measured.
        sides: The side of the baselines of each difference, 0 where chance may decide it; see `side_of`.

    Returns:
        A picture as a data address for each run; None for a run without any difference.
    """
    scale = bar_scale([value for of_run in differences for value in of_run if value is not None])
    return [None if all(value is None for value in of_run) else _address(bar_svg(of_run, of_sides, scale))
            for of_run, of_sides in zip(differences, sides, strict=True)]


def bar_scale(differences: Sequence[float]) -> float:
    """Return the percentage points at either end of the bars: a whole number that no difference exceeds."""
    return float(math.ceil(max([LEAST_SCALE, *map(abs, differences)])))


def bar_svg(differences: Sequence[float | None], sides: Sequence[int], scale: float) -> str:
    """Draw the bars of one run.

    Args:
        differences: Percentage points of the two measures; None where one was not measured.
        sides: The side of the baselines of each difference.
        scale: Percentage points of half of the width.
    """
    middle = BAR_WIDTH / 2
    bars = []
    for value, side, (top, height) in zip(differences, sides, ROWS, strict=True):
        if value:
            length = max(1.0, middle * min(1.0, abs(value) / scale))
            left = middle if value > 0 else middle - length
            bars.append(f'<rect x="{left:.1f}" y="{top}" width="{length:.1f}" height="{height}" '
                        f'fill="{COLORS[side]}"/>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{BAR_WIDTH}" height="{BAR_HEIGHT}" '
            f'viewBox="0 0 {BAR_WIDTH} {BAR_HEIGHT}">{"".join(bars)}'
            f'<path d="M{middle} 0V{BAR_HEIGHT}" stroke="{BEFORE}" stroke-width="1.5"/></svg>')


def _address(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
