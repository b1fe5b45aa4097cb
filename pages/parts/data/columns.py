"""Filtering the images of a data set by its other columns."""

from __future__ import annotations

import numpy as np
import streamlit as st

from udml_core.base.arrays import Booleans
from udml_core.data.dataset import Dataset
from udml_core.data.dataset_columns import is_numeric, rows_with, values_of

ALL = "all"
MOST_VALUES = 1_000


def choose_values(dataset: Dataset) -> Booleans | None:
    """Choose a column of the data set and the values whose images are shown.

    Returns:
        Mask (n,) of the images to show; None for all.
    """
    if not dataset.columns:
        return None
    with st.popover("Columns", icon=":material/filter_alt:"):
        return value_widgets(dataset)


def value_widgets(dataset: Dataset) -> Booleans | None:
    """Show the widgets of `choose_values`, which a popover cannot have inside another."""
    if not dataset.columns:
        return None
    name = st.selectbox("Column", [ALL, *dataset.columns], key=f"column-{dataset.fingerprint[:8]}",
                        help="A column of the data set's table. Maps can be colored by it, too.")
    if name == ALL:
        return None
    column, key = dataset.columns[name], f"values-{dataset.fingerprint[:8]}-{name}"
    if not is_numeric(column):
        values = values_of(column)
        if len(values) > MOST_VALUES:
            st.caption(f"The first {MOST_VALUES:,} of {len(values):,} values are offered.")
        chosen = st.multiselect("Values", values[:MOST_VALUES], key=key, placeholder=ALL)
        return np.any([rows_with(column, value) for value in chosen], axis=0) if chosen else None
    low, high = float(np.nanmin(column)), float(np.nanmax(column))
    if low == high:
        st.caption(f"All values are {low:g}.")
        return None
    limits = st.slider("Values", low, high, (low, high), key=key,
                       help="Images without a value are shown with the whole range only.")
    return None if limits == (low, high) else rows_with(column, limits)
