"""What the page Results says of blurred images, computed from the record."""

from __future__ import annotations

import json

from experiments.blur import MEASURES
from udml_core.results.records import FOLDER


def counts(rows: dict[str, dict[str, list[float]]], measure: str) -> str:
    *first, last = (f"{row[measure][0]:.0f}" for row in rows.values())
    return f"{', '.join(first)} and {last}"


def test_the_words_state_the_counts_of_the_record() -> None:
    record = json.loads((FOLDER / "blur.json").read_text(encoding="utf-8"))["datasets"]
    said = (FOLDER / "findings.toml").read_text(encoding="utf-8").partition("[blur]")[2].partition("\n[")[0]
    words, (reference, own) = " ".join(said.split()), MEASURES
    for name in ("photographs", "drawings", "clothes"):
        rows = record[name]["rows"]
        assert f"{name} {counts(rows, own)} in place of {counts(rows, reference)}" in words
    planted = record["messy folder, five planted"]["rows"]["first 5"]
    assert f"it puts {planted[own][0]:.0f} among the first five in place of {planted[reference][0]:.0f}" in words
