"""Raised thresholds of glibc's allocator against the defaults, on the default backbone."""

from __future__ import annotations

import sys

import pytest

from experiments.malloc_costs import costs

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs glibc")
def test_raised_thresholds_save_page_faults_and_system_time() -> None:
    rows = costs(rounds=3)
    default, raised = rows["glibc's default thresholds"], rows["raised thresholds"]
    for name, row in rows.items():
        print(f"{name}: " + ", ".join(f"{measure} {value:.4g}" for measure, value in row.items()))
    assert raised["page faults"] < default["page faults"]
    assert raised["system seconds"] < default["system seconds"]
