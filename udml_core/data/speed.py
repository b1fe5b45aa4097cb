"""Speeds that were measured on this machine, kept in the cache folder for estimates."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

from filelock import FileLock

from udml_core.base.files import replace_text
from udml_core.base.paths import cache_folder

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


def _path() -> Path:
    return cache_folder() / "speed.json"


def _read() -> dict[str, list[float]]:
    try:
        known: dict[str, list[float]] = json.loads(_path().read_text(encoding="utf-8"))
        return known if isinstance(known, dict) else {}
    except (OSError, ValueError):
        return {}
