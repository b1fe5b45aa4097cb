"""The query bar: the query and boxes that find images by name or receive own images; the strip of queries below it."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from udml_core.runs.search import Retrieval

from ..shell.interesting import Strip
from ..shell.undo import undo_buttons
from .filters import filter_widgets
from .query import SIGNS, WORDS, PageQuery, receive_query_images, show_query
from .samples import find_by_text, show_strip
from .words import search_by_words

WIDTHS = [11, 18, 13]
"""Widths of the query, of the strip of queries, and of the boxes that find or receive others."""


def show_query_bar(retrieval: Retrieval, query: PageQuery, strip: Strip) -> DeltaGenerator:
    """Show the query, the strip of queries, and the boxes that find images by name or receive own images, in one bar.

    Returns:
        The place below the query's name, for the buttons that step to other queries.
    """
    with st.container(border=True, key="retrieval-bar"):
        left, middle, right = st.columns(WIDTHS, gap="small", vertical_alignment="center")
        with left, st.container(horizontal=True, vertical_alignment="center", gap="small", key="retrieval-asked"):
            below = show_query(retrieval, query)
        with middle:
            show_strip(retrieval, query, strip)
        with right, st.container(gap="xsmall", key="retrieval-own"):
            search_by_words(retrieval)
            find_by_text(retrieval)
            if retrieval.spec.encoder.reads_images:
                receive_query_images(query)
    return below


def show_undo(retrieval: Retrieval) -> None:
    """Show the buttons that undo changes of the query and of the filters, once all of them are known."""
    with st.container(horizontal=True, gap="small", width="content", key="retrieval-history"):
        undo_buttons(retrieval.dataset, "retrieval", (*SIGNS, WORDS), filter_widgets(retrieval), selects=False,
                     is_narrow=True)
