"""The query bar: the query and boxes that find images by name or receive own images; the strip of queries below it."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from udml_core.runs.search import Retrieval

from ..shell.interesting import Strip
from ..shell.undo import undo_buttons
from .filters import filter_widgets
from .query import SIGNS, PageQuery, receive_query_images, show_query
from .samples import find_by_text, show_steps, show_strip

FIND_WIDTH, BOX_WIDTH = 220, 320
"""Widths in pixels: side by side at 1400 pixels, one below the other at 1024."""


def show_query_bar(retrieval: Retrieval, query: PageQuery) -> DeltaGenerator:
    """Show the query, the box that finds images by name, and the box for own images, in one bar.

    Returns:
        The place below the query's name, for the buttons that undo.
    """
    with st.container(border=True, key="retrieval-bar"):
        left, right = st.columns([2, 3], gap="small", vertical_alignment="center")
        with left, st.container(horizontal=True, vertical_alignment="center", gap="small"):
            below = show_query(retrieval, query)
        with right, st.container(horizontal=True, vertical_alignment="center", gap="small"):
            with st.container(width=FIND_WIDTH, gap=None):
                find_by_text(retrieval)
            if retrieval.spec.encoder.reads_images:
                with st.container(width=BOX_WIDTH):
                    receive_query_images(query)
    return below


def show_undo(retrieval: Retrieval, below: DeltaGenerator) -> None:
    """Show the buttons that undo changes of the query and of the filters, once all of them are known."""
    with below, st.container(horizontal=True, gap="small"):
        undo_buttons(retrieval.dataset, "retrieval", tuple(SIGNS), filter_widgets(retrieval), selects=False)


def show_query_row(retrieval: Retrieval, query: PageQuery, strip: Strip) -> DeltaGenerator:
    """Show the strip of queries, and the buttons that step through it.

    Returns:
        The place below the buttons, for the verdict on the embeddings.
    """
    left, right = st.columns([5, 6], gap="small", vertical_alignment="center")
    with left:
        show_strip(retrieval, query, strip)
    with right:
        show_steps(retrieval, query, strip)
        return st.container(key="retrieval-verdict")
