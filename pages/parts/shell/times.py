"""How long a step of a task still takes, or has taken."""

from __future__ import annotations

import time

from udml_core.base.errors import duration
from udml_core.runs.tasks import Status

SOON = 3.0
"""Seconds from which a step says how long it has run."""


def time_words(status: Status) -> str:
    """Return how long the step of a task still takes, or else how long it has run; empty in its first seconds."""
    left = status.seconds_left
    return f"about {duration(left)} left" if left else passed_words(status)


def passed_words(status: Status) -> str:
    """Return how long the step of a task has run; empty in its first seconds, and unless it runs."""
    passed = time.time() - status.phase_started if status.state == "running" and status.phase_started else 0.0
    return f"{duration(passed)} so far" if passed >= SOON else ""
