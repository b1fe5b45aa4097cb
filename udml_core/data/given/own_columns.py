"""Columns of a user's table, to color a map by."""

from __future__ import annotations

import io

import numpy as np

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.base.spreadsheets import unguarded
from udml_core.data.dataset import Dataset
from udml_core.data.sources.table_files import find_column, separator

IMAGE = "image"
"""The column that names the image of each row."""


def parse_columns(content: bytes, name: str, dataset: Dataset) -> dict[str, Array]:
    """Read the columns of a CSV file.

    Args:
        content: The file's content.
        name: The file's name.
        dataset: The data set whose images the rows describe.

    Returns:
        Columns (n,) by name, in the order of the images; missing values where the table has no row.

    Raises:
        UserError: The content is not a table, or its rows do not match the data set's images.
    """
    import pandas as pd

    try:
        header = content.partition(b"\n")[0].decode("utf-8-sig")
        table = pd.read_csv(io.BytesIO(content), sep=separator(header))
    except (ValueError, UnicodeDecodeError) as error:
        raise UserError(f"{name} could not be read as a CSV table in UTF-8: "
                        f"{str(error)[:200]}. Save the table as CSV in UTF-8.") from None
    table = table.rename(columns={find_column(map(str, table.columns), [IMAGE]): IMAGE})
    if IMAGE in table.columns:
        known = set(dataset.names)
        table[IMAGE] = [unguarded(str(name), known) for name in table[IMAGE]]
        table = table.drop_duplicates(IMAGE).set_index(IMAGE)
        if known.isdisjoint(table.index):
            raise UserError(f"None of the {len(table):,} names in the column '{IMAGE}' is an image of this data set. "
                            f"Use names such as '{dataset.names[0]}'.")
        table = table.reindex(dataset.names)
    elif len(table) != len(dataset):
        raise UserError(f"The table has {len(table):,} rows and the columns {', '.join(table.columns[:8])[:100]}; it "
                        f"needs a column '{IMAGE}' with image names, or {len(dataset):,} rows, one for each image in "
                        "order.")
    if not len(table.columns):
        raise UserError(f"The table has no column besides '{IMAGE}'. Add a column of numbers or text.")
    return {f"column: {name}": np.asarray(table[name]) for name in table.columns}
