"""The reader of the course: a random name that the browser made up and keeps beside the answers, and the language."""

from __future__ import annotations

from typing import Any

import streamlit as st

from udml_core.results.lesson_texts import translations
from udml_core.results.lessons import is_reader, reader_script

READER = "course_reader"
LANGUAGE = "course_language"
PREDICTED = "course_predicted"


def known_reader() -> str:
    """Return the name of the reader; empty until the browser has sent it."""
    return str(st.session_state.get(READER, ""))


def take_reader(name: object) -> None:
    """Take the name that the browser sent, and run the page again if it is news."""
    if is_reader(name) and name != known_reader():
        st.session_state[READER] = name
        st.rerun()


def is_predicted(lesson: str) -> bool:
    """Return whether the reader answered or skipped the prediction of a lesson, as far as the browser said."""
    return lesson in st.session_state.get(PREDICTED, ())


def take_prediction(lesson: str, value: object) -> None:
    """Take whether there is a prediction, which the browser sent; None if it sent nothing."""
    if value is not None:
        known = st.session_state.get(PREDICTED, frozenset())
        st.session_state[PREDICTED] = known | {lesson} if value else known - {lesson}


def course_language() -> str:
    """Return the language of the address, or else the one that the browser chose."""
    asked = st.query_params.get("language")
    return asked if asked == "en" or asked in translations() else st.session_state.get(LANGUAGE, "en")


def take_language(language: object) -> None:
    """Take the language that the browser shows, and run the page again if it is news."""
    if language is not None and language != course_language():
        st.session_state[LANGUAGE] = str(language)  # not in the address: Back would bring it again
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
