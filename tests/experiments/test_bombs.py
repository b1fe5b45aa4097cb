"""The measurement of small files that need gigabytes, in small, and its record."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from experiments.bombs import BOMBS, CELLS, SHOWN, STRANGERS, TABLES
from experiments.outside_texts import CELLS as CELLS_OF
from experiments.outside_texts import REPLACED, TEXTS
from experiments.real_server import ROOT
from udml_core.results import records

RECORD = ROOT / "assets" / "results" / "bombs.json"
MOST_GROWTH = 100.0
"""Megabytes by which the server may grow, as for the files in tests/base/test_bounded.py."""


@pytest.mark.slow
def test_the_command_measures_and_writes_its_record(tmp_path: Path) -> None:
    path = tmp_path / "bombs.json"
    subprocess.run([sys.executable, "-m", "experiments.bombs", "--files", "text", "--limit", "2", "--out", str(path)],
                   cwd=ROOT, check=True, timeout=400)
    record = json.loads(path.read_text())
    check(record)
    (row,) = record["datasets"][TABLES]["rows"].values()
    assert row["plain reader MB"] == 2000, "the file is real: it takes all that it may"


def check(record: dict[str, Any]) -> None:
    for row in record["datasets"][TABLES]["rows"].values():
        assert row["file MB"] < 4
        assert row["server MB more"] < MOST_GROWTH
        assert row["plain reader MB"] > 10 * row["reading process MB"]
    for row in record["datasets"][STRANGERS]["rows"].values():
        assert row["status"] == 403
        assert row["answer p50 ms"] <= row["answer slowest ms"]
    before = {title: row["status before"] for title, row in record["datasets"][STRANGERS]["rows"].items()}
    assert before == {"websocket, foreign Origin": 403, "page, foreign Origin": 200, "page, unknown Host": 200}
    shown, cells = (record["datasets"][title]["rows"] for title in (SHOWN, CELLS))
    assert shown == {text: {"raw": float(text not in REPLACED), "escaped": 1.0} for text in TEXTS}
    assert [sum(row[kind] for row in cells.values()) for kind in ("plain", "guarded")] == [len(cells) - 1, 0]


def test_the_text_states_the_figures_of_the_record() -> None:
    record = json.loads(RECORD.read_text())
    check(record)
    tables, strangers = (record["datasets"][title]["rows"] for title in (TABLES, STRANGERS))
    assert list(tables) == [title for title, _ in BOMBS.values()]
    labels, header, text, tile = tables.values()
    assert header["plain reader MB"] == text["plain reader MB"] == 1000 * record["limit"]
    words = next(" ".join(finding.text.split()) for finding in records.findings() if finding.name == "bombs")
    for stated in (f"cost the server {max(row['server MB more'] for row in tables.values()):.1f} MB",
                   f"({labels['file MB']:.1f} MB; a plain reader takes {labels['plain reader MB'] / 1000:.1f} GB)",
                   f"a header of 3 GB ({header['file MB']:.1f} MB)", f"name ({text['file MB']:.3f} MB)",
                   f"({tile['file MB']:.1f} MB; a plain reader takes {tile['plain reader MB'] / 1000:.1f} GB)",
                   f"the {record['limit']:g} GB that the plain reader may take",
                   f"in at most {max(row['answer s'] for row in tables.values()):.1f} s",
                   f"beyond {max(row['reading process MB'] for row in tables.values()):.0f} MB",
                   f"after {max(row['answer p50 ms'] for row in strangers.values()):.1f} ms",
                   f"took {max(row['answer slowest ms'] for row in strangers.values()):.0f} ms",
                   f"Of {len(TEXTS)} names", f"replaces something in {len(REPLACED)}", f"{len(CELLS_OF) - 1} cells"):
        assert stated in words, stated
