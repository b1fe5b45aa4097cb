"""Columns of an uploaded table, to color a map by."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset
from udml_core.data.given.own_columns import IMAGE, parse_columns
from udml_core.data.given.uploads import parse_upload
from udml_core.exploration.map_content import Color

from ..shell.run_status import escaped_message

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
            columns = parse_upload(parse_columns, file.getvalue(), file.name, dataset)
        except UserError as error:
            st.error(escaped_message(str(error)), icon=":material/error:")
            return
        st.session_state["own-columns"] = {"of": dataset.fingerprint, "columns": uploaded_columns(dataset) | columns}
    st.rerun(scope="fragment")


def uploaded_columns(dataset: Dataset) -> dict[str, Array]:
    """Return the columns (n,), numbers or text, uploaded for a data set, by name."""
    stored = st.session_state.get("own-columns")
    return stored["columns"] if stored and stored["of"] == dataset.fingerprint else {}


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
