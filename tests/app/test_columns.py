"""Columns of uploaded tables, valid and broken."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pages.parts.draw.downloads import frame_file, table_file
from pages.parts.maps.columns import column_color
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.given.own_columns import parse_columns


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return catalog.load("digits")


def test_an_exported_table_gives_values_to_its_images_only(digits: Dataset) -> None:
    ids = np.array([7, 2, 1700])
    file = table_file(digits, ids, {"score": np.array([0.5, -1.0, 3.25]), "word": np.array(["a", "b", "a"])})
    columns = parse_columns(file, "table.csv", digits)
    assert {"column: score", "column: word", "column: class"} <= columns.keys()
    scores = columns["column: score"]
    assert scores.shape == (len(digits),)
    assert scores[ids].tolist() == [0.5, -1.0, 3.25]
    assert np.isnan(scores).sum() == len(digits) - 3
    color = column_color("column: word", columns["column: word"], np.array([0, 1, 2, 7]))
    assert color.names == ("a", "b")
    assert color.values.tolist() == [-1, -1, 1, 0]
    numbers = column_color("column: score", scores, ids)
    assert numbers.names == ()
    assert numbers.values.tolist() == [0.5, -1.0, 3.25]


def test_a_frame_is_written_without_formulas() -> None:
    frame = pd.DataFrame({"=a": ["@b", None], "c": [1.5, float("nan")]}, index=["-d", "e"])
    assert frame_file(frame).decode().splitlines() == [",'=a,c", "'-d,'@b,1.5", "e,,"]
    assert frame_file(pd.DataFrame({"a": [1, 2]})).decode().splitlines() == ["a", "1", "2"]


def test_a_table_with_one_row_for_each_image_needs_no_names(digits: Dataset) -> None:
    rows = "\n".join(["age", *map(str, range(len(digits)))])
    assert parse_columns(rows.encode(), "table.csv", digits)["column: age"].tolist() == list(range(len(digits)))


def test_a_table_of_a_spreadsheet_is_read(digits: Dataset) -> None:
    columns = parse_columns("\ufeffImage;age;word\r\ndigit 7;3;a,b\r\n".encode(), "table.csv", digits)
    assert list(columns) == ["column: age", "column: word"]
    assert (columns["column: age"][7], columns["column: word"][7]) == (3.0, "a,b")


@pytest.mark.parametrize(("content", "words"), [
    (b"", "could not be read"), (b"\xff\xfe\x00", "could not be read"),
    (b"image,a\nunknown,1\n", "None of the 1 names"),
    (b"a,b\n1,2\n", "needs a column 'image' with image names, or 1,797 rows"), (b'a\n"1', "could not be read"),
])
def test_an_invalid_table_is_rejected_with_a_message(content: bytes, words: str, digits: Dataset) -> None:
    with pytest.raises(UserError, match=words):
        parse_columns(content, "table.csv", digits)


def test_a_message_about_a_table_is_short_however_long_its_header_is(digits: Dataset) -> None:
    with pytest.raises(UserError, match="2 rows and the columns xxx") as refused:
        parse_columns(b"x" * 5_000 + b",y\n1,2\n3,4\n", "table.csv", digits)
    assert len(str(refused.value)) < 400
