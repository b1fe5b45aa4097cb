"""Errors that a user can correct."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import streamlit as st

from udml_core.base.errors import UserError
from udml_core.base.storage import storage_problem

from .run_status import escaped_message
from .setting_words import with_titles

Draw = TypeVar("Draw", bound=Callable[..., Any])


@contextmanager
def show_user_errors() -> Iterator[None]:
    """Show a `UserError`, or that a folder cannot be written, on the page; let every other exception pass."""
    try:
        with as_user_errors():
            yield
    except UserError as error:
        st.error(escaped_message(with_titles(str(error))), icon=":material/error:")


@contextmanager
def as_user_errors() -> Iterator[None]:
    """Turn the system's error about a folder of the app into a `UserError`; see `storage_problem`."""
    try:
        yield
    except OSError as error:
        problem = storage_problem(error)
        if problem is None:
            raise
        raise problem from error


def fragment(draw: Draw) -> Draw:
    """Let a function run again alone, as Streamlit's fragments do, and show its user errors where it draws."""
    return st.fragment(show_user_errors()(draw))


def has_kept_error(key: str, input_value: object) -> bool:
    """Return whether `keep_user_errors` shows a message of an action about this input."""
    problem = st.session_state.get(_kept(key))
    return problem is not None and problem[0] == input_value


def _kept(key: str) -> str:
    return f"{key}-problem"


@contextmanager
def keep_user_errors(key: str, input_value: object, acts: bool) -> Iterator[None]:
    """Show a `UserError` until the action is repeated or its input changes.

    A message that only the click draws would vanish when something else on the page, such as a finished computation,
    runs the script again.

    Args:
        key: Name of the action in the session.
        input_value: What the action was given; another value hides the message.
        acts: Whether the action is executed now.
    """
    kept = _kept(key)
    if acts:
        st.session_state.pop(kept, None)
    try:
        with as_user_errors():
            yield
    except UserError as error:
        st.session_state[kept] = (input_value, str(error))
    if has_kept_error(key, input_value):
        st.error(escaped_message(with_titles(st.session_state[kept][1])), icon=":material/error:")
