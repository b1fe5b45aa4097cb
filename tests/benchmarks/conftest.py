"""Benchmarks take minutes and need a quiet machine, so they run only with UDML_BENCHMARK=1."""

from __future__ import annotations

import os

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("UDML_BENCHMARK") == "1":
        return
    reason = "takes minutes; run with `UDML_BENCHMARK=1 pytest tests/benchmarks -s`"
    for item in items:
        if item.get_closest_marker("benchmark"):
            item.add_marker(pytest.mark.skip(reason=reason))
