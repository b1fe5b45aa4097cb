"""The record of rates and statistics: its text states what was measured."""

import json

import pytest

from udml_core.results.records import FOLDER

ROWS = json.loads((FOLDER / "birds100-rates.json").read_text(encoding="utf-8"))["rows"]
SAID = " ".join((FOLDER / "findings.toml").read_text(encoding="utf-8").partition("[birds100-rates]")[2]
                .partition("\n[")[0].split())


def measured(row: str, candidate: str = "final") -> tuple[float, float]:
    """Return R@1 and MAP@R of a row, rounded as in the text."""
    summary = ROWS[row]["summary"][candidate]
    return round(summary["recall@1"][0], 1), round(summary["map@r"][0], 1)


@pytest.mark.parametrize(("row", "words"), [
    ("SupCon, all labels, rate 0.001, frozen statistics",
     "R@1 {} and MAP@R {} with frozen statistics, at a rate of 0.001"),
    ("SupCon, all labels, rate 0.01, batch statistics", "at best {} and {} with the statistics of the batches"),
    ("STML, rate 1e-05, frozen statistics", "at {} and {} with frozen statistics"),
    ("STML, rate 1e-05, batch statistics", "and at {} and {} without them"),
    ("PLM, rate 1e-06, frozen statistics", "PLM at 0.000001 at {} and {},"),
    ("PLM, rate 1e-06, batch statistics", "and at {} and {}."),
    ("ISIF, rate 0.0001, frozen statistics", "ISIF, at 0.0001, ends at {} and {},"),
    ("ISIF, rate 0.0001, batch statistics", "and at {} and {}; at higher rates"),
    ("SupCon, all labels, rate 0.03, frozen statistics", "to {} and {} at 0.03"),
    ("STML, rate 0.0001, frozen statistics", "above its start**: {} and {},")])
def test_the_text_states_the_figures_of_a_row(row: str, words: str) -> None:
    assert words.format(*measured(row)) in SAID


def test_the_text_states_gains_and_what_holds_for_all_rows() -> None:
    start = measured("ISIF, rate 0.0001, frozen statistics", "centered pca")
    assert all(abs(measured(row, "initial")[1] - start[1]) < 0.1 for row in ROWS)

    def gain(row: str) -> float:
        return round(measured(row)[1] - start[1], 1)

    assert f"the control gains {gain('SupCon, all labels, rate 0.0001, frozen statistics')} points" in SAID
    assert f"ISIF loses {-gain('ISIF, rate 0.0001, frozen statistics')}:" in SAID
    assert f"loses {-gain('PLM, rate 1e-05, frozen statistics')} points of MAP@R at 0.00001" in SAID
    above = [row for row in ROWS if gain(row) > 0 and not row.startswith("SupCon")]
    assert above == ["STML, rate 0.0001, frozen statistics"]
    batch = {row: measured(row)[1] for row in ROWS if "batch" in row and row.startswith("SupCon")}
    assert max(batch, key=lambda row: batch[row]) == "SupCon, all labels, rate 0.01, batch statistics"
    summary = (FOLDER / "findings.toml").read_text(encoding="utf-8").partition("\n[")[0]
    assert f"them it gains {gain('SupCon, all labels, rate 0.001, frozen statistics')} points" in summary
