"""The record of plans: its text states how many were within the goal's factors, and the largest ones."""

from __future__ import annotations

import json

import pytest

from experiments.plan_times import BUSY, IDLE, PLANS, summary
from udml_core.results.records import FOLDER, findings


def test_a_factor_counts_in_both_directions() -> None:
    row = {"idle, factor": 1.0, "busy, factor": 2.0}
    found = summary({"a": row, "b": row | {"idle, factor": 0.5}, "c": row | {"busy, factor": 4.0}})
    assert found == {"plans": 3, "idle, within 1.5": 2, "idle, largest": 2, "busy, within 3": 2, "busy, largest": 4}


def test_the_text_states_the_factors_of_the_record() -> None:
    read = json.loads((FOLDER / "plan-times.json").read_text(encoding="utf-8"))
    table = read["datasets"]["Plans and what they took"]
    rows, found = table["rows"], table["summary"]
    assert len(rows) == len(PLANS)
    for row in rows.values():
        for name in ("idle", "busy"):
            assert row[f"{name}, factor"] == pytest.approx(row[f"{name}, taken"] / row[f"{name}, stated"], abs=0.01)
    assert found == summary(rows)
    text = " ".join(next(finding.text for finding in findings() if finding.name == "plan-times").split())
    assert f"All {found['idle, within 1.5']:.0f} of {len(rows)} plans were within a factor of {IDLE:g}** " in text
    assert f"at most {found['idle, largest']}, on an idle machine" in text
    assert f"{found['busy, within 3']:.0f} of {len(rows)} were within a factor of {BUSY:g}, at most " in text
    assert f"at most {found['busy, largest']}:" in text
