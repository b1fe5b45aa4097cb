"""The measurement of visitors at once, in small, and its record."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from experiments.hold_fast.sockets import Pictures, Visitor, run_alone
from experiments.real_server import ROOT
from experiments.visitors import (
    GUESTS,
    MEMORY,
    MOVERS,
    PAGE,
    QUERY,
    STEPS,
    Server,
    epsilon_of,
    measure_steps,
    move_all,
    started,
)
from udml_core.results import records

RECORD = ROOT / "assets" / "results" / "visitors.json"
MOST_PER_SESSION = 10.0
"""Megabytes of the server for a session."""


class Guest:
    """A visitor without a server, whose every movement changes what is drawn."""

    def __init__(self) -> None:
        self.pictures, self.moves = Pictures(), 0
        self.pictures.sliders["epsilon"] = "", {"low": 0.0, "high": 1.0, "step": 0.1, "value": 0.5}

    async def move(self, choose: Callable[[dict[str, Any]], float], number: int) -> float:
        self.moves += 1
        choose(list(self.pictures.sliders.values())[number][1])
        self.pictures.drawn["map"] = str(self.moves)
        return 0.25


def test_all_visitors_together_make_as_many_movements_as_the_row_says() -> None:
    guests = [Guest() for _ in range(MOVERS)]
    visitors = cast(list[Visitor], guests)
    server = cast(Server, SimpleNamespace(seconds=lambda: 0.0))
    made: list[int] = []
    row = run_alone(measure_steps(server, visitors, 5000, 10, made.append))
    assert row["steps"] == sum(guest.moves for guest in guests) == 5000
    assert made == list(range(500, 5001, 500))
    assert max(guest.moves for guest in guests) - min(guest.moves for guest in guests) <= 10
    assert (row["step p50 s"], row["step slowest s"], row["steps that changed the picture"]) == (0.25, 0.25, 1)


def test_movements_are_spread_over_their_time() -> None:
    guests, began = [Guest() for _ in range(3)], time.monotonic()
    run_alone(move_all(cast(list[Visitor], guests), 12, lasting=0.4))
    assert time.monotonic() - began > 0.35  # the last of four movements of the third visitor is due after 0.37 s
    assert [guest.moves for guest in guests] == [4, 4, 4]


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
                    "120", "--minutes", "0.2", "--out", str(path)], cwd=ROOT, check=True, timeout=600)
    record = json.loads(path.read_text())
    check(record)
    rows = record["datasets"]["Visitors at once"]["rows"]
    assert {name: row["steps"] for name, row in rows.items()} == {
        "1 visitors": STEPS, "3 visitors": 3 * STEPS, f"{MOVERS} visitors, 120 steps": 120}
    assert 0.2 <= rows[f"{MOVERS} visitors, 120 steps"]["minutes"] < 2
    assert list(record["datasets"][GUESTS]["rows"]) == ["0 guests", "3 guests"]
    assert list(record["datasets"][MEMORY]["rows"]) == [f"{12 * tenth} steps" for tenth in range(1, 11)]


def test_the_record_keeps_what_is_promised_and_its_text_states_its_figures() -> None:
    record = json.loads(RECORD.read_text())
    check(record)
    rows = record["datasets"]["Visitors at once"]["rows"]
    held = rows.pop(f"{MOVERS} visitors, 5,000 steps", None)  # earlier records have no such row
    assert rows.keys() == {"1 visitors", "6 visitors", "12 visitors", "30 visitors"}
    assert rows["12 visitors"]["first picture slowest s"] <= 6
    assert rows["30 visitors"]["first picture slowest s"] <= 15
    assert rows["12 visitors"]["step slowest s"] <= 1
    assert (record["guests"], record["steps"]) == (200, 5000)
    guests, steps = memory(record)
    assert guests[-1] - guests[1] < 50
    assert steps[-1] - steps[1] < 50
    text = next(" ".join(finding.text.split()) for finding in records.findings() if finding.name == "visitors")
    pictures, moves = ({number: [f"{rows[f'{number} visitors'][f'{name} {which} s']:.1f} s" for which in (
        "p50", "slowest")] for number in (1, 12, 30)} for name in ("first picture", "step"))
    used = [row["processor s per step"] for row in rows.values() if row["browsers"]]
    for stated in (f"after {pictures[30][0]} (median) and for the last of them after {pictures[30][1]}",
                   f"with 12 visitors after {' and '.join(pictures[12])}, with one after {pictures[1][0]}",
                   f"takes {moves[12][0]} (median), the slowest {moves[12][1]}",
                   f"with 30 visitors {' and '.join(moves[30])}",
                   f"share {min(used):.2f} to {max(used):.2f} s of work for each step",
                   f"holds {max(row['MB per session'] for row in rows.values()):.1f} MB",
                   f"stayed between {min(guests):.0f} and {max(guests):.0f} MB",
                   f"between {min(steps):.0f} and {max(steps):.0f} MB while"):
        assert stated in text
    if held is not None:
        assert held["steps"] == 5000
        assert held["step slowest s"] <= 1.2
        assert (f"Over the 5,000 steps a step takes {held['step p50 s']:.1f} s (median), the slowest "
                f"{held['step slowest s']:.1f} s") in text


def test_the_record_of_an_hour_is_flat_and_its_text_states_its_figures() -> None:
    record = json.loads((RECORD.parent / "visitors-hour.json").read_text())
    check(record)
    (row,), rows = record["datasets"]["Visitors at once"]["rows"].values(), record["datasets"][MEMORY]["rows"]
    assert (row["steps"], row["minutes"]) == (5000, 60)
    assert row["steps that changed the picture"] == 1
    sizes = [of["server MB"] for of in rows.values()]
    assert max(sizes[1:]) - min(sizes[1:]) < 20
    text = next(" ".join(finding.text.split()) for finding in records.findings() if finding.name == "visitors-hour")
    for stated in (f"{sizes[0]:.0f} MB after 500", f"between {min(sizes[1:]):.0f} and {max(sizes[1:]):.0f} MB",
                   f"takes {row['step p50 s']:.2f} s (median) and {row['processor s per step']:.2f} s",
                   f"the slowest took {row['step slowest s']:.1f} s"):
        assert stated in text


def memory(record: dict[str, Any]) -> list[list[float]]:
    """Return the server's megabytes while guests come and go, and over the steps."""
    if "memory" in record:  # a record before these were tables
        return list(record["memory"].values())
    return [[row["server MB"] for row in record["datasets"][table]["rows"].values()] for table in (GUESTS, MEMORY)]


def check(record: dict[str, Any]) -> None:
    for name, row in record["datasets"]["Visitors at once"]["rows"].items():
        assert row["steps that changed the picture"] > 0.95
        assert 0 < row["processor s per step"] < 1
        assert row["step p50 s"] <= row["step slowest s"]
        if not name.endswith("steps"):
            assert row["MB per session"] <= MOST_PER_SESSION
            assert row["first picture p50 s"] <= row["first picture slowest s"]
