"""The largest memory of a process, and since a moment that forgets what was before."""

from __future__ import annotations

import mmap
import sys

import pytest

from udml_core.base import peak_memory as module
from udml_core.base.peak_memory import forget_peak, largest_memory, peak_memory

MUCH = 200_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux forgets")
def test_a_peak_counts_from_the_moment_that_forgets_and_the_largest_stays() -> None:
    forget_peak()
    before = peak_memory()
    with mmap.mmap(-1, MUCH) as block:  # an array could reuse memory that was freed
        block[::4096] = bytes(len(range(0, MUCH, 4096)))
    assert peak_memory() - before + 10e6 > MUCH
    largest = largest_memory()
    forget_peak()
    assert peak_memory() < before + MUCH / 2
    assert largest_memory() >= largest


def test_without_the_record_of_linux_the_systems_own_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STATUS", module.STATUS / "missing")
    monkeypatch.setattr(module, "RESET", module.RESET / "missing")
    forget_peak()
    assert peak_memory() > 20e6 or sys.platform == "win32"
