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
    ("ISIF, rate 0.0001, batch statistics", "and at {} and {}. At its three higher rates"),
    ("SupCon, all labels, rate 0.03, frozen statistics", "to {} and {} at 0.03"),
    ("STML, rate 0.0001, frozen statistics", "above its start**: {} and {},")])
def test_the_text_states_the_figures_of_a_row(row: str, words: str) -> None:
    assert words.format(*measured(row)) in SAID


def test_the_text_states_gains_and_what_holds_for_all_rows() -> None:
    start = measured("ISIF, rate 0.0001, frozen statistics", "centered pca")
    assert all(abs(measured(row, "initial")[1] - start[1]) < 0.1 for row in ROWS)

    def gain(row: str, measure: str = "map@r") -> float:
        """Return the gain over the start, from values that are not rounded."""
        (run,) = ROWS[row]["runs"]
        return round(run["evaluation"]["final"][measure] - run["evaluation"]["initial"][measure], 1)

    stml, same, best = ("STML, rate 0.0001, frozen statistics", "SupCon, all labels, rate 0.0001, frozen statistics",
                        "SupCon, all labels, rate 0.001, frozen statistics")
    assert (f"Over its start it gains {gain(stml)} points of MAP@R and {gain(stml, 'recall@1')} of R@1, where the "
            f"control gains {gain(same)} and {gain(same, 'recall@1')} at the same rate and {gain(best)} and "
            f"{gain(best, 'recall@1')} at its best") in SAID
    frozen = measured(stml, "frozen")[0]
    assert f"R@1 is {measured(stml)[0] - frozen:.1f} above the frozen features ({frozen})" in SAID
    assert f"the control gains {gain(same)} points" in SAID
    assert f"ISIF loses {-gain('ISIF, rate 0.0001, frozen statistics')}:" in SAID
    assert f"loses {-gain('PLM, rate 1e-05, frozen statistics')} points of MAP@R at 0.00001" in SAID
    above = [row for row in ROWS if gain(row) > 0 and not row.startswith("SupCon")]
    assert above == ["STML, rate 0.0001, frozen statistics"]
    batch = {row: measured(row)[1] for row in ROWS if "batch" in row and row.startswith("SupCon")}
    assert max(batch, key=lambda row: batch[row]) == "SupCon, all labels, rate 0.01, batch statistics"
    summary = (FOLDER / "findings.toml").read_text(encoding="utf-8").partition("\n[")[0]
    assert f"them it gains {gain('SupCon, all labels, rate 0.001, frozen statistics')} points" in summary


def test_the_text_says_whom_the_statistics_of_the_batches_harm() -> None:
    pairs = {row.removesuffix(", frozen statistics"): (measured(row)[1], measured(row.replace("frozen", "batch"))[1])
             for row in ROWS if row.endswith("frozen statistics") and row.replace("frozen", "batch") in ROWS}
    helped = {name: of for name, of in pairs.items() if of[1] > of[0]}
    assert list(helped) == [f"ISIF, rate {rate}" for rate in (0.001, 0.01, 0.03)], "all others are harmed"
    frozen, batches = ("{}, {} and {}".format(*values) for values in zip(*helped.values(), strict=True))
    assert f"at a MAP@R of {batches} in place of {frozen}" in SAID
    best = {method: max((row for row in ROWS if row.startswith(method) and "frozen" in row),
                        key=lambda row: measured(row)[1]) for method in ("ISIF", "STML")}
    assert best["ISIF"].removesuffix(", frozen statistics") in pairs
    assert best["STML"].removesuffix(", frozen statistics") not in pairs
    assert "STML from 0.0001, its best rate, with the statistics of the batches" in SAID
