"""Columns of a person's own, to colour a map by: a table with a row for each image."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import streamlit as st

from pages.parts.components.scatter import Color
from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.errors import UserError

IMAGE = "image"
MOST_NAMES = 1000


def own_column(dataset: Dataset) -> None:
    """Where a table can be given; its columns are colours of this data set's maps until the browser is closed."""
    with st.popover("Colour by a column of your own", icon=":material/table:"):
        st.caption(f"A CSV file with a column `{IMAGE}` of image names, as in the exported lists, or with one row for "
                   f"each of the {len(dataset):,} images in order. Numbers become a scale, words become names.")
        given = st.file_uploader("Table", type="csv", key="own-column", label_visibility="collapsed")
        if given is None or st.session_state.get("own-column-read") == given.file_id:
            return
        st.session_state["own-column-read"] = given.file_id
        try:
            found = columns_of(given.getvalue(), dataset)
        except UserError as error:
            st.error(str(error), icon=":material/error:")
            return
        st.session_state["own-columns"] = {"of": dataset.fingerprint, "columns": kept_columns(dataset) | found}
    st.rerun(scope="fragment")


def kept_columns(dataset: Dataset) -> dict[str, Array]:
    """Columns (n,) that were given for a data set, numbers or words."""
    held = st.session_state.get("own-columns")
    return held["columns"] if held and held["of"] == dataset.fingerprint else {}


def columns_of(content: bytes, dataset: Dataset) -> dict[str, Array]:
    """The columns (n,) of a CSV file, by name.

    Raises:
        UserError: it is no table, or its rows are not the data set's images.
    """
    try:
        table = pd.read_csv(io.BytesIO(content))
    except (ValueError, UnicodeDecodeError) as error:
        raise UserError("The file must be a table as CSV in UTF-8, and could not be read: "
                        f"{str(error)[:200]}.") from None
    if IMAGE in table.columns:
        table = table.drop_duplicates(IMAGE).set_index(IMAGE)
        known = np.isin(table.index.astype(str), dataset.names)
        if not known.any():
            raise UserError(f"None of the {len(table):,} names in the column '{IMAGE}' is an image of this data set; "
                            f"its first one is called '{dataset.names[0]}'.")
        table = table.set_axis(table.index.astype(str)).reindex(dataset.names)
    elif len(table) != len(dataset):
        raise UserError(f"The table needs a column '{IMAGE}' with image names, or {len(dataset):,} rows, one for each "
                        f"image in order; it has {len(table):,} rows and the columns {', '.join(table.columns[:8])}.")
    if not len(table.columns):
        raise UserError(f"The table has no column besides '{IMAGE}'.")
    return {f"column: {name}": np.asarray(table[name]) for name in table.columns}


def column_color(name: str, values: Array, indices: Array) -> Color:
    """A column as a scale, or as names where its values are words."""
    chosen = pd.Series(values[indices])
    if pd.api.types.is_numeric_dtype(chosen) and not pd.api.types.is_bool_dtype(chosen):
        return Color(name, chosen.to_numpy(dtype=float), none="no value")
    codes, words = pd.factorize(chosen, sort=True)
    codes = np.where(codes < MOST_NAMES, codes, -1)
    return Color(name, codes, tuple(str(word) for word in words[:MOST_NAMES]), none="no value, or too many to name")
