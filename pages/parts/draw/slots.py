"""Places for content that is drawn after what is below it."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator


def slot(key: str) -> DeltaGenerator:
    """Return a place to draw into later, whose height app.css keeps under its key.

    The browser shows no empty container, but an empty column.
    """
    with st.container(key=key):
        return st.columns(1)[0]
