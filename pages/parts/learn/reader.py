"""The reader of the course: a random name that the browser made up and keeps beside the answers."""

from __future__ import annotations

from typing import Any

import streamlit as st

from udml_core.results.lessons import is_reader, reader_script

READER = "course_reader"


def known_reader() -> str:
    """Return the name of the reader; empty until the browser has sent it."""
    return str(st.session_state.get(READER, ""))


def take_reader(name: object) -> None:
    """Take the name that the browser sent, and run the page again if it is news."""
    if is_reader(name) and name != known_reader():
        st.session_state[READER] = name
        st.rerun()


def ask_reader() -> None:
    """Ask the browser for the name of the reader, where nothing of the course is shown."""
    result = _component()(data={"reader": known_reader()}, key="course-reader", on_reader_change=lambda: None)
    take_reader(result.reader)


@st.cache_resource(show_spinner=False)
def _component() -> Any:
    script = f"{reader_script()}export default ({{ parentElement, data, setTriggerValue }}) => {{\n"
    script += "  tellReader(parentElement, data, setTriggerValue);\n};\n"
    return st.components.v2.component("udml_reader", html="<span hidden></span>", js=script)
