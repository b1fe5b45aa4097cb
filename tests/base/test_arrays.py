"""Rows of images, compared with a dictionary."""

from __future__ import annotations

import numpy as np
import pytest

from udml_core.base.arrays import rows_of


@pytest.mark.parametrize("indices", [[], [4], [0, 3, 4, 9]])
def test_rows_of_images_are_those_of_a_dictionary(indices: list[int]) -> None:
    row_of = {index: row for row, index in enumerate(indices)}
    wanted = np.array([[9, 4, -1], [0, 10, 4]])
    expected = [[row_of.get(index, -1) for index in line] for line in wanted.tolist()]
    assert rows_of(np.array(indices, np.int64), wanted).tolist() == expected
    assert int(rows_of(np.array(indices, np.int64), 4)) == row_of.get(4, -1)
