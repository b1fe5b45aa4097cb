"""The verdict on several runs: which is best, by how much, and what may explain the difference."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

from udml_core.runs.run_comparison import Spread, spread
from udml_core.runs.verdict import Standing

from ..draw.palette import percent
from ..shell.run_status import escaped

Interval = tuple[float, float]


def verdict_words(measured: Mapping[str, Sequence[Standing]],
                  nearest: Mapping[str, Sequence[Standing]] | None = None,
                  interval: Callable[[str, str], Interval | None] = lambda _best, _second: None,
                  raw: str = "frozen features") -> tuple[str, str]:
    """Judge runs on the same test images by MAP@R.

    Means are compared as they are shown, with one decimal.

    Args:
        measured: The standings over the seeds, by the runs' name.
        nearest: The same of R@1, which is named where it contradicts.
        interval: Returns the 95 % interval of the first name's gap to the second in percentage points, if it is known.
        raw: What the images are compared by without training.

    Returns:
        The verdict, and how certain it is, in Markdown; empty texts if fewer than two names have a measure.
    """
    after = {name: mean for name, standings in measured.items()
             if (mean := spread([standing.after for standing in standings])) is not None}
    if len(after) < 2:
        return "", ""
    best, second, *_ = sorted(after, key=lambda name: -after[name].mean)
    gap = _gap(after[best].mean, after[second].mean)
    shown = percent(after[best].mean).replace(" ", "\N{NO-BREAK SPACE}")  # no line begins with the sign
    frozen = _against_frozen(measured[best], () if nearest is None else nearest[best], raw)
    if not gap:
        return (f"**{escaped(best)} and {escaped(second)} are level** in the whole group found: {shown}"
                f"{frozen}."), ""
    bounds = interval(best, second)
    span, chance = "", ""
    if bounds is not None:
        low, high = (f"{value:.1f}".replace("-", "−") for value in bounds)
        span = f" (95 % interval over queries: {low} to {high})"
        chance = "The interval includes 0, so the order may be chance. " if bounds[0] <= 0 <= bounds[1] else ""
    return (f"**{escaped(best)} finds most of the whole group**: {shown}, {gap:.1f} points above "
            f"{escaped(second)}{span}{frozen}.", chance + _against_spread(gap, after[best], after[second]))


def _against_frozen(standings: Sequence[Standing], nearest: Sequence[Standing], raw: str) -> str:
    """Compare a run's means with the frozen features: MAP@R, and R@1 where it is on the other side."""
    gap, of_nearest = _over_frozen(standings), _over_frozen(nearest)
    if gap is None or all(standing.gain == standing.over_frozen == 0 for standing in standings):
        return ""  # unknown, or the run is the frozen features themselves
    contrast = ""
    if of_nearest is not None and gap * of_nearest < 0:
        side = "less" if of_nearest < 0 else "more"
        contrast = f"; its first result is right {side} often than with them, by {abs(of_nearest):.1f} points"
    if gap < 0:
        return f", but {-gap:.1f} points below {raw}{contrast}"
    return f" and {gap:.1f} points above {raw}{contrast}" if gap else f" and level with {raw}"


def unequal_words(supervision: Sequence[str], dimensions: Collection[int]) -> str:
    """Say what compared runs do not share, so that their order says little of their methods.

    Args:
        supervision: What their methods learn from, in words.
        dimensions: The dimensions of their embeddings.
    """
    differing = []
    if len(set(supervision)) > 1:
        differing.append(f"supervision ({', '.join(dict.fromkeys(supervision))})")
    if len(set(dimensions)) > 1:
        differing.append(f"dimensions ({', '.join(map(str, sorted(set(dimensions))))})")
    if not differing:
        return ""
    return f"Different {' and '.join(differing)}: this compares these runs, not their methods."


def _over_frozen(standings: Sequence[Standing]) -> float | None:
    """Return the difference of the means to the frozen features; None if one was not measured."""
    after, frozen = (spread([getattr(standing, name) for standing in standings]) for name in ("after", "frozen"))
    return None if after is None or frozen is None else _gap(after.mean, frozen.mean)


def _against_spread(gap: float, first: Spread, second: Spread) -> str:
    """Compare a difference of means with its spread over seeds.

    The spread of the difference of two runs is √(s₁² + s₂²) for the standard deviations s₁ and s₂ of the runs.
    """
    if first.deviation is None or second.deviation is None:
        return "Runs with other seeds would show the spread."
    deviation = round(math.hypot(first.deviation, second.deviation), 1)
    if gap > deviation:
        return f"The difference is larger than its spread over seeds, ± {deviation:.1f} points."
    return f"The difference is within its spread over seeds, ± {deviation:.1f} points, so the order may be chance."


def _gap(first: float, second: float) -> float:
    """Return a difference of two values as they are shown, with one decimal."""
    return round(round(first, 1) - round(second, 1), 1)
