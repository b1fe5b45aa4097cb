"""The record of the engines of inference: its text states what was measured."""

import json
from typing import Any

from udml_core.results.records import FOLDER


def test_the_text_states_the_figures_of_the_record() -> None:
    record: dict[str, Any] = json.loads((FOLDER / "inference.json").read_text(encoding="utf-8"))
    rows = list(record["datasets"]["Features on a CPU"]["rows"].values())
    said = (FOLDER / "findings.toml").read_text(encoding="utf-8").partition("[inference]")[2].partition("\n[")[0]
    words = " ".join(said.split())
    ratios = [row["ratio"] for row in rows]
    assert f"in {min(ratios):.1f} to {max(ratios):.1f} times less processor time" in words
    assert "**The goal of four times is missed** in each row" in words
    assert max(ratios) < 4
    smallest = min(row["smallest cosine"] for row in rows)
    assert smallest > 0.99999, "else torch computes"
    assert f"the smallest cosine is {int(smallest * 1e7) / 1e7:.7f}" in words
    onnx = [values["processor seconds"] for row in rows for name, values in row.items() if name.startswith("ONNX")]
    shares = [100 * row["reading"] / (sum(seconds) / len(seconds)) for row, seconds in zip(rows, onnx, strict=True)]
    assert f"which is {min(shares):.0f} to {max(shares):.0f} percent" in words
    assert all("2,000 images" in words for row in rows if row["images"] == 2000)
