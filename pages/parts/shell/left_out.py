"""The line that says how many images no question shows."""

from __future__ import annotations

import streamlit as st

from udml_core.data.dataset import Dataset
from udml_core.runs.search.asked import left_out_words

from .views import view_link


def show_left_out(dataset: Dataset, count: int) -> None:
    """Say how many images are left out of the questions, with a link to them.

    Args:
        dataset: The data set.
        count: Number of the images, at least 1.
    """
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="left-out"):
        st.caption(f":material/broken_image: {left_out_words(count)}", width="content")
        view_link("data", label="Look at them", icon=":material/fact_check:", width="content", query_params={
            "dataset": dataset.name, "view": "audit", "finding": "quality"})
