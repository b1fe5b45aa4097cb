"""Names that a spreadsheet would run as formulas."""

from __future__ import annotations

import csv
import io
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from udml_core.base.spreadsheets import guarded, inert, unguarded, write_rows


@pytest.mark.parametrize("text", ["=cmd|' /C calc'!A0", "+1", "-1.png", "@SUM(A1)", "\t=1", "\r=1", "'=1", "''-1"])
def test_no_cell_begins_as_a_formula_and_the_name_comes_back(text: str) -> None:
    assert guarded(text) == f"'{text}"
    assert unguarded(guarded(text)) == text


@pytest.mark.parametrize("value", ["a=1", "", "'quoted'", "bird.png", " =1", -1.5, 0, None, True])
def test_other_cells_stay(value: object) -> None:
    assert guarded(value) is value


@pytest.mark.parametrize("text", ["=cmd|' /C calc'!A0", "-1.png", "@SUM(A1)", "\t=1", "'=1", "+1+2", "-"])
def test_a_text_of_a_table_on_the_screen_looks_the_same_and_begins_with_no_formula(text: str) -> None:
    assert inert(text) == f"\u2060{text}"
    assert unicodedata.category(inert(text)[0]) == "Cf", "it has no width"


@pytest.mark.parametrize("value", ["+1.9", "-0.3 %", "+1,000", "bird.png", "", -1.5, None])
def test_numbers_and_other_texts_of_such_a_table_stay(value: object) -> None:
    assert inert(value) is value


@given(st.text(alphabet="'=+-@\t\ra1", max_size=6))
def test_every_name_comes_back(text: str) -> None:
    assert unguarded(guarded(text)) == text
    assert guarded(text)[:1] not in tuple("=+-@\t\r")


def test_a_known_name_stays() -> None:
    assert unguarded("'=1.png", {"'=1.png"}) == "'=1.png"
    assert unguarded("'=1.png", {"=1.png"}) == "=1.png"


def test_rows_are_guarded() -> None:
    table = io.StringIO()
    write_rows(table, [["=a", "b"], [-1, "+2"]])
    assert list(csv.reader(io.StringIO(table.getvalue()))) == [["'=a", "b"], ["-1", "'+2"]]


def test_no_table_is_written_without_the_guard() -> None:
    root = Path(__file__).parents[2]
    files = [path for folder in ("pages", "udml_core") for path in (root / folder).rglob("*.py")]
    assert len(files) > 300
    assert [str(path) for path in files if ".to_csv(" in path.read_text(encoding="utf-8")] == []
