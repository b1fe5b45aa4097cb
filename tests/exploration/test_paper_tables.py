"""Tables for papers: ties, paired tests, and text that every program reads."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from udml_core.base.errors import UserError
from udml_core.exploration.paper_tables import Cell, PaperTable, holm, latex, paired_p, ties

FIVE = {"A": (80.0, 81.0, 79.0, 80.5, 79.5), "B": (79.8, 80.78, 78.82, 80.25, 79.3),
        "C": (70.0, 70.5, 69.5, 70.2, 69.9)}


def table_of(rows: dict[str, tuple[float, ...]], measure: str = "map@r") -> PaperTable:
    return PaperTable("Digits, test half", {name: {measure: Cell.of_seeds(dict(enumerate(values)))}
                                            for name, values in rows.items()})


def test_rows_within_one_standard_deviation_share_the_first_place() -> None:
    table = table_of({"A": (80.0, 82.0), "B": (79.0, 81.0), "C": (78.0, 79.0)})
    assert table.first("map@r") == ["A", "B"], "A has 81.0 ± 1.4, B 80.0 ± 1.4, C 78.5 ± 0.7"
    assert ties({"A": Cell(50.0), "B": Cell(50.0), "C": Cell(49.9)}) == ["A", "B"]
    assert ties({"A": Cell(1.0, 0.2), "B": Cell(1.3, 0.1), "C": Cell(1.2)}, lowest_first=True) == ["A", "C"]
    printed = table_of({"A": (18.56,), "B": (18.64,), "C": (18.54,)})
    assert printed.first("map@r") == ["B", "A"], "both are printed as 18.6"
    assert printed.written("latex").count(r"\textbf{18.6}") == 2
    assert table_of({"A": (0.2, 0.2), "B": (0.1, 0.1)}, "hubness").first("hubness") == ["B"], "lower is better"
    assert table_of({"A": (9.0, 9.0), "B": (8.0, 8.0)}, "epoch").first("epoch") == [], "no epoch is better"


def test_the_test_is_paired_by_seed_and_agrees_with_scipy() -> None:
    first, second = (dict(enumerate(FIVE[name])) for name in "AB")
    assert paired_p(first, second) == pytest.approx(stats.ttest_1samp(np.subtract(FIVE["A"], FIVE["B"]), 0).pvalue)
    shuffled = dict(zip((4, 2, 0, 3, 1), (FIVE["B"][seed] for seed in (4, 2, 0, 3, 1)), strict=True))
    assert paired_p(first, shuffled) == paired_p(first, second), "seeds are matched, not positions"
    assert paired_p(first, {**second, 9: 0.0}) == paired_p(first, second), "a seed of one row alone is left out"
    assert paired_p({0: 1.0, 1: 2.0}, {0: 0.5, 1: 1.0}) is None, "two seeds are too few"
    assert paired_p({0: 1.0, 1: 1.0, 2: 1.0}, {0: 2.0, 1: 2.0, 2: 2.0}) is None, "no seed changes anything"
    noisy = {0: 90.0, 1: 90.0 + 1e-13, 2: 90.0}
    assert paired_p(noisy, dict.fromkeys(range(3), 89.9999999)) is None, "rounding is no evidence"


def test_holms_correction_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_a_dagger_marks_what_differs_after_the_correction() -> None:
    table = table_of(FIVE)
    assert table.different("map@r") == {"B": True, "C": True}, "pairing sees a small steady difference"
    three = {"A": (80.0, 81.0, 79.0), "B": (79.8, 80.75, 78.65), "C": (79.65, 80.8, 78.75)}
    p = paired_p(dict(enumerate(three["A"])), dict(enumerate(three["B"])))
    assert p is not None
    assert 0.025 < p < 0.05, "below the level alone, not among two rows"
    assert table_of(three).different("map@r") == {"B": False, "C": False}
    assert table_of({name: three[name] for name in "AB"}).different("map@r") == {"B": True}
    assert "80.0 ± 0.8" in table.written("markdown")
    assert table.written("markdown").count("†") == 3, "two rows and the note"
    assert "Bold with a dagger: the difference is small" in table.notes, "B is within one deviation of A"
    assert "Bold with a dagger" not in table_of({name: FIVE[name] for name in "AC"}).notes
    assert "not tested" not in table.notes
    for few in ({name: values[:2] for name, values in FIVE.items()}, {"A": (90.0,) * 3, "B": (50.0,) * 3}):
        assert "†" not in table_of(few).written("markdown")
        assert "MAP@R: a row is not tested if it shares fewer than 3 seeds with the best" in table_of(few).notes
    assert "not tested" not in table_of({"A": (9.0, 9.0), "B": (8.0, 8.0)}, "epoch").notes
    lines = list(csv.DictReader(io.StringIO(table.written("csv"))))
    assert {line["row"]: line["p"] for line in lines} == {
        "A": "", **{name: str(p) for name, p in table.p_values("map@r").items()}}


def test_csv_has_every_seed_and_guards_formulas() -> None:
    table = PaperTable("x", {"=1+1": {"map@r": Cell.of_seeds({0: 1.5, 7: 2.5})}, "known": {"map@r": Cell(50.0, 0.5)}})
    rows = list(csv.DictReader(io.StringIO(table.written("csv"))))
    assert [(row["row"], row["seed"], float(row["value"])) for row in rows] == [
        ("'=1+1", "0", 1.5), ("'=1+1", "7", 2.5), ("known", "mean", 50.0), ("known", "deviation", 0.5)]
    with pytest.raises(UserError, match="can be written as latex, markdown, csv"):
        table.written("html")  # type: ignore[arg-type]


def test_a_table_says_its_seeds_and_why_a_row_has_no_p() -> None:
    equal = table_of({"A": (80.0, 80.0), "B": (79.0, 79.0)})
    assert "80.0 ± 0.0" in equal.written("markdown"), "two equal seeds have a deviation of 0"
    assert equal.notes.startswith("Mean ± standard deviation over 2 seeds.")
    notes = {row["row"]: (row["p"], row["note"]) for row in csv.DictReader(io.StringIO(equal.written("csv")))}
    assert notes == {"A": ("", "best"),
                     "B": ("", "not tested: fewer than 3 common seeds, or the same difference in all")}
    tested = {row["row"]: row["note"] for row in csv.DictReader(io.StringIO(table_of(FIVE).written("csv")))}
    assert tested == {"A": "best", "B": "", "C": ""}
    one = table_of({"A": (80.0,), "B": (79.0,)})
    assert one.notes.startswith("One seed in each row, so without a standard deviation.")
    assert "±" not in one.written("markdown")
    mixed = PaperTable("x", {"A": {"map@r": Cell.of_seeds({0: 1.5, 7: 2.5})}, "known": {"map@r": Cell(50.0, 0.5)}})
    assert mixed.notes.startswith("Mean ± standard deviation over the seeds (number of seeds: A 2).")


def test_names_cannot_break_a_table() -> None:
    hostile = r"50 % of A_B & {C} \input{/etc/passwd} $x$ | <b> α = 25° 鳥"
    table = PaperTable(hostile, {hostile: {"map@r": Cell(1.0)}, "plain": {"map@r": Cell(2.0)}})
    text = table.written("latex")
    assert r"50 \% of A\_B \& \{C\} \textbackslash{}input\{/etc/passwd\} \$x\$" in text
    assert r"$\alpha$ = 25$^\circ$" in text
    (row,) = [line for line in text.splitlines() if line.strip().startswith("50")]
    assert row.replace(r"\&", "").count("&") == 1
    assert r"$x$ \| \<b\>" in table.written("markdown").splitlines()[4]
    assert latex("α±") == r"$\alpha$$\pm$"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_compiles(tmp_path: Path) -> None:
    table = PaperTable("ε, 50 % & more_", {name.replace("A", "α_A & 25°"): {
        "map@r": Cell.of_seeds(dict(enumerate(values))), "recall@1": Cell(50.0)} for name, values in FIVE.items()})
    page = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n%s\\end{document}"
    (tmp_path / "page.tex").write_text(page % table.written("latex"), encoding="utf-8")
    done = subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"], cwd=tmp_path,
                          capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "page.pdf").stat().st_size > 5000
