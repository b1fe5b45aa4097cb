"""Columns of a person's own, from tables as people have them, good and broken."""

from __future__ import annotations

import numpy as np
import pytest

from pages.parts.kit.downloads import table_file
from pages.parts.map.columns import column_color, columns_of
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.errors import UserError


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return catalog.load("digits")


def test_what_was_exported_comes_back_for_its_images_and_no_others(digits: Dataset) -> None:
    ids = np.array([7, 2, 1700])
    file = table_file(digits, ids, {"score": np.array([0.5, -1.0, 3.25]), "word": np.array(["a", "b", "a"])})
    found = columns_of(file, digits)
    assert {"column: score", "column: word", "column: class"} <= found.keys()
    scores = found["column: score"]
    assert scores.shape == (len(digits),)
    assert scores[ids].tolist() == [0.5, -1.0, 3.25]
    assert np.isnan(scores).sum() == len(digits) - 3
    color = column_color("column: word", found["column: word"], np.array([0, 1, 2, 7]))
    assert color.names == ("a", "b")
    assert color.values.tolist() == [-1, -1, 1, 0]
    numbers = column_color("column: score", scores, ids)
    assert numbers.names == ()
    assert numbers.values.tolist() == [0.5, -1.0, 3.25]


def test_a_row_for_each_image_needs_no_names(digits: Dataset) -> None:
    rows = "\n".join(["age", *map(str, range(len(digits)))])
    assert columns_of(rows.encode(), digits)["column: age"].tolist() == list(range(len(digits)))


@pytest.mark.parametrize(("content", "words"), [
    (b"", "could not be read"), (b"\xff\xfe\x00", "could not be read"), (b"image,a\nnobody,1\n", "None of the 1 names"),
    (b"a,b\n1,2\n", "needs a column 'image' with image names, or 1,797 rows"), (b'a\n"1', "could not be read"),
])
def test_a_table_that_does_not_fit_is_refused_in_words(content: bytes, words: str, digits: Dataset) -> None:
    with pytest.raises(UserError, match=words):
        columns_of(content, digits)
