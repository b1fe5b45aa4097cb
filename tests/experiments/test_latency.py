"""The record of answer times: its text states which interactions miss the goal, and the times of visits."""

from __future__ import annotations

import json

from udml_core.base.errors import listed
from udml_core.results.records import FOLDER, findings

GOAL = 250
"""Milliseconds in which what Python does answers."""


def test_the_text_states_which_interactions_miss_the_goal() -> None:
    rows = json.loads((FOLDER / "latency.json").read_text(encoding="utf-8"))["datasets"]["Every page"]["rows"]
    text = " ".join(next(finding.text for finding in findings() if finding.name == "latency").split())
    slow = sorted((row for row in rows.items() if row[1]["picture ms"] > GOAL), key=lambda row: -row[1]["picture ms"])
    missed = listed([f"{name.partition(':')[0]} ({row['picture ms'] / 1000:.2f} s)" for name, row in slow])
    assert f"met by {len(rows) - len(slow)} of {len(rows)} interactions**, and missed by {missed}." in text
    assert max(row["first change ms"] for row in rows.values()) <= 50, "within 0.05 s"
    for visit, exceptions in (("later visits ms", 3), ("first visit ms", 2)):
        times = sorted(row[visit] / 1000 for row in rows.values())
        usual = times[:-exceptions]
        assert f"{usual[0]:.2f} to {usual[-1]:.2f} s" in text
        assert all(f"{seconds:.2f} s on " in text for seconds in times[-exceptions:])
