"""Medians of alternating repetitions, so that a busy moment does not affect only one contestant."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any


def seconds(call: Callable[[], Any]) -> float:
    begin = perf_counter()
    call()
    return perf_counter() - begin


def medians(repetitions: int, **contestants: Callable[[], Any]) -> dict[str, float]:
    """Return the median seconds of each contestant; all contestants run once in every round."""
    rounds = [{name: seconds(call) for name, call in contestants.items()} for _ in range(repetitions)]
    return {name: median(times[name] for times in rounds) for name in contestants}
