"""The measurement of visitors at once, in small, and its record."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.hold_fast.sockets import Pictures, Visitor
from experiments.real_server import ROOT
from experiments.visitors import PAGE, QUERY, epsilon_of, move_all, started
from tests.running import run_alone

RECORD = ROOT / "assets" / "results" / "visitors.json"
MOST_PER_SESSION = 10.0
"""Megabytes of the server for a session."""


@pytest.mark.slow
def test_visitors_without_a_browser_move_a_slider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_EXAMPLES", "1")

    async def visit(url: str) -> tuple[Visitor, list[float], int]:
        visitor = Visitor(url)
        await visitor.open(PAGE, QUERY)
        seconds, changed = await move_all([visitor], 4)
        before = visitor.pictures.drawn.copy()
        await visitor.move(lambda data: data["value"], epsilon_of(visitor))  # stays where it is
        assert visitor.pictures.drawn == before
        await visitor.close()
        return visitor, seconds, changed

    with started() as server:
        visitor, seconds, changed = run_alone(visit(server.url))
    assert (len(seconds), changed) == (4, 4)
    assert "epsilon=" in visitor.pictures.query
    assert all(name.startswith("/served/") for name in visitor.pictures.files)
    assert any("/served/scatter-" in name for name in visitor.pictures.files)  # the script is not in the messages
    assert visitor.bytes < 400_000


def test_other_messages_change_no_picture() -> None:
    pictures = Pictures()
    assert pictures.follow(b"") == "None"
    assert pictures.drawn == {}


@pytest.mark.slow
def test_the_command_measures_and_writes_its_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_EXAMPLES", "1")
    path = tmp_path / "visitors.json"
    subprocess.run([sys.executable, "-m", "experiments.visitors", "--numbers", "1", "3", "--guests", "3", "--steps",
                    "120", "--out", str(path)], cwd=ROOT, check=True, timeout=600)
    check(json.loads(path.read_text()))


def test_the_record_keeps_what_is_promised() -> None:
    if not RECORD.exists():
        pytest.skip("the class of thirty was not measured yet")
    record = json.loads(RECORD.read_text())
    check(record)
    rows = record["datasets"]["Visitors at once"]["rows"]
    assert rows.keys() == {"1 visitors", "6 visitors", "12 visitors", "30 visitors"}
    assert rows["12 visitors"]["first picture slowest s"] <= 6
    assert rows["30 visitors"]["first picture slowest s"] <= 15
    assert rows["12 visitors"]["step p50 s"] <= 1
    assert (record["guests"], record["steps"]) == (200, 5000)
    guests, steps = record["memory"].values()
    assert guests[-1] - guests[1] < 50
    assert steps[-1] - steps[1] < 50


def check(record: dict[str, object]) -> None:
    rows = record["datasets"]["Visitors at once"]["rows"]  # type: ignore[index]
    for row in rows.values():
        assert row["steps that changed the picture"] > 0.95
        assert row["MB per session"] <= MOST_PER_SESSION
        assert 0 < row["processor s per step"] < 1
        assert row["first picture p50 s"] <= row["first picture slowest s"]
