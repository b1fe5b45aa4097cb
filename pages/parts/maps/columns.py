"""Columns of an uploaded table, to color a map by."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.base.spreadsheets import unguarded
from udml_core.data.dataset import Dataset
from udml_core.data.sources.table_files import find_column, separator

from ..shell.run_status import escaped_message
from .content import Color

IMAGE = "image"
MOST_NAMES = 1000


def upload_columns(dataset: Dataset) -> None:
    """Show the menu that reads a table to color the data set's maps by.

    The columns are kept until the session ends.
    """
    with st.popover("Color by your own data", icon=":material/table:"):
        st.caption(f"Upload a CSV file with a column `{IMAGE}` of image names, as in the exported lists, or with "
                   f"{len(dataset):,} rows, one for each image in order. Columns of numbers become color scales; "
                   "columns of text become categories.")
        file = st.file_uploader("Table", type="csv", key="own-column", label_visibility="collapsed")
        if file is None or st.session_state.get("own-column-read") == file.file_id:
            return
        st.session_state["own-column-read"] = file.file_id
        try:
            columns = columns_of(file.getvalue(), dataset)
        except UserError as error:
            st.error(escaped_message(str(error)), icon=":material/error:")
            return
        st.session_state["own-columns"] = {"of": dataset.fingerprint, "columns": uploaded_columns(dataset) | columns}
    st.rerun(scope="fragment")


def uploaded_columns(dataset: Dataset) -> dict[str, Array]:
    """Return the columns (n,), numbers or text, uploaded for a data set, by name."""
    stored = st.session_state.get("own-columns")
    return stored["columns"] if stored and stored["of"] == dataset.fingerprint else {}


def columns_of(content: bytes, dataset: Dataset) -> dict[str, Array]:
    """Read the columns of a CSV file.

    Args:
        content: The file's content.
        dataset: The data set whose images the rows describe.

    Returns:
        Columns (n,) by name, in the order of the images; missing values where the table has no row.

    Raises:
        UserError: The content is not a table, or its rows do not match the data set's images.
    """
    try:
        header = content.partition(b"\n")[0].decode("utf-8-sig")
        table = pd.read_csv(io.BytesIO(content), sep=separator(header))
    except (ValueError, UnicodeDecodeError) as error:
        raise UserError("The file could not be read as a CSV table in UTF-8: "
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


def column_color(name: str, values: Array, indices: Array) -> Color:
    """Return the colors of a column: a scale for numbers, categories for text.

    Args:
        name: The column's name.
        values: The column, (n,).
        indices: Data set indices of the map's points, (m,).
    """
    column = pd.Series(values[indices])
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        return Color(name, column.to_numpy(dtype=float), none="no value")
    codes, words = pd.factorize(column, sort=True)
    codes = np.where(codes < MOST_NAMES, codes, -1)
    return Color(name, codes, tuple(str(word) for word in words[:MOST_NAMES]), none="no value or a rare value")
