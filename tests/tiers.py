"""Which tests belong to `make test`: all but the tests that are marked as slow or listed in `slow.txt`.

`PYTEST_ADDOPTS=--junitxml=tests.xml make test` records the time of each test, and `python -m tests.tiers tests.xml`
adds the slowest to the list, until the others take as long as they may.
"""

from __future__ import annotations

import argparse
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

LISTED = Path(__file__).with_name("slow.txt")
SHARE = 0.4
"""Share of the recorded time that stays in `make test`."""
KEPT = ("tests/app/test_browser", "tests/contract/", "tests/project/", "tests/work/test_survival.py")
"""Beginnings of tests that stay, however slow: they cover every page, every method, a kill, and what every change must
keep; see `test_tiers.py`."""


def fast_first(values: Iterable[Any], count: int = 1) -> list[Any]:
    """Mark the values of a test after the first few as slow.

    Args:
        values: The values; a tuple has one value for each name.
        count: Number of values that `make test` keeps.
    """
    listed = [value if hasattr(value, "marks") else pytest.param(*value) if isinstance(value, tuple)
              else pytest.param(value) for value in values]
    return listed[:count] + [pytest.param(*value.values, id=value.id, marks=[*value.marks, pytest.mark.slow])
                             for value in listed[count:]]


def slow_tests() -> frozenset[str]:
    """Return the names of the listed tests."""
    return frozenset(LISTED.read_text(encoding="utf-8").splitlines())


def times_in(report: Path) -> dict[str, float]:
    """Return the seconds of each test in a report of pytest, by name."""
    cases = ElementTree.parse(report).getroot().iter("testcase")
    return {f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}": float(case.get("time", 0))
            for case in cases}


def slowest(times: dict[str, float], share: float) -> list[str]:
    """Return the slowest tests without which the others take a share of the time."""
    left, found = sum(times.values()), []
    for name in sorted(times, key=lambda name: -times[name]):
        if left <= share * sum(times.values()):
            break
        if not name.startswith(KEPT):
            found.append(name)
            left -= times[name]
    return found


def main() -> None:
    """Add the slowest tests of a report to the list."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("report", type=Path, help="What pytest wrote with --junitxml.")
    parser.add_argument("--share", type=float, default=SHARE, help="Share of the time that stays in `make test`.")
    options = parser.parse_args()
    names = slow_tests() | set(slowest(times_in(options.report), options.share))
    LISTED.write_text("".join(f"{name}\n" for name in sorted(names)), encoding="utf-8")


if __name__ == "__main__":
    main()
