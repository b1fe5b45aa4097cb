"""The record of starts: its parts make the whole, and its text states what a worker that is kept ready saves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.start_times import FIRST_EPOCH, REST, ROUNDS, RUNS, WHOLE, parts_of
from tests.running import worked
from udml_core.results.records import FOLDER, findings


def test_the_parts_of_a_start_make_the_whole(tmp_path: Path) -> None:
    run = worked(tmp_path / "runs")
    parts = parts_of(run, run.stored_status().ticket + 60.0)
    assert parts[WHOLE] == 60.0
    assert sum(seconds for part, seconds in parts.items() if part != WHOLE) == pytest.approx(60.0)
    assert {FIRST_EPOCH, REST} <= set(parts)
    assert "evaluation" not in parts, "what follows the training is no part of the start"


def test_the_text_states_what_a_worker_that_is_kept_ready_saves() -> None:
    rows = json.loads((FOLDER / "start-times.json").read_text(encoding="utf-8"))["datasets"]["Starts of runs"]["rows"]
    assert ROUNDS >= 3
    assert len(rows) == 2 * len(RUNS)
    text = " ".join(next(finding.text for finding in findings() if finding.name == "start-times").split())
    shares = []
    for name in RUNS:
        new, kept = (rows[f"{name}, {how}"][WHOLE] for how in ("a new process", "a worker kept ready"))
        assert kept < new
        shares.append(rows[f"{name}, a new process"]["loading the libraries"] / new)
        assert f"{name}: {new:.1f} s in a new process, {kept:.1f} s with a worker kept ready" in text
    assert f"loading the libraries takes {100 * min(shares):.0f} to {100 * max(shares):.0f} %" in text
