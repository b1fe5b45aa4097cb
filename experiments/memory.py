"""The largest memory of this process."""

from __future__ import annotations

from udml_core.base.peak_memory import largest_memory


def peak_megabytes() -> float:
    """Return the peak memory of this process in units of 2²⁰ bytes; see `largest_memory`."""
    return largest_memory() / 2**20
