"""Speeds that were measured on this machine, kept in the cache folder for estimates."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from filelock import FileLock

from udml_core.base.files import replace_text
from udml_core.base.paths import cache_folder
from udml_core.base.ticking import ALMOST, ticking
from udml_core.data.dataset import Report

KEPT = 5
"""Newest measurements of a kind that count."""


def record_speed(kind: str, value: float) -> None:
    """Keep a measurement.

    Args:
        kind: What was measured, such as `image efficientnet-lite0-mean-224`.
        value: Seconds, or measured by expected seconds.
    """
    path = _path()
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        known = _read()
        known[kind] = [*known.get(kind, []), value][-KEPT:]
        replace_text(path, json.dumps(known))


def measured_speed(kind: str) -> float | None:
    """Return the median of the newest measurements of a kind; None without one."""
    values = _read().get(kind)
    return median(values) if values else None


@contextmanager
def measured_step(report: Report, step: str, kind: str, count: int) -> Iterator[None]:
    """Report a step that says nothing itself, with the share of the time that it took before on this machine.

    Args:
        report: Receives the progress; the share stays 0 the first time.
        step: Name of the step.
        kind: The kind of speed, in seconds for each image.
        count: Number of images.
    """
    expected, began = (measured_speed(kind) or 0.0) * count, time.monotonic()

    def tick() -> None:
        report(min(ALMOST, (time.monotonic() - began) / expected) if expected else 0.0, step)

    report(0.0, step)
    with ticking(tick):
        yield
    record_speed(kind, (time.monotonic() - began) / max(1, count))


def _path() -> Path:
    return cache_folder() / "speed.json"


def _read() -> dict[str, list[float]]:
    try:
        known: dict[str, list[float]] = json.loads(_path().read_text(encoding="utf-8"))
        return known if isinstance(known, dict) else {}
    except (OSError, ValueError):
        return {}
