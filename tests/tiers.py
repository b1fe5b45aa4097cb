"""Which values of a parametrized test belong to `make test`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


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
