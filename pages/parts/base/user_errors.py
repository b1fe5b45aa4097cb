"""Errors that a user can correct."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from udml_core.errors import UserError


@contextmanager
def show_user_errors() -> Iterator[None]:
    """Show a `UserError` as a message on the page; let every other exception pass."""
    try:
        yield
    except UserError as error:
        st.error(str(error), icon=":material/error:")
